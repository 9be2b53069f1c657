"""When enough rounds were taken: their noise has stopped falling, or time is up; pure.

Takes no samples and reads no clock: the caller passes both in, once a round.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from xllm_kernel.benchmark.statistics.summary import median_of_ordered

# Twice as many independent rounds have 0.71 times the noise. Where they have more than this, it
# lasts longer than a round, and further rounds tell little that is new.
_STILL_FALLING = 0.95
# The spread of fewer rounds is too uncertain to compare: of 24 and 48 it varies by some 15 %.
_FIRST_LOOK = 24
# Fewer have no quartiles worth the name.
_FEW = 6
# Of normal values the median's deviation is 1.253 times that of the mean, and the quartiles are
# 1.349 deviations apart; 1.96 of the former are half an interval of 95 %.
_NOISE_OF_QUARTILES = 1.96 * 1.253 / 1.349


class Stop(Enum):
    """Why no further round is taken."""

    PLATEAU = "plateau"
    BUDGET = "budget"
    EXACT = "exact"


class Plateau:
    """The noise of several contenders' medians, round by round.

    The noise is half the 95 % interval of the median, over the median, from the distance of the
    quartiles: order statistics, so that a round costs little however many there were. Steadier from
    round to round than a bootstrap interval, and blind to wild samples.
    """

    def __init__(self, enough: float = 0.002) -> None:
        """Start without rounds.

        Args:
            enough: noise, as a share of the median, below which more rounds change no verdict.
        """
        self._enough = enough
        self._ordered: list[list[float]] = []
        self._look, self._looked, self._flat = _FIRST_LOOK, math.inf, False
        self.noise = math.inf
        """That of the noisiest contender; infinite while the rounds are too few to tell."""

    @property
    def rounds(self) -> int:
        """How many were added."""
        return len(self._ordered[0]) if self._ordered else 0

    def add(self, values: Sequence[float]) -> None:
        """Take in one round that counts.

        Args:
            values: positive, one a contender, always in the same order: times, or, where there is
                a baseline, times over its time of the same round, from which drift has cancelled.

        Raises:
            ValueError: where the number of contenders is another than before, or none.
        """
        if not self._ordered:
            self._ordered = [[] for _ in values]
        if not values or len(values) != len(self._ordered):
            raise ValueError(
                f"a round needs one value of each of {len(self._ordered)} contenders (at least "
                f"one), got {len(values)}"
            )
        for ordered, value in zip(self._ordered, values, strict=True):
            insort(ordered, value)
        self.noise = max(map(_noise, self._ordered))
        # Looking at every doubling only, since one look in many would see a plateau by chance.
        if self.rounds == self._look:
            self._flat = self.noise > _STILL_FALLING * self._looked
            self._look, self._looked = 2 * self._look, self.noise

    @property
    def settled(self) -> bool:
        """Whether the noise is small, or no longer falls as that of independent rounds would."""
        return self.noise <= self._enough or self._flat


def _noise(ordered: Sequence[float]) -> float:
    count = len(ordered)
    if count < _FEW:
        return math.inf
    apart = ordered[-1 - count // 4] - ordered[count // 4]
    return _NOISE_OF_QUARTILES * apart / math.sqrt(count) / median_of_ordered(ordered)


@dataclass(frozen=True, slots=True)
class Rule:
    """How many rounds a case gets.

    Attributes:
        repeats: rounds that count, exactly; None stops on a plateau or on the budget.
        budget_s: seconds after which no further round begins.
        fewest: rounds taken even where the budget is spent.
        most: rounds taken at most.
    """

    repeats: int | None = None
    budget_s: float = 2.0
    fewest: int = 11
    most: int = 10_000

    def __post_init__(self) -> None:
        """Refuse counts that no run can meet.

        Raises:
            ValueError: for counts below 1, and for more fewest than most rounds.
        """
        if self.repeats is not None and self.repeats < 1:
            raise ValueError(f"a case needs at least 1 round, got repeats {self.repeats}")
        if not 1 <= self.fewest <= self.most:
            raise ValueError(
                f"a case needs 1 <= fewest <= most rounds, got {self.fewest} and {self.most}"
            )

    def stop(self, plateau: Plateau, spent_s: float) -> Stop | None:
        """Say why no further round is needed, or None where one is.

        Args:
            plateau: knows the rounds that count.
            spent_s: seconds since the first round of the case began.
        """
        if self.repeats is not None:
            return Stop.EXACT if plateau.rounds >= self.repeats else None
        if plateau.rounds < self.fewest:
            return None
        if plateau.settled:
            return Stop.PLATEAU
        spent = spent_s >= self.budget_s or plateau.rounds >= self.most
        return Stop.BUDGET if spent else None
