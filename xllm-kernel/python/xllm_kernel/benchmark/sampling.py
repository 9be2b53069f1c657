"""How many calls make a sample, and how many samples make a figure.

Pure decisions over a clock that is passed in, so that tests decide what time it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], int]
"""Monotonic nanoseconds."""

Measure = Callable[[int], dict[str, float]]
"""Times so many replays in a row; microseconds a call, by column."""


# One interrupted call must not pass for a slow one, so the quickest of a few counts.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Sampling:
    """The rule of one run.

    Attributes:
        iterations: replays a sample; None chooses so many that a sample lasts ``sample_s``.
        repeats: samples; None takes them until ``budget_s`` is spent, within the bounds below.
        sample_s: shortest sample, well above the clock's resolution.
        budget_s: time for a case's samples.
        fewest: samples taken even where the budget is spent.
        most: samples taken at most.
    """

    iterations: int | None = None
    repeats: int | None = None
    sample_s: float = 1e-3
    budget_s: float = 0.25
    fewest: int = 5
    most: int = 51

    def calls(self, measure: Measure, clock: Clock) -> int:
        """Return the number of replays a sample."""
        if self.iterations is not None:
            return self.iterations
        wanted_ns = self.sample_s * 1e9
        count = 1
        while True:
            spent = min(_duration(measure, count, clock) for _ in range(_TRIES))
            if spent >= wanted_ns or count >= 1 << 20:
                return count
            # Aim past the target, but never trust one short measurement for more than a factor 10.
            growth = 1.2 * wanted_ns / spent if spent > 0 else 10.0
            count = max(count + 1, int(count * min(10.0, growth)))

    def take(self, measure: Measure, count: int, clock: Clock) -> dict[str, list[float]]:
        """Take the samples and return them by column.

        Args:
            measure: takes one sample.
            count: replays a sample.
            clock: decides when the budget is spent.
        """
        columns: dict[str, list[float]] = {}
        end = clock() + int(self.budget_s * 1e9)
        taken = 0
        while not self._enough(taken, clock() >= end):
            for name, value in measure(count).items():
                columns.setdefault(name, []).append(value)
            taken += 1
        return columns

    def _enough(self, taken: int, budget_spent: bool) -> bool:
        if self.repeats is not None:
            return taken >= self.repeats
        return taken >= self.most or (taken >= self.fewest and budget_spent)


def _duration(measure: Measure, count: int, clock: Clock) -> int:
    begin = clock()
    measure(count)
    return clock() - begin
