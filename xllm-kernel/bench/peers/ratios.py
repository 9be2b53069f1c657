"""Medians of the blocks that count, and the ratio of two medians with a bootstrap interval; pure.

Takes no samples, and knows not what was timed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from xllm_kernel.benchmark.statistics import median, nearest_rank

_RESAMPLES = 1000
_COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of medians, and the interval that holds it with 95 % confidence."""

    middle: float
    low: float
    high: float


def figure(samples: Sequence[float], enough: int) -> float | None:
    """Return the median, or None where there are too few samples for one."""
    return median(samples) if samples and len(samples) >= enough else None


def ratio(
    numerator: Sequence[float], denominator: Sequence[float], enough: int, seed: int = 0
) -> Ratio | None:
    """Return the ratio of two medians, or None where either has too few samples.

    The interval holds the middle 95 % of the ratios that samples drawn again, with replacement,
    give: the percentile bootstrap. The two are drawn apart from each other, since dropped blocks
    leave no pairs.

    Args:
        numerator: times, all positive.
        denominator: times of what it is compared with, all positive.
        enough: samples that each must have.
        seed: of the draws, so that a report can be computed again.
    """
    top, bottom = figure(numerator, enough), figure(denominator, enough)
    if top is None or bottom is None:
        return None
    rng = random.Random(seed)
    drawn = [_redrawn(numerator, rng) / _redrawn(denominator, rng) for _ in range(_RESAMPLES)]
    outside = (1.0 - _COVERAGE) / 2
    return Ratio(top / bottom, nearest_rank(drawn, outside), nearest_rank(drawn, 1.0 - outside))


def _redrawn(samples: Sequence[float], rng: random.Random) -> float:
    return median(rng.choices(samples, k=len(samples)))
