"""The suite of residual addition and RMSNorm in place; each call needs its arguments put back.

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
    expect_sum,
    judge_with,
    must_change,
    part,
)
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class FusedAddRmsNormInplaceCase(FamilyCase):
    """One input, residual and weight."""

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, and bind the implementation to them."""
        from xllm_kernel.numerics.rms_norm_reference import rounded_sum
        from xllm_kernel.numerics.storage import ArgumentGuard

        values, residual, weight = (tensor.to(plan.spec.device) for tensor in self.make())
        function, eps = plan.function, self.eps
        total = rounded_sum(values.cpu(), residual.cpu())
        norm = expect_norm(total, weight.cpu(), self.eps32, values.device)
        written = {"input": norm.expected, "residual": expect_sum(total, values.device)}
        arguments = {"input": values, "residual": residual, "weight": weight}
        changes = [name for name, want in written.items() if must_change(want, arguments[name])]
        guard = ArgumentGuard(arguments, plan.spec.contract.mutates, changes)
        return PreparedCase(
            function=lambda: function(values, residual, weight, eps),
            validate=judge_with(plan, guard, None, norm, written),
            metadata=self.metadata(**arguments),
            reset=Reset(guard.reset),
        )


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
