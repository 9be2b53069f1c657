"""The stage that times a validated case, sample by sample, as whoever leads the run asks for them.

Decides nothing: how many samples there are, and what becomes of them, the leader knows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from xllm_kernel.benchmark import honesty
from xllm_kernel.benchmark.statistics import machine
from xllm_kernel.benchmark.statistics.disturbance import UNSETTLED, interruption
from xllm_kernel.benchmark.units import (
    ENQUEUE,
    EVERY_CALL,
    RESET,
    WALL,
    Clock,
    Columns,
    RegimeAbsentError,
    Unit,
    unit,
)
from xllm_kernel.numerics.case_run import Ask, CaseEndedError, Subject
from xllm_kernel.numerics.suite import Reset
from xllm_kernel.registry import PreparedKernel

# Shorter than a scheduler's slice, so that most samples are left alone, and well above the clock's
# resolution; a longer call is a sample by itself.
_SAMPLE_US = 1e3
# Caches and threads that must wake up do not show in a call this long.
_LONG_US = 20e3
# One interrupted call must not pass for a slow one, so the quickest of a few counts.
_TRIES = 3
_MOST_REPLAYS = 1 << 20


@dataclass(frozen=True, slots=True)
class Timing:
    """Times what a platform captured; knows neither device nor mode.

    Attributes:
        regimes: names, in the order in which they are timed.
        iterations: replays a sample, exactly; None lets a sample last about a millisecond.
        clock: monotonic nanoseconds; taken before an implementation could replace it.
    """

    regimes: tuple[str, ...]
    iterations: int | None = None
    clock: Clock = time.perf_counter_ns

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

    def run(self, subject: Subject, ask: Ask) -> Mapping[str, Any]:
        """Time every regime.

        Args:
            subject: a case that passed.
            ask: is told ``timed`` when a regime can be sampled, then ``sampled`` with each sample;
                answers ``sample`` for one more, anything else ends the regime.

        Returns:
            What the row's metadata should say beside.

        Raises:
            CaseEndedError: where no regime applies.
        """
        work = subject.prepared.work
        told = None if work is None else asdict(work)
        absent: dict[str, str] = {}
        with _no_collection():
            for regime in self.regimes:
                try:
                    timed = unit(regime, subject, self.clock)
                except RegimeAbsentError as error:
                    absent[regime] = str(error)
                else:
                    done = None if regime == ENQUEUE else told  # a call alone does no work
                    self._serve(timed, {"regime": regime, "work": done}, ask)
        if len(absent) == len(self.regimes):
            reasons = "; ".join(f"regime '{name}': {why}" for name, why in absent.items())
            raise CaseEndedError("not_applicable", "timing", reasons)
        return {"regimes_left_out": absent} if absent else {}

    def examine(self, subject: Subject) -> None:
        """Look for what only time shows; see ``honesty``. Other data stand in the case then.

        Raises:
            CaseEndedError: naming what was seen.
        """
        with _no_collection():
            honesty.check(subject, self.clock)

    def _serve(self, timed: Unit, about: Mapping[str, Any], ask: Ask) -> None:
        count = self.iterations or timed.iterations or calibrated(timed)
        machine.settle()
        answer = ask(
            {
                "event": "timed",
                "iterations": count,
                "calls_a_replay": timed.calls,
                "reset_before": timed.reset_before,
                **about,
            }
        )
        warmups = 1 + count // 8 if timed.warms else 0
        while answer["event"] == "sample":
            sample = _sample(timed, count, warmups)
            if sample["columns"][WALL] * count * timed.calls >= _LONG_US:
                warmups = 0
            answer = ask({"event": "sampled", **sample})


def calibrated(timed: Unit) -> int:
    """Return how many replays make a sample, with what is put back between them."""
    count = 1
    while True:
        us = min(_lasted(timed, timed.sample(count)) for _ in range(_TRIES)) * count
        if us >= _SAMPLE_US or count >= _MOST_REPLAYS:
            return count
        # Aim past the target, but never trust one short measurement for more than a factor 10.
        growth = 1.2 * _SAMPLE_US / us
        count = max(count + 1, int(count * min(10.0, growth)))


def _lasted(timed: Unit, columns: Columns) -> float:
    """Return the microseconds of a replay; whatever gets in between is of the sample as well."""
    between = columns.get(RESET, 0.0) if timed.reset_before == EVERY_CALL else 0.0
    return columns[WALL] * timed.calls + between


def _sample(timed: Unit, count: int, warmups: int) -> dict[str, Any]:
    """Warm up, take one sample and an empty one, and say what got in between.

    Args:
        timed: what is sampled.
        count: replays in the sample.
        warmups: replays before it.

    Returns:
        ``columns`` and ``empty`` in microseconds a call, ``dropped``: why the sample should not
        count, or None, ``pace_us``: what fixed work took before and after, the longer of the two,
        and ``cpu_s``: processor time of this process until now.
    """
    pace = machine.pace()
    if warmups:
        # Others ran since the last sample, and took caches and predictors.
        timed.sample(warmups)
    before = machine.progress()
    columns = timed.sample(count)
    after = machine.progress()
    span = columns[WALL] * count * timed.calls / 1e6
    dropped = interruption(before, after, span)
    pace = max(pace, machine.pace())
    empty = timed.idle(count)
    if not machine.settle():
        dropped = dropped or UNSETTLED
    return {
        "columns": columns,
        "empty": empty,
        "dropped": dropped,
        "pace_us": pace,
        "cpu_s": time.process_time(),
    }


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
