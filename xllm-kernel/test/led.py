"""Leads a timing stage in tests: so many samples of each regime, and what was told of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import HOT
from xllm_kernel.numerics.case_run import Subject
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.registry import KernelSpec, OpContract, PreparedKernel


def plan(**contract: Any) -> PreparedKernel:
    """Return a plan that does nothing, of some contract."""
    spec = KernelSpec("n", OpContract("op", **contract), "cpu", ("eager",), "", "s")
    return PreparedKernel(spec, lambda: None, 1, ())


class Led:
    """Answers a stage and keeps what it told."""

    def __init__(self, repeats: int) -> None:
        self.told: list[dict[str, Any]] = []
        self._repeats, self._left = repeats, 0

    def __call__(self, question: Mapping[str, Any]) -> dict[str, Any]:
        self.told.append(dict(question))
        if question["event"] == "timed":
            self._left = self._repeats
        self._left -= 1
        return {"event": "sample" if self._left >= 0 else "enough"}

    @property
    def timed(self) -> list[dict[str, Any]]:
        """What was told of each regime."""
        return [event for event in self.told if event["event"] == "timed"]

    @property
    def samples(self) -> list[dict[str, Any]]:
        """What was told of each sample."""
        return [event for event in self.told if event["event"] == "sampled"]

    def column(self, name: str, of: str = "columns") -> list[float]:
        """Return a column of all samples."""
        return [sample[of][name] for sample in self.samples]


def subject(platform: Any, captured: Captured, reset: Reset | None = None, **rest: Any) -> Subject:
    """Return a case that is nothing but a captured unit."""
    prepared = PreparedCase(captured.replay, lambda f: {"status": "passed"}, reset=reset)
    return Subject(platform, plan(), "eager", rest.get("case"), prepared, captured)


def run(
    platform: Any,
    captured: Captured,
    clock: Callable[[], int],
    reset: Reset | None = None,
    *,
    iterations: int | None = 4,
    repeats: int = 3,
    regimes: tuple[str, ...] = (HOT,),
) -> Led:
    """Lead a stage through a captured unit."""
    led = Led(repeats)
    Timing(regimes, iterations, clock).run(subject(platform, captured, reset), led)
    return led
