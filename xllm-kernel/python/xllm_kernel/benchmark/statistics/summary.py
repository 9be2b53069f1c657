"""Statistics of one column of timing samples, defined exactly and kept beside the samples.

Compares nothing, and does not know what was timed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

# A median absolute deviation above this share of the median means that the figure moves around.
UNSTABLE_SHARE = 0.1


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    return median_of_ordered(sorted(values))


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed.

    Args:
        values: at least one.
        share: in (0, 1].
    """
    return _nearest_rank_of_ordered(sorted(values), share)


def summarize(samples: Sequence[float]) -> dict[str, Any]:
    """Return the statistics of one column, in the samples' unit.

    Args:
        samples: in the order they were taken.

    Raises:
        ValueError: without samples, and for one that is not finite or is negative.
    """
    if not samples:
        raise ValueError("a timing needs at least one sample, got none")
    bad = [s for s in samples if not (math.isfinite(s) and s >= 0.0)]
    if bad:
        raise ValueError(f"a timing sample must be finite and not negative, got {bad[0]}")
    ordered = sorted(samples)
    middle = median_of_ordered(ordered)
    deviation = median([abs(s - middle) for s in ordered])
    return {
        "median": middle,
        "p90": _nearest_rank_of_ordered(ordered, 0.9),
        "minimum": ordered[0],
        "median_absolute_deviation": deviation,
        "unstable": deviation > UNSTABLE_SHARE * middle,
        "samples": list(samples),
    }


def median_of_ordered(ordered: Sequence[float]) -> float:
    """Return the median of values in ascending order."""
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def _nearest_rank_of_ordered(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
