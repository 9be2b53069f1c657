"""What kept a window or a block of timings from being the measured code's alone; pure.

Reads nothing: ``machine`` does. Every reason is a constant that a report shows as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SWITCHED_OFF = "a thread was switched off its processor before it was done"
WAITED = "a thread waited for a processor"
OTHERS = "other processes were busy"
STOLEN = "a hypervisor took processor time"
THROTTLED = "a processor was throttled for its heat"
SLOWED = "a processor ran at less than half its highest frequency"
BEHIND = "the processor was slower than it mostly is"
UNSETTLED = "threads of an earlier call were still busy"

# The kernel counts processor time in ticks of up to 10 ms, in five columns that are each rounded
# down: a window reads some 30 ms of others' time where there is none.
_TICK_ALLOWANCE_S = 0.03
# Shares of the window, of one processor. A background process that wakes up now and then stays
# below; one that runs takes nearly a whole processor.
_OTHERS_SHARE = 0.15
_STOLEN_SHARE = 0.02
# A scheduler's slice. Within a longer block some thread is switched off on an idle machine too, if
# only for microseconds: what it waited decides.
_SLICE_S = 4e-3
# Of a block's time, over all threads. Waking up on an idle processor takes a few microseconds, much
# of a short block; a busy one is given up after milliseconds.
_WAITED_SHARE_SHORT = 0.1
_WAITED_SHARE_LONG = 0.02
# Many processors run all at once at two thirds of what one of them alone reaches.
_SLOWED_SHARE = 0.5
# A busy thread on the same core, of whomever, costs a third to two thirds of its speed; what comes
# and goes with the caches, a tenth.
_BEHIND = 1.15


@dataclass(frozen=True, slots=True)
class Reading:
    """What the machine had done at an instant; None where the system does not say.

    Attributes:
        at: monotonic seconds.
        own: processor seconds of all processes that are measured, over all their threads.
        busy: processor seconds of all processes, over all processors.
        stolen: seconds that a hypervisor kept processors from running.
        throttles: how often the processors in use were throttled.
        frequency: that of the slowest processor in use, as a share of its highest.
    """

    at: float
    own: float
    busy: float | None = None
    stolen: float | None = None
    throttles: int | None = None
    frequency: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How a process got on until an instant, over all its threads; only differences count.

    Attributes:
        switches: how often a thread was taken off a processor before it was done.
        waited: seconds that threads were ready to run and did not.
    """

    switches: int
    waited: float


def disturbance(before: Reading, after: Reading) -> str | None:
    """Say what disturbed the window between two readings, or None."""
    span = after.at - before.at
    if _grown(before.throttles, after.throttles) > 0:
        return THROTTLED
    if _grown(before.stolen, after.stolen) > _STOLEN_SHARE * span + _TICK_ALLOWANCE_S:
        return STOLEN
    others = _grown(before.busy, after.busy) - (after.own - before.own)
    if others > _OTHERS_SHARE * span + _TICK_ALLOWANCE_S:
        return OTHERS
    # A processor that idles between two blocks is slow too, but hardly at both ends of a window.
    ends = [end for end in (before.frequency, after.frequency) if end is not None]
    return SLOWED if len(ends) == 2 and max(ends) < _SLOWED_SHARE else None


def slowest_pace(paces: Sequence[float]) -> float:
    """Return how long fixed work beside a sample may take; in a sample beyond, it was ``BEHIND``.

    What it mostly takes is the lower quartile: one quick spell, as before a processor warms up, is
    no measure, and of a processor that is shared nearly always, nothing better is known.

    Args:
        paces: what it took beside each sample of one process.
    """
    return _BEHIND * sorted(paces)[len(paces) // 4]


def _grown(before: float | None, after: float | None) -> float:
    """Return by how much a counter grew; a counter that is not there shows nothing."""
    return 0.0 if before is None or after is None else after - before


def interruption(before: Progress, after: Progress, span: float) -> str | None:
    """Say what kept a process from its work in a block of so many seconds, or None."""
    short = span <= _SLICE_S
    if short and after.switches != before.switches:
        return SWITCHED_OFF
    # A thread that sleeps at a barrier and finds its processor taken when it is woken was not
    # switched off; all others wait for it nevertheless.
    share = _WAITED_SHARE_SHORT if short else _WAITED_SHARE_LONG
    return WAITED if after.waited - before.waited > share * span else None
