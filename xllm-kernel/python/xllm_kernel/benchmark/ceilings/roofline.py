"""How near a time is to what the machine allows for the same work. Measures nothing.

The ceiling that binds is the slower of memory's and arithmetic's: both must be done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xllm_kernel.numerics.suite import Work

TOLERANCE = 0.12
"""By how much a figure may beat its ceiling before it is an error of measurement.

The figure is a median with noise of its own: a stable column's deviation is at most a tenth of it,
and for normal noise the median of 21 such samples then has a standard error of 1.25 * 1.48 * 10 % /
sqrt(21) = 4 %: this is three times that. The ceiling is the least of its samples, which others can
only raise. Errors that it must find (work left out, bytes counted twice, a call that returns before
it is done) are larger.
"""


def roofline(
    work: Work, median_us: float, ceilings_us: Mapping[str, float], kinds: Mapping[str, str]
) -> dict[str, Any] | None:
    """Compare a time with the passes of the probe over the same work.

    Args:
        work: what a call must at least do.
        median_us: what a call takes, in microseconds.
        ceilings_us: by name of the pass, what it takes for this work, in microseconds.
        kinds: by name of the pass, ``memory`` or ``compute``.

    Returns:
        ``gb_per_s`` (10^9 bytes), ``gflop_per_s`` (10^9 operations), ``ceilings_us``, the
        ``binding`` pass, the ``share`` of its ceiling that was reached, and whether that is
        ``impossible``; None where there is no ceiling.

    Raises:
        ValueError: for times that are not positive.
    """
    for name, time_us in {"the median": median_us, **ceilings_us}.items():
        if not time_us > 0:
            raise ValueError(f"roofline: {name} must be above 0 us, got {time_us}")
    if not ceilings_us:
        return None
    quickest: dict[str, str] = {}
    for name, time_us in ceilings_us.items():
        best = quickest.setdefault(kinds[name], name)
        if time_us < ceilings_us[best]:
            quickest[kinds[name]] = name
    binding = max(quickest.values(), key=ceilings_us.__getitem__)
    share = ceilings_us[binding] / median_us
    return {
        # A byte a microsecond is 10^6 bytes a second.
        "gb_per_s": work.moved_bytes / median_us / 1e3,
        "gflop_per_s": work.operations / median_us / 1e3,
        "ceilings_us": dict(ceilings_us),
        "binding": binding,
        "share": share,
        "impossible": share > 1 + TOLERANCE,
    }
