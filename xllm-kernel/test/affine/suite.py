"""The operation's suite."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.bound import Expectation, Recipe, bind_case


@dataclass(frozen=True)
class Case:
    case_id: str
    parameters: dict
    size: int
    scale: float

    def unsupported_reason(self, plan):
        return f"at most 1000 values, got {self.size}" if self.size > 1000 else None

    def prepare(self, plan):
        prepared = bind_case(plan, Recipe(self._make, _expect))
        return replace(
            prepared,
            validate=lambda function: {
                **prepared.validate(function),
                "case_id": "stolen",
                "operation": "stolen",
                "implementation": "stolen",
                "nonfinite": [float("nan"), float("inf"), -float("inf")],
            },
            metadata={"case_id": "stolen", "status": "stolen", "limit": float("inf")},
        )

    def _make(self, number):
        import torch

        generator = torch.Generator().manual_seed(1 + number)
        return {"values": torch.randn(self.size, generator=generator), "scale": self.scale}


def _expect(arguments, device):
    import torch

    from xllm_kernel.numerics.compare import Expected
    from xllm_kernel.numerics.tolerance import Earned

    earned = Earned(factor=1.5, worst=0.5, rms=0.29, draws=1)
    exact = arguments["values"].double() * arguments["scale"]
    return Expectation(
        {
            "scaled": Expected(exact, torch.float32, device, earned),
            "parts": (Expected(-exact, torch.float32, device, earned),),
        }
    )


class Suite:
    operation = "affine"
    faults = ()
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
