"""The suite of RMSNorm into the caller's buffer: the same cases, and a poisoned output.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.rms_norm_family import (
    FamilyCase,
    FamilySuite,
    expect_norm,
    judge_with,
    part,
)
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

# Sixteen or thirty-two bits of ones: a NaN in every dtype here, and not one that a kernel writes.
_POISON = 0xFF


@dataclass(frozen=True, slots=True)
class RmsNormOutCase(FamilyCase):
    """One input and weight, and the buffer that receives the result."""

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, poison the buffer, bind the implementation."""
        import torch

        from xllm_kernel.numerics.storage import ArgumentGuard, storage_bytes

        values, weight = (tensor.to(plan.spec.device) for tensor in self.make())
        output = torch.empty_like(values, memory_format=torch.contiguous_format)
        storage_bytes(output).fill_(_POISON)
        function, eps = plan.function, self.eps
        norm = expect_norm(values.cpu(), weight.cpu(), self.eps32, values.device)
        guard = ArgumentGuard(
            {"output": output, "input": values, "weight": weight},
            plan.spec.contract.mutates,
            changes=("output",) if output.numel() else (),
        )
        return PreparedCase(
            function=lambda: function(output, values, weight, eps),
            validate=judge_with(plan, guard, None, norm, {"output": norm.expected}),
            metadata=self.metadata(output=output, input=values, weight=weight),
            # No call reads what another wrote there.
            reset=Reset(guard.reset, every_call=False),
        )


def _parts(plan: PreparedKernel, arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    norm = part(plan, "rms_norm")
    return [norm(arguments["input"], arguments["weight"], arguments["eps"])]


SUITE = FamilySuite(
    operation="rms_norm_out",
    implementations=("cpu.simd.rms_norm_out", "cpu.torch.rms_norm_out"),
    case=RmsNormOutCase,
    tensors=("input", "weight"),
    written=("output",),
    parts=_parts,
)
