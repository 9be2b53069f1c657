"""The stage that times a validated case, and an empty callable in the same loop."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any

from xllm_kernel.benchmark.sampling import Clock, Sampling
from xllm_kernel.benchmark.statistics import summarize
from xllm_kernel.numerics.case_run import MeasurementError
from xllm_kernel.numerics.suite import Reset
from xllm_kernel.platforms import Platform
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.registry import PreparedKernel

_RESET = "reset_us"

# Where threads wait for one another by spinning, another busy process stretches every call by whole
# scheduler slices, and alike, so that no spread shows it. Taken off the processor more often than
# this, a process does not measure itself: a slice is 3 to 4 ms, and an idle machine stays below 20.
INTERRUPTIONS_A_SECOND = 60.0
_BEFORE = {True: "every call", False: "every sample"}


class Timing:
    """Times what a platform captured; knows neither device nor mode."""

    def __init__(self, sampling: Sampling, clock: Clock = time.perf_counter_ns) -> None:
        """Take the sampling rule and the host clock.

        Args:
            sampling: how much to measure.
            clock: monotonic nanoseconds.
        """
        self._sampling, self._clock = sampling, clock

    def refusal(self, plan: PreparedKernel, reset: Reset | None = None) -> str | None:
        """Refuse operators that write to their inputs and are not reset: each call sees other data.

        Args:
            plan: the implementation.
            reset: what the suite declares for its cases.
        """
        mutates = plan.spec.contract.mutates
        if not mutates or reset is not None:
            return None
        return (
            f"its contract mutates {', '.join(mutates)}, and its suite declares no reset that puts "
            "them back between calls; it cannot be timed"
        )

    def run(
        self, platform: Platform, captured: Captured, reset: Reset | None = None
    ) -> Mapping[str, Any]:
        """Return the statistics of every column, and those of an empty callable.

        Args:
            platform: measures.
            captured: a unit whose outputs were validated.
            reset: runs between timed calls or samples; its own cost is the column ``reset_us``.
        """
        measure = partial(self._measure, platform, captured, reset)
        # Both in one loop, with one count of calls: what the loop itself costs is then visible.
        empty = Captured(calls=captured.calls, replay=_nothing, outputs=list)
        with _no_collection():
            count = self._sampling.calls(measure, self._clock)
            interruptions, began = _involuntary_switches(), time.monotonic()
            samples = self._sampling.take(measure, count, self._clock)
            interruptions = _involuntary_switches() - interruptions
            a_second = interruptions / max(time.monotonic() - began, 1e-3)
            taken = len(next(iter(samples.values()), ()))
            beside = Sampling(iterations=count, repeats=taken)
            alike = None if reset is None else Reset(_nothing, reset.every_call)
            idle = beside.take(partial(self._measure, platform, empty, alike), count, self._clock)
        columns = {name: summarize(values) for name, values in samples.items()}
        if a_second > INTERRUPTIONS_A_SECOND:
            for column in columns.values():
                column["unstable"] = True
        return {
            "calls_a_replay": captured.calls,
            "iterations": count,
            "repeats": taken,
            "interruptions_a_second": a_second,
            **({} if reset is None else {"reset_before": _BEFORE[reset.every_call]}),
            **columns,
            "empty_callable": {
                name: summarize(values) for name, values in idle.items() if name != _RESET
            },
        }

    def _measure(
        self, platform: Platform, captured: Captured, reset: Reset | None, count: int
    ) -> dict[str, float]:
        """Take one sample; with a reset before every call, of calls that are timed one by one."""
        if reset is None:
            sample = platform.measure(captured, count, self._clock)
        elif not reset.every_call:
            spent = self._put_back(platform, reset)
            sample = platform.measure(captured, count, self._clock) | {_RESET: spent}
        else:
            sample = {}
            for _ in repeat(None, count):
                spent = self._put_back(platform, reset)
                one = platform.measure(captured, 1, self._clock) | {_RESET: spent}
                for name, value in one.items():
                    sample[name] = sample.get(name, 0.0) + value
            sample = {name: value / count for name, value in sample.items()}
        if sample.get("wall_us", 0.0) <= 0.0:
            raise MeasurementError(
                f"the clock did not advance over {count} replays; raise --iterations"
            )
        return sample

    def _put_back(self, platform: Platform, reset: Reset) -> float:
        """Restore what calls write to and return the microseconds that it took."""
        begin = self._clock()
        reset.function()
        platform.synchronize()
        return (self._clock() - begin) / 1e3


def _involuntary_switches() -> int:
    """Count how often this process was taken off a processor before it was done."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


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
