"""What follows a row: the next case, the next case in another process, or nothing.

A decision about words alone; who carries it out is in ``processes.crew``.
"""

from __future__ import annotations

from enum import Enum

BAD = ("failed", "error")
FAIL_FAST = "fail_fast"
KEEP_GOING = "keep_going"

# After these, a graph or the device itself may be unusable, as after any error on a device that
# does not recover: later cases of the same process would only echo the fault.
_LAST_STAGES = ("capture", "replay")


class Next(Enum):
    """What is done next."""

    GO_ON = "go on"
    AFRESH = "go on in another process"
    STOP = "stop"


def following(
    on_failure: str | None, status: str, stage: str | None, died: bool, recovers: bool
) -> Next:
    """Decide.

    Args:
        on_failure: ``FAIL_FAST``, ``KEEP_GOING``, or None for neither.
        status: the row's.
        stage: the step in which the case ended.
        died: whether the case ended its process; a capture that is gone with it spoils nothing.
        recovers: whether the device does after an error.
    """
    if status not in BAD:
        return Next.GO_ON
    if on_failure == FAIL_FAST:
        return Next.STOP
    spoiled = stage in _LAST_STAGES and not died
    if not spoiled and (recovers or status != "error"):
        return Next.GO_ON
    return Next.AFRESH if on_failure == KEEP_GOING else Next.STOP
