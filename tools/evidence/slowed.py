"""A suite whose implementations differ by known amounts of work: a loop, and our RMSNorm kernel.

One more implementation does a tenth more: a tenth more turns of the loop, or eleven calls of the
kernel for ten. ``SLOWED_BY`` in the environment slows all of them by such a share, as another
build is.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import xllm_kernel
from xllm_kernel.numerics.suite import PreparedCase, Work
from xllm_kernel.registry import KernelSpec, OpContract, PreparedKernel

SAME, TENTH = "cpu.same.slowed", "cpu.tenth.slowed"
SLOWED_BY = "SLOWED_BY"

_CONTRACT = OpContract("slowed")
_MORE = {SAME: 0.0, TENTH: 0.1}
_TURNS = 10_000
_CALLS = 10
# Of a processor's own caches: what is shared with others would be timed as well.
_SHAPES = ((16, 2048),)
_EPS = 1e-5


@dataclass(frozen=True)
class Loop:
    """Counts to ten thousand, and on by the share."""

    case_id: str = "slowed/loop"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return what there is to know."""
        return {"turns": _TURNS}

    def unsupported_reason(self, plan: PreparedKernel) -> None:
        """Fit every plan."""
        return

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Return the case with the plan's share of more work."""
        turns = round(_TURNS * (1 + plan.function()))

        def count() -> int:
            last = 0
            for last in repeat(1, turns):  # noqa: B007 (the turns are what is timed)
                pass
            return last

        return PreparedCase(count, lambda function: _verdict(function() == 1))


@dataclass(frozen=True)
class Rows:
    """Normalises rows of bfloat16 with our kernel, ten times, and on by the share."""

    rows: int
    width: int

    @property
    def case_id(self) -> str:
        """Return the identifier."""
        return f"slowed/bfloat16/{self.rows}x{self.width}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return what there is to know."""
        return {"dtype": "bfloat16", "rows": self.rows, "width": self.width, "calls": _CALLS}

    def unsupported_reason(self, plan: PreparedKernel) -> None:
        """Fit every plan."""
        return

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Return the case with the plan's share of more work."""
        import torch

        kernel = xllm_kernel.KernelRegistry.get().prepared("rms_norm_out").function
        generator = torch.Generator().manual_seed(5309)
        x = torch.randn(self.rows, self.width, generator=generator).bfloat16()
        weight = torch.randn(self.width, generator=generator).bfloat16()
        out = torch.zeros_like(x)
        calls = round(_CALLS * (1 + plan.function()))
        right = torch.nn.functional.rms_norm(x.double(), (self.width,), weight.double(), _EPS)

        def norm() -> None:
            for _ in repeat(None, calls):
                kernel(out, x, weight, _EPS)

        def validate(function: Callable[[], Any]) -> Mapping[str, Any]:
            function()
            error = (out.double() - right).abs()
            return _verdict(bool((error <= 2.0**-7 * right.abs()).all()))

        # That of one call, so that the ceilings' passes stay in the same cache: they are the
        # yardsticks by which two runs are compared, and no share of them is shown.
        work = Work(x.nbytes + weight.nbytes, out.nbytes, 4 * x.numel())
        return PreparedCase(norm, validate, work=work)


class Suite:
    """The loop and some shapes."""

    operation = "slowed"
    implementations = (SAME, TENTH)
    faults = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Have no options."""

    def cases(self, args: argparse.Namespace) -> list[Any]:
        """Return the cases."""
        return [Loop(), *(Rows(*shape) for shape in _SHAPES)]

    def trials(self, args: argparse.Namespace) -> list[Any]:
        """Return nothing: no guarantee is stated."""
        return []

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Bind our kernel, and return a plan whose function says how much more there is to do."""
        xllm_kernel.initialize(device=device, overrides={"rms_norm_out": "cpu.simd.rms_norm_out"})
        more = _MORE[implementation] + float(os.environ.get(SLOWED_BY, "0"))
        spec = KernelSpec(implementation, _CONTRACT, device, (mode,), "", implementation)
        return PreparedKernel(spec, lambda: more, 1, ())


def _verdict(right: bool) -> Mapping[str, Any]:
    return {"status": "passed"} if right else {"status": "failed", "reason": "a wrong result"}
