"""The suite of residual addition and RMSNorm in place; each call needs its arguments put back.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.bound import Arguments, Expectation
from xllm_kernel.numerics.rms_norm_case import FamilyCase, expect_norm, expect_sum, float32
from xllm_kernel.numerics.rms_norm_family import FamilySuite, part
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
