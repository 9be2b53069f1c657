"""Leads contenders through a case's regimes and makes their figures; knows no processes.

Whoever takes samples, here or elsewhere, is a function.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xllm_kernel.benchmark import figures
from xllm_kernel.benchmark.ceilings.probe import MOST_THREADS, Pass, Probe
from xllm_kernel.benchmark.conduct import Sample, Taken, conduct
from xllm_kernel.benchmark.statistics import machine
from xllm_kernel.benchmark.statistics.disturbance import Progress, Reading, interruption
from xllm_kernel.benchmark.statistics.plateau import Rule
from xllm_kernel.benchmark.units import COLD, WALL
from xllm_kernel.numerics.processes.wire import Event
from xllm_kernel.numerics.suite import Work

_SEED = 5309
_PASS_US = 500.0  # of a sample of a ceiling
_TRIES = 3


CANDIDATE, BASELINE = "candidate", "baseline"


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who takes part.

    Attributes:
        name: the implementation.
        threads: inside an operator; None leaves them as they are.
        role: whether it is compared, or compared with.
        second: whether it is a second process of the same; the figures are the quicker one's.
    """

    name: str
    threads: int | None = None
    role: str = CANDIDATE
    second: bool = False

    @property
    def twice(self) -> tuple[Contender, Contender]:
        """Return both its processes."""
        return replace(self, second=False), replace(self, second=True)


@dataclass(slots=True)
class Leader:
    """What all cases of a run share.

    Attributes:
        rule: how many samples there are; both processes of a contender share its budget.
        probe: measures ceilings; None where there is none.
        default_threads: of contenders that do not say.
    """

    rule: Rule
    probe: Probe | None = None
    default_threads: int = 1
    _rng: random.Random = field(default_factory=lambda: random.Random(_SEED))
    _own_cpu_s: dict[Contender, float] = field(default_factory=dict)

    def regime(
        self, told: Mapping[Contender, Event]
    ) -> Generator[Contender, Event | None, dict[Contender, dict[str, Any]]]:
        """Yield whose sample is wanted; sent in is what it told, or None where it is gone.

        Args:
            told: by contender, that the regime can be sampled; at least one.

        Returns:
            The figures of each; a second process has none of its own.
        """
        first = next(iter(told.values()))
        passes = self._passes(first, told)
        several = len({key.twice[0] for key in told})
        rule = replace(self.rule, budget_s=self.rule.budget_s * several)
        everybody: list[Contender | _Ceiling] = [*told, *passes]
        course = conduct(everybody, _decisive, rule, self._read, time.monotonic, self._rng)
        key = next(course)
        while True:
            if isinstance(key, _Ceiling):
                sample: Sample | None = key.sample()
            else:
                event = yield key
                sample = None if event is None else self._sample(key, event)
            try:
                key = course.send(sample)
            except StopIteration as end:
                taken, stopped = end.value
                break
        return self._figures(told, taken, stopped.value)

    def _sample(self, key: Contender, event: Event) -> Sample:
        self._own_cpu_s[key] = event["cpu_s"]
        return Sample(event["columns"], event["empty"], event["dropped"], event["pace_us"])

    def _read(self) -> Reading:
        """Read the machine; what the contenders used is this run's own."""
        return machine.read(own=time.process_time() + sum(self._own_cpu_s.values()))

    def _passes(self, about: Event, told: Mapping[Contender, Event]) -> list[_Ceiling]:
        if self.probe is None or about["work"] is None:
            return []
        work, cold = Work(**about["work"]), about["regime"] == COLD
        threads = dict.fromkeys(self._threads(contender) for contender in told)
        return [
            _Ceiling(count, found)
            for count in threads
            if count <= MOST_THREADS
            for found in self.probe.passes(work, count, cold=cold)
        ]

    def _threads(self, contender: Contender) -> int:
        return contender.threads or self.default_threads

    def _figures(
        self, told: Mapping[Contender, Event], taken: Mapping[Any, Taken], stopped: str
    ) -> dict[Contender, dict[str, Any]]:
        found = {}
        for contender in told:
            if contender.second or not taken[contender].samples:
                continue
            both = [one for one in contender.twice if one in told and taken[one].samples]
            one = both[figures.quickest([taken[one] for one in both])]
            about = told[one]
            row = figures.figures(about, taken[one], stopped)
            passes = [
                key
                for key in taken
                if isinstance(key, _Ceiling) and key.threads == self._threads(contender)
            ]
            row["roofline"] = figures.ceilings(
                about["work"],
                row[WALL]["median"],
                {key.found.name: taken[key] for key in passes},
                {key.found.name: key.found.kind for key in passes},
            )
            row |= self._compared(contender, taken)
            row["unstable"] += self._doubts(contender, taken)
            found[contender] = row
        return found

    def _compared(self, contender: Contender, taken: Mapping[Any, Taken]) -> dict[str, Any]:
        """Return the ratio to the baseline of as many threads, or else what chance alone makes."""
        own = [taken[one] for one in contender.twice if one in taken]
        noise = figures.floor(*own) if len(own) > 1 else None
        found = {"noise_floor": noise or figures.halves(taken[contender])}
        base = self._baseline(contender, taken)
        if contender.role == CANDIDATE and len(base) > 1:
            first = base[0]
            theirs = [taken[one] for one in base]
            found["against"] = figures.against(own, theirs, first.name, first.threads)
        return found

    def _baseline(self, contender: Contender, taken: Mapping[Any, Taken]) -> list[Contender]:
        """Return the processes of the baseline of as many threads."""
        return [
            key
            for key in taken
            if isinstance(key, Contender)
            and key.role == BASELINE
            and key.threads == contender.threads
        ]

    def _doubts(self, contender: Contender, taken: Mapping[Any, Taken]) -> list[str]:
        """Say what disturbed those that a candidate is compared with."""
        if contender.role != CANDIDATE:
            return []
        base = self._baseline(contender, taken)
        said = [f"the baseline: {why}" for one in base for why in taken[one].disturbances()]
        return list(dict.fromkeys(said))


def _decisive(samples: Mapping[Any, Sample]) -> list[float]:
    """Return each contender's time, over the baseline's of its threads where there is one.

    Drift cancels in the ratio, and noise that both share is none of the verdict's.
    """
    times = {key: one.columns[WALL] for key, one in samples.items() if isinstance(key, Contender)}
    base = {key.threads: us for key, us in times.items() if key.role == BASELINE and not key.second}
    compared = [
        us / base[key.threads] if key.threads in base else us
        for key, us in times.items()
        if key.role != BASELINE or key.second
    ]
    return compared or list(times.values())


class _Ceiling:
    """A pass of the probe, at so many threads, that takes its turn as a contender does."""

    def __init__(self, threads: int, found: Pass) -> None:
        self.threads, self.found = threads, found
        least = min(found.measure(1) for _ in range(_TRIES))
        self._count = max(1, int(_PASS_US / max(least, 1e-3)))

    def sample(self) -> Sample:
        """Take one sample."""
        before = self._progress()
        us = self.found.measure(self._count)
        disturbed = interruption(before, self._progress(), us * self._count / 1e6)
        return Sample({WALL: us}, disturbed=disturbed)

    def _progress(self) -> Progress:
        """Read how passes got on: what the process waits while their threads start is no matter."""
        return Progress(switches=0, waited=self.found.waited())
