"""The suite of residual addition and RMSNorm with fresh outputs.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.bound import Arguments, Expectation
from xllm_kernel.numerics.rms_norm_case import (
    FamilyCase,
    expect_norm,
    expect_sum,
    float32,
    fresh_bytes,
    norm_work,
)
from xllm_kernel.numerics.rms_norm_family import FamilySuite, part
from xllm_kernel.numerics.suite import Work
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch


class FusedAddRmsNormCase(FamilyCase):
    """One input, residual and weight."""

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what the norm and the sum must be."""
        from xllm_kernel.numerics.rms_norm_reference import rounded_sum

        total = rounded_sum(arguments["input"], arguments["residual"])
        norm = expect_norm(total, arguments["weight"], float32(arguments["eps"]), device)
        return Expectation((norm.expected, expect_sum(total, device)), notes=norm.notes)

    def work(self, arguments: Arguments) -> Work:
        """Read input, residual and weight, write the norm and the sum."""
        written = 2 * fresh_bytes(arguments["input"])
        return norm_work(arguments, ("input", "residual", "weight"), written, additions=1)


def _parts(plan: PreparedKernel, arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    from xllm_kernel.numerics.rms_norm_reference import rounded_sum

    total = rounded_sum(arguments["input"], arguments["residual"])
    return [part(plan, "rms_norm")(total, arguments["weight"], arguments["eps"]), total]


SUITE = FamilySuite(
    operation="fused_add_rms_norm",
    implementations=("cpu.simd.fused_add_rms_norm", "cpu.torch.fused_add_rms_norm"),
    case=FusedAddRmsNormCase,
    tensors=("input", "residual", "weight"),
    parts=_parts,
)
