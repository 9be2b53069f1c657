"""The stage that times a validated case, and an empty callable in the same loop."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from xllm_kernel.benchmark.sampling import Clock, Sampling
from xllm_kernel.benchmark.statistics import summarize
from xllm_kernel.numerics.case_run import MeasurementError
from xllm_kernel.platforms import Platform
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.registry import PreparedKernel


class Timing:
    """Times what a platform captured; knows neither device nor mode."""

    def __init__(self, sampling: Sampling, clock: Clock = time.perf_counter_ns) -> None:
        """Take the sampling rule and the host clock.

        Args:
            sampling: how much to measure.
            clock: monotonic nanoseconds.
        """
        self._sampling, self._clock = sampling, clock

    def refusal(self, plan: PreparedKernel) -> str | None:
        """Refuse operators that write to their inputs: each call would see other data."""
        mutates = plan.spec.contract.mutates
        if not mutates:
            return None
        return (
            f"its contract mutates {', '.join(mutates)}, and cases have no way yet to reset inputs "
            "between calls; it cannot be timed"
        )

    def run(self, platform: Platform, captured: Captured) -> Mapping[str, Any]:
        """Return the statistics of every column, and those of an empty callable.

        Args:
            platform: measures.
            captured: a unit whose outputs were validated.
        """
        measure = partial(self._measure, platform, captured)
        # Both in one loop, with one count of calls: what the loop itself costs is then visible.
        empty = Captured(calls=captured.calls, replay=_nothing, outputs=list)
        with _no_collection():
            count = self._sampling.calls(measure, self._clock)
            samples = self._sampling.take(measure, count, self._clock)
            taken = len(next(iter(samples.values()), ()))
            beside = Sampling(iterations=count, repeats=taken)
            idle = beside.take(partial(self._measure, platform, empty), count, self._clock)
        return {
            "calls_a_replay": captured.calls,
            "iterations": count,
            "repeats": taken,
            **{name: summarize(values) for name, values in samples.items()},
            "empty_callable": {name: summarize(values) for name, values in idle.items()},
        }

    def _measure(self, platform: Platform, captured: Captured, count: int) -> dict[str, float]:
        sample = platform.measure(captured, count, self._clock)
        if sample.get("wall_us", 0.0) <= 0.0:
            raise MeasurementError(
                f"the clock did not advance over {count} replays; raise --iterations"
            )
        return sample


def _nothing() -> None:
    """Cost what a call costs, and no more."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the cyclic garbage collector out of the samples."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
