"""Calls prepared to run together in one execution mode, and what they wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Captured:
    """One replayable unit.

    Attributes:
        calls: operator calls in one replay; timings are divided by it.
        replay: runs them once.
        outputs: returns the structures that the last replay wrote, one a call. Where nothing
            outlives a call (eager), it makes the call.
        outlasting: whether outputs are what the last replay wrote; False where asking makes a call.
    """

    calls: int
    replay: Callable[[], object]
    outputs: Callable[[], list[Any]]
    outlasting: bool = True


def eager(function: Callable[[], Any]) -> Captured:
    """Return the unit of eager mode: the function itself, one call a replay."""
    return Captured(calls=1, replay=function, outputs=lambda: [function()], outlasting=False)
