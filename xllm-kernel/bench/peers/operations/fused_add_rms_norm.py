"""Residual addition and RMSNorm: its buffers and results, allocating and in place.

How each library is called, its own file says; what torch composes is here, eager or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from peers.operation import Dimensions, Form, Operation
from peers.peer import Call, standing
from peers.rows import Repeated, weight
from xllm_kernel.numerics.rms_norm_case import fresh_bytes, norm_work

if TYPE_CHECKING:
    import torch

EPS = 1e-5

ALLOCATING = Form(
    "allocating", "each call returns a fresh norm and a fresh sum, and the last one's are freed"
)
IN_PLACE = Form(
    "in-place",
    "the input becomes the norm, the residual the sum; torch.compile as two functions, ONNX "
    "Runtime with outputs bound to its inputs' memory",
    callers_memory=True,
    every_call=True,
)


class _Buffers:
    """Input, residual and weight of a case."""

    def __init__(self, form: Form, dimensions: Dimensions) -> None:
        self._input = Repeated(dimensions, stream=0)
        self._residual = Repeated(dimensions, stream=1)
        self.arguments: dict[str, Any] = {
            "input": self._input.tensor,
            "residual": self._residual.tensor,
            "weight": weight(dimensions),
            "eps": EPS,
        }
        written = 2 * fresh_bytes(self._input.tensor)
        self.work = norm_work(
            self.arguments,
            ("input", "residual", "weight"),
            written,
            additions=1,
            in_place=form is IN_PLACE,
        )

    def refresh(self, number: int) -> None:
        self._input.renew(number)
        self._residual.renew(number)

    def reset(self) -> None:
        self._input.restore()
        self._residual.restore()

    def expected(self) -> Sequence[torch.Tensor]:
        from xllm_kernel.numerics.rms_norm_reference import reference, rounded_sum

        x, residual = self._input.block, self._residual.block
        norm = reference(rounded_sum(x, residual), self.arguments["weight"], EPS)
        return norm, x.double() + residual.double()


def composed() -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """Return torch's sum and norm."""
    from torch.nn.functional import rms_norm

    def add_norm(
        x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        return rms_norm(total, weight.shape, weight, eps), total

    return add_norm


def composed_in_place() -> tuple[Callable[..., None], Callable[..., None]]:
    """Return torch's sum into the residual, and its norm of the residual into the input.

    They are two, since Inductor 2.13 cannot compile one function that writes to both
    (pytorch#196570); that is faster than one with fresh outputs, and copies.
    """
    from torch.nn.functional import rms_norm

    def add(x: torch.Tensor, residual: torch.Tensor) -> None:
        residual.add_(x)

    def norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        x.copy_(rms_norm(residual, weight.shape, weight, eps))

    return add, norm


def in_place(
    add: Callable[..., None], norm: Callable[..., None], arguments: Mapping[str, Any]
) -> Call:
    """Return the call that makes the sum and then the norm, both in place."""
    x, residual, weight, eps = (arguments[n] for n in ("input", "residual", "weight", "eps"))

    def run() -> None:
        add(x, residual)
        norm(x, residual, weight, eps)

    return Call(run, standing(x, residual))


OPERATION = Operation(
    name="fused_add_rms_norm",
    forms=(ALLOCATING, IN_PLACE),
    buffers=_Buffers,
    note="In place, input and residual are restored before each call, outside of its time, so that "
    "every call sees the same data; calls are then timed one by one, and the clock's own cost is "
    "in the figures.",
)
