"""The suite of RMSNorm: one input and weight a case.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xllm_kernel.numerics.bound import Arguments, Expectation
from xllm_kernel.numerics.rms_norm_case import (
    FamilyCase,
    expect_norm,
    float32,
    fresh_bytes,
    norm_work,
)
from xllm_kernel.numerics.rms_norm_family import FamilySuite
from xllm_kernel.numerics.suite import Work

if TYPE_CHECKING:
    import torch


class RmsNormCase(FamilyCase):
    """One input and weight."""

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what the norm must be."""
        norm = expect_norm(
            arguments["input"], arguments["weight"], float32(arguments["eps"]), device
        )
        return Expectation(norm.expected, notes=norm.notes)

    def work(self, arguments: Arguments) -> Work:
        """Read input and weight, write the norm."""
        return norm_work(arguments, ("input", "weight"), fresh_bytes(arguments["input"]))


SUITE = FamilySuite(
    operation="rms_norm",
    implementations=(
        "cpu.simd.rms_norm",
        "cpu.torch.rms_norm",
        "npu.xllm_native.rms_norm",
        "npu.xlite.rms_norm",
    ),
    case=RmsNormCase,
    tensors=("input", "weight"),
)
