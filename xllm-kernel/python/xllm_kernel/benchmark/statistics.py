"""Statistics of a few timing samples, defined exactly and kept beside the samples themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

# A median absolute deviation above this share of the median means that the figure moves around.
UNSTABLE_SHARE = 0.1


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def nearest_rank(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed.

    Args:
        values: at least one.
        share: in (0, 1].
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


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
    middle = median(samples)
    deviation = median([abs(s - middle) for s in samples])
    return {
        "median": middle,
        "p90": nearest_rank(samples, 0.9),
        "minimum": min(samples),
        "median_absolute_deviation": deviation,
        "unstable": deviation > UNSTABLE_SHARE * middle,
        "samples": list(samples),
    }
