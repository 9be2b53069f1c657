"""The suite of residual addition and RMSNorm in place; each call needs its arguments put back.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.bound import Arguments, Expectation
from xllm_kernel.numerics.memory import touched_bytes
from xllm_kernel.numerics.rms_norm_case import (
    FamilyCase,
    expect_norm,
    expect_sum,
    float32,
    norm_work,
)
from xllm_kernel.numerics.rms_norm_family import FamilySuite, part
from xllm_kernel.numerics.suite import Work
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch


class FusedAddRmsNormInplaceCase(FamilyCase):
    """One input, residual and weight."""

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what must stand in the input and in the residual."""
        from xllm_kernel.numerics.rms_norm_reference import rounded_sum

        total = rounded_sum(arguments["input"], arguments["residual"])
        norm = expect_norm(total, arguments["weight"], float32(arguments["eps"]), device)
        written = {"input": norm.expected, "residual": expect_sum(total, device)}
        return Expectation(None, written, norm.notes)

    def work(self, arguments: Arguments) -> Work:
        """Read input, residual and weight, write the norm and the sum over the first two."""
        written = touched_bytes(arguments["input"]) + touched_bytes(arguments["residual"])
        read = ("input", "residual", "weight")
        return norm_work(arguments, read, written, additions=1, in_place=True)


def _parts(plan: PreparedKernel, arguments: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    norm, total = part(plan, "fused_add_rms_norm")(*arguments.values())
    return norm, total


SUITE = FamilySuite(
    operation="fused_add_rms_norm_inplace",
    implementations=(
        "cpu.simd.fused_add_rms_norm_inplace",
        "cpu.torch.fused_add_rms_norm_inplace",
    ),
    case=FusedAddRmsNormInplaceCase,
    tensors=("input", "residual", "weight"),
    parts=_parts,
)
