"""The suite of residual addition and RMSNorm with fresh outputs.

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
    part,
)
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class FusedAddRmsNormCase(FamilyCase):
    """One input, residual and weight."""

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, and bind the implementation to them."""
        from xllm_kernel.numerics.rms_norm_reference import rounded_sum
        from xllm_kernel.numerics.storage import ArgumentGuard

        values, residual, weight = (tensor.to(plan.spec.device) for tensor in self.make())
        function, eps = plan.function, self.eps
        total = rounded_sum(values.cpu(), residual.cpu())
        norm = expect_norm(total, weight.cpu(), self.eps32, values.device)
        expected = (norm.expected, expect_sum(total, values.device))
        arguments = {"input": values, "residual": residual, "weight": weight}
        guard = ArgumentGuard(arguments, plan.spec.contract.mutates)
        return PreparedCase(
            function=lambda: function(values, residual, weight, eps),
            validate=judge_with(plan, guard, expected, norm),
            metadata=self.metadata(**arguments),
        )


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
