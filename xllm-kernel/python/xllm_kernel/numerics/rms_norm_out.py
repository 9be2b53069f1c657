"""The suite of RMSNorm into the caller's buffer: the same cases, and a poisoned output.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.bound import Arguments, Expectation
from xllm_kernel.numerics.memory import touched_bytes
from xllm_kernel.numerics.rms_norm_case import FamilyCase, expect_norm, float32, norm_work
from xllm_kernel.numerics.rms_norm_family import FamilySuite, part
from xllm_kernel.numerics.suite import Work
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch


class RmsNormOutCase(FamilyCase):
    """One input and weight, and the buffer that receives the result."""

    written = ("output",)

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what must stand in the buffer."""
        norm = expect_norm(
            arguments["input"], arguments["weight"], float32(arguments["eps"]), device
        )
        return Expectation(None, {"output": norm.expected}, norm.notes)

    def work(self, arguments: Arguments) -> Work:
        """Read input and weight, write the norm into the buffer."""
        return norm_work(arguments, ("input", "weight"), touched_bytes(arguments["output"]))


def _parts(plan: PreparedKernel, arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    norm = part(plan, "rms_norm")
    return [norm(arguments["input"], arguments["weight"], arguments["eps"])]


SUITE = FamilySuite(
    operation="rms_norm_out",
    implementations=("cpu.simd.rms_norm_out", "cpu.torch.rms_norm_out"),
    case=RmsNormOutCase,
    tensors=("input", "weight"),
    parts=_parts,
)
