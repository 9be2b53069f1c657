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
        outputs: returns the structures that the last replay wrote, one a call; it calls nothing.
    """

    calls: int
    replay: Callable[[], object]
    outputs: Callable[[], list[Any]]


def eager(function: Callable[[], Any]) -> Captured:
    """Return the unit of eager mode: one call a replay, its result kept until the next.

    The last result is dropped before the call that replaces it, so that a loop of replays reuses
    its memory as a loop of calls does.
    """
    last: list[Any] = [None]

    def replay() -> None:
        last[0] = None
        last[0] = function()

    return Captured(calls=1, replay=replay, outputs=lambda: list(last))
