"""Rounds of samples: whose turn it is, which of them count, and when there are enough.

Pure: samples are sent in, and the machine is read by a function; knows neither clocks nor workers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from xllm_kernel.benchmark.statistics.disturbance import BEHIND, Reading, disturbance, slowest_pace
from xllm_kernel.benchmark.statistics.plateau import Plateau, Rule, Stop

# The machine is read at the ends of windows, too coarsely for single samples.
_WINDOW_S = 0.5
# So many times its budget a case may take where the machine is busy.
_PATIENCE = 2
# With fewer undisturbed samples than this, the disturbed ones have to do, and the row says so.
FEWEST = 5

Columns = dict[str, float]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one contender gave in one round.

    Attributes:
        columns: microseconds a call, by name.
        empty: likewise, of an empty callable.
        disturbed: why it should not count, or None.
        pace: microseconds that fixed work beside it took; None where there was none.
    """

    columns: Columns
    empty: Columns = field(default_factory=dict)
    disturbed: str | None = None
    pace: float | None = None


@dataclass(slots=True)
class Taken:
    """All samples of one contender.

    Attributes:
        samples: by number of the round, disturbed ones too.
        exact: whether all count, since so many were asked for.
    """

    samples: dict[int, Sample] = field(default_factory=dict)
    exact: bool = False

    def rounds(self) -> list[int]:
        """Return the rounds whose samples count, in order."""
        calm = [number for number, sample in self.samples.items() if sample.disturbed is None]
        return list(self.samples) if self.exact or len(calm) < FEWEST else calm

    def dropped(self) -> dict[str, int]:
        """Count the samples that do not count, by reason."""
        left = self.samples.keys() - set(self.rounds())
        return dict(Counter(str(self.samples[number].disturbed) for number in left))

    def disturbances(self) -> list[str]:
        """Return the reasons why samples that do count should not."""
        reasons = (self.samples[number].disturbed for number in self.rounds())
        return list(dict.fromkeys(reason for reason in reasons if reason is not None))

    def values(self, column: str, rounds: Sequence[int]) -> list[float]:
        """Return a column's values of some rounds."""
        return [self.samples[number].columns[column] for number in rounds]


Decisive = Callable[[Mapping[Key, Sample]], Sequence[float]]
"""Takes a round's samples; returns the values whose noise decides when there are enough.

None where those that are left take part for others, who went away: there is nothing to go on for.
"""

Conducted = tuple[dict[Key, Taken], Stop]
"""What everybody gave, and why it stopped."""


def conduct(
    contenders: Sequence[Key],
    decisive: Decisive[Key],
    rule: Rule,
    read: Callable[[], Reading],
    clock: Callable[[], float],
    rng: random.Random,
) -> Generator[Key, Sample | None, Conducted[Key]]:
    """Yield whose sample is wanted, round by round, each in an order of its own.

    Sent in are samples, and None for a contender that is no more; the rest go on without it.

    Args:
        contenders: who takes part.
        decisive: says what of a round that was calm for all decides.
        rule: how many rounds there are.
        read: reads the machine, at the ends of windows alone: with many processors that takes long.
        clock: seconds as in a reading's ``at``, read once a round; they count against the budget.
        rng: decides the order.
    """
    rounds = _Rounds(
        rule, decisive, {key: Taken(exact=rule.repeats is not None) for key in contenders}
    )
    present = list(contenders)
    began = before = read()
    stop = None
    while stop is None:
        for key in rng.sample(present, len(present)):
            sample = yield key
            if sample is None:
                present.remove(key)
            else:
                rounds.taken[key].samples[rounds.count] = sample
        rounds.end_one(present)
        wanted = rounds.wanted
        if not wanted or rounds.complete or clock() - before.at >= _WINDOW_S:
            now = read()
            rounds.end_window(disturbance(before, now))
            before = now
            stop = rounds.stop(now.at - began.at) if wanted else Stop.BUDGET
    rounds.end()
    return rounds.taken, stop


def _behind(sample: Sample, limit: float | None) -> bool:
    return limit is not None and sample.pace is not None and sample.pace > limit


class _Rounds(Generic[Key]):
    """The rounds so far; those of the window that is open have not been judged yet."""

    def __init__(self, rule: Rule, decisive: Decisive[Key], taken: dict[Key, Taken]) -> None:
        self.taken, self.count = taken, 0
        self._rule, self._decisive = rule, decisive
        self._plateau = Plateau()
        self._present: list[Key] = []
        self._window: list[int] = []

    def end_one(self, present: Sequence[Key]) -> None:
        """Close a round; noise is counted anew where somebody went away."""
        if self._present != list(present):
            self._present, self._plateau = list(present), Plateau()
        self._window.append(self.count)
        self.count += 1

    def _of(self, number: int) -> dict[Key, Sample]:
        """Return the samples of a round, of those who are still there."""
        return {key: self.taken[key].samples[number] for key in self._present}

    @property
    def wanted(self) -> bool:
        """Whether anybody is left for whom rounds are taken."""
        return bool(self._present) and bool(self._decisive(self._of(self.count - 1)))

    def end_window(self, why: str | None) -> None:
        """Take in the rounds of a window that was calm, or say of all what disturbed them."""
        limits, wanted = (self._slowest_paces(), self.wanted) if why is None else ({}, False)
        for number in self._window:
            samples = self._of(number)
            if why is not None:
                self._mark(number, samples, why)
            elif wanted and all(
                sample.disturbed is None and not _behind(sample, limits.get(key))
                for key, sample in samples.items()
            ):
                self._plateau.add(self._decisive(samples))
        self._window.clear()

    def _mark(self, number: int, samples: Mapping[Key, Sample], why: str) -> None:
        for key, sample in samples.items():
            if sample.disturbed is None:
                self.taken[key].samples[number] = replace(sample, disturbed=why)

    def end(self) -> None:
        """Say of samples that the processor was slow beside them, now that its pace is known."""
        limits = self._slowest_paces()
        for key, limit in limits.items():
            for number, sample in self.taken[key].samples.items():
                if _behind(sample, limit):
                    self._mark(number, {key: sample}, BEHIND)

    def _slowest_paces(self) -> dict[Key, float]:
        """Return how long fixed work may take beside a sample; nothing where all samples count."""
        if self._rule.repeats is not None:
            return {}
        paces = {
            key: [one.pace for one in taken.samples.values() if one.pace is not None]
            for key, taken in self.taken.items()
        }
        return {key: slowest_pace(known) for key, known in paces.items() if known}

    @property
    def complete(self) -> bool:
        """Whether as many rounds are there as were asked for."""
        return self.count == self._rule.repeats

    def stop(self, spent_s: float) -> Stop | None:
        """Say why no further round is taken, or None."""
        if self._rule.repeats is not None:
            return Stop.EXACT if self.complete else None
        # Where few rounds are calm, waiting for more could last for ever.
        late = self.count >= self._rule.fewest and spent_s >= _PATIENCE * self._rule.budget_s
        return self._rule.stop(self._plateau, spent_s) or (Stop.BUDGET if late else None)
