"""Calls compiled whole: one graph for ``torch.compile``, without breaks and without a way around.

Imports the framework when a function is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xllm_kernel.errors import ConfigurationError

_BACKEND = "inductor"


def compiled(function: Callable[[], Any], beside: bool = False) -> Callable[[], Any]:
    """Compile a function, and call it once so that later calls only run what was compiled.

    Whatever the process compiled before is forgotten first: cases share their code, and after a few
    of them PyTorch would generalise the graph to any size, and in the end refuse to compile anew.

    Args:
        function: takes no arguments; its operators and what they read must fit one graph.
        beside: whether to forget nothing, for what was compiled before is called again.

    Returns:
        The compiled function. Where its calls would compile anew, they raise.

    Raises:
        Exception: PyTorch's own, where the function has a graph break or cannot be compiled.
        ConfigurationError: where PyTorch ran it without compiling anything.
    """
    import torch

    graphs, complete = 0, False

    # One of its own for each function: PyTorch keeps what it compiles apart by backend.
    def count(graph: Any, inputs: list[Any]) -> Any:
        nonlocal graphs
        if complete:
            raise RuntimeError(
                "mode compile: a replay must run what was compiled, but PyTorch compiles anew; "
                "what the operator reads besides its arguments must not change after its first call"
            )
        graphs += 1
        return torch._dynamo.lookup_backend(_BACKEND)(graph, inputs)

    if not beside:
        torch.compiler.reset()
    made = torch.compile(function, fullgraph=True, backend=count)
    made()
    complete = True
    if graphs == 0:
        raise ConfigurationError(
            "mode compile: torch.compile must compile the call, but it ran as it is; unset "
            "TORCHDYNAMO_DISABLE, and leave torch.compiler.set_stance at its default"
        )
    return made
