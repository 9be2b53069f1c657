"""RMSNorm of rows: its buffers and results, allocating and into the caller's buffer.

How each library is called, its own file says; what torch composes is here, eager or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from peers.operation import Dimensions, Form, Operation
from peers.rows import Repeated, page_aligned, weight
from xllm_kernel.numerics.rms_norm_case import fresh_bytes, norm_work

if TYPE_CHECKING:
    import torch

EPS = 1e-5

ALLOCATING = Form("allocating", "each call returns a fresh output, and the last one's is freed")
OUT = Form(
    "out",
    "each call writes to one output of the caller's; torch by a copy",
    callers_memory=True,
)


class _Buffers:
    """Input, weight and, where the form has one, output of a case."""

    def __init__(self, form: Form, dimensions: Dimensions) -> None:
        self._input = Repeated(dimensions, stream=0)
        self.arguments: dict[str, Any] = {
            "input": self._input.tensor,
            "weight": weight(dimensions),
            "eps": EPS,
        }
        if form is OUT:
            self.arguments["output"] = page_aligned(dimensions)
            self.reset()
        written = fresh_bytes(self._input.tensor)
        self.work = norm_work(self.arguments, ("input", "weight"), written)

    def refresh(self, number: int) -> None:
        self._input.renew(number)

    def reset(self) -> None:
        self.arguments["output"].fill_(float("nan"))

    def expected(self) -> Sequence[torch.Tensor]:
        from xllm_kernel.numerics.rms_norm_reference import reference

        return (reference(self._input.block, self.arguments["weight"], EPS),)


def composed() -> Callable[..., torch.Tensor]:
    """Return torch's norm."""
    from torch.nn.functional import rms_norm

    def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return rms_norm(x, weight.shape, weight, eps)

    return norm


def composed_out() -> Callable[..., None]:
    """Return torch's norm into a buffer, which a compiler may fuse."""
    from torch.nn.functional import rms_norm

    def norm_out(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        out.copy_(rms_norm(x, weight.shape, weight, eps))

    return norm_out


OPERATION = Operation(
    name="rms_norm",
    forms=(ALLOCATING, OUT),
    buffers=_Buffers,
    note="Inputs are never written to. The output of form out is filled with NaN before each "
    "sample, outside of its time.",
)
