"""That a case can fail: results that nobody computed must not pass for the implementation's.

A validator that accepts zeros and NaN alike has looked at nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from xllm_kernel.numerics.compare import flatten, map_tensors
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.numerics.suite import PreparedCase

if TYPE_CHECKING:
    import torch

_NOBODYS_VALUES = (0.0, float("nan"))


def vacuous(prepared: PreparedCase, mutates: Iterable[str], result: object) -> str | None:
    """Return a sentence where results of nobody pass, or None.

    Args:
        prepared: the case; judges, and is put back afterwards.
        mutates: names of the arguments that the contract lets calls write.
        result: what a good call returned, for its form.
    """
    written = [prepared.arguments[name] for name in mutates if name in prepared.arguments]
    returned = [leaf for _, leaf in flatten(result) if is_tensor(leaf)]
    if not any(tensor.numel() for tensor in (*written, *returned)):
        return None
    for value in _NOBODYS_VALUES:
        if prepared.reset is not None:
            prepared.reset.function()
        verdict = prepared.validate(_answering(result, written, value))
        if verdict["status"] == "failed":
            break
    else:
        return "the case is vacuous: a result of zeros passes, and so does one of NaN"
    if prepared.reset is not None:
        prepared.reset.function()
    return None


def _answering(result: object, written: list[torch.Tensor], value: float) -> Callable[[], object]:
    """Return a function that answers with one value everywhere, in the form of a good result."""

    def answer() -> object:
        import torch

        for tensor in written:
            tensor.fill_(value)
        return map_tensors(result, lambda tensor: torch.full_like(tensor, value))

    return answer
