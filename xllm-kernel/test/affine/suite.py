"""The operation's suite."""

from __future__ import annotations

from dataclasses import dataclass

from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.suite import PreparedCase


@dataclass(frozen=True)
class Case:
    case_id: str
    parameters: dict
    size: int
    scale: float

    def unsupported_reason(self, plan):
        return f"at most 1000 values, got {self.size}" if self.size > 1000 else None

    def prepare(self, plan):
        import torch

        from xllm_kernel.numerics.compare import Expected, judge
        from xllm_kernel.numerics.storage import ArgumentGuard
        from xllm_kernel.numerics.tolerance import Earned

        values = torch.randn(self.size, generator=torch.Generator().manual_seed(1))
        guard = ArgumentGuard({"values": values}, plan.spec.contract.mutates)
        earned = Earned(factor=1.5, worst=0.5, rms=0.29, draws=1)
        exact = values.double() * self.scale
        expected = {
            "scaled": Expected(exact, torch.float32, values.device, earned),
            "parts": (Expected(-exact, torch.float32, values.device, earned),),
        }
        return PreparedCase(
            function=lambda: plan.function(values, self.scale),
            validate=lambda function: {
                **judge(function, expected, guard),
                "case_id": "stolen",
                "operation": "stolen",
                "implementation": "stolen",
                "nonfinite": [float("nan"), float("inf"), -float("inf")],
            },
            metadata={"case_id": "stolen", "status": "stolen", "limit": float("inf")},
        )


class Suite:
    operation = "affine"
    implementations = ("cpu.plain.affine", "cpu.other.affine", "cpu.absent.affine")

    def add_arguments(self, parser):
        parser.add_argument("--sizes", type=int, nargs="+", default=[8])
        parser.add_argument("--scale", type=float, default=3.0)

    def cases(self, args):
        return [
            Case(f"affine/{n}/scale{args.scale}", {"size": n, "scale": args.scale}, n, args.scale)
            for n in args.sizes
        ]

    def trials(self, args):
        return []

    def prepare(self, device, mode, implementation):
        return bind(self.operation, device, mode, implementation)


SUITE = Suite()
