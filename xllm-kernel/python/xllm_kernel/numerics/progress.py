"""How long a run still takes, from how long it took so far; shows nothing and reads no clock."""

from __future__ import annotations

import math

_ENOUGH = 1.0
"""Seconds; what happened in less says nothing of what is to come."""


def remaining(done: int, total: int, elapsed: float) -> float | None:
    """Estimate the seconds that a run still takes, as if what is left cost what was done.

    Args:
        done: rows that are done.
        total: rows of the run.
        elapsed: seconds since the run began.

    Returns:
        None while too little is done to tell.
    """
    if done < 1 or elapsed < _ENOUGH:
        return None
    return elapsed / done * max(0, total - done)


def worded(seconds: float) -> str:
    """Say a time as exactly as an estimate deserves: ``40 s``, ``3 min``, ``2 h 10 min``."""
    if seconds < 60:
        return f"{max(5, 5 * math.ceil(seconds / 5))} s"
    minutes = math.ceil(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(10 * math.ceil(minutes / 10), 60)
    return f"{hours} h" + (f" {rest} min" if rest else "")
