"""The suite of RMSNorm: one input and weight a case.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

from dataclasses import dataclass

from xllm_kernel.numerics.rms_norm_family import FamilyCase, FamilySuite, expect_norm, judge_with
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.registry import PreparedKernel


@dataclass(frozen=True, slots=True)
class RmsNormCase(FamilyCase):
    """One input and weight."""

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, and bind the implementation to them."""
        from xllm_kernel.numerics.storage import ArgumentGuard

        values, weight = (tensor.to(plan.spec.device) for tensor in self.make())
        function, eps = plan.function, self.eps
        guard = ArgumentGuard({"input": values, "weight": weight}, plan.spec.contract.mutates)
        norm = expect_norm(values.cpu(), weight.cpu(), self.eps32, values.device)
        return PreparedCase(
            function=lambda: function(values, weight, eps),
            validate=judge_with(plan, guard, norm.expected, norm),
            metadata=self.metadata(input=values, weight=weight),
        )


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
