"""Calls compiled whole: one graph for ``torch.compile``, without breaks and without a way around.

Imports the framework when a function is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xllm_kernel.errors import ConfigurationError

_BACKEND = "inductor"


def compiled(function: Callable[[], Any]) -> Callable[[], Any]:
    """Compile a function, and call it once so that later calls only run what was compiled.

    Whatever the process compiled before is forgotten first: cases share their code, and after a few
    of them PyTorch would generalise the graph to any size, and in the end refuse to compile anew.

    Args:
        function: takes no arguments; its operators and what they read must fit one graph.

    Raises:
        Exception: PyTorch's own, where the function has a graph break or cannot be compiled.
        ConfigurationError: where PyTorch ran it without compiling anything.
    """
    import torch

    graphs = 0

    def count(graph: Any, inputs: list[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        return torch._dynamo.lookup_backend(_BACKEND)(graph, inputs)

    torch.compiler.reset()
    made = torch.compile(function, fullgraph=True, backend=count)
    made()
    if graphs == 0:
        raise ConfigurationError(
            "mode compile: torch.compile must compile the call, but it ran as it is; unset "
            "TORCHDYNAMO_DISABLE, and leave torch.compiler.set_stance at its default"
        )
    return made
