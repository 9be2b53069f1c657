"""Short timed blocks, taken in turns, and which of them count; pure but for what is passed in.

Knows neither clocks nor libraries: functions that it is given take a block and read the machine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

SWITCHED_OFF = "switched off a processor"
WAITED = "waited for a processor"
OTHERS = "other processes ran"
STOLEN = "processor time stolen"

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


@dataclass(frozen=True, slots=True)
class Block:
    """A few calls in a row, timed as one.

    Attributes:
        us: microseconds a call.
        calls: how many.
        dropped: why it does not count; None if it does.
    """

    us: float
    calls: int
    dropped: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What the machine had done at an instant, in seconds; only differences mean anything.

    Attributes:
        at: monotonic time.
        busy: processor time of all processes, over all processors.
        own: processor time of this process, over all its threads.
        stolen: time that a hypervisor kept processors from running.
    """

    at: float
    busy: float
    own: float
    stolen: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How this process got on until an instant, over all its threads; only differences count.

    Attributes:
        switches: how often a thread was taken off a processor before it was done.
        waited: seconds that threads were ready to run and did not.
    """

    switches: int
    waited: float


@dataclass(frozen=True, slots=True)
class Rule:
    """How many blocks make a figure, and how long to look for them.

    Attributes:
        wanted: undisturbed blocks of each contender, after which enough is known.
        enough: fewer give no figure.
        budget_s: time after which no further window begins.
        window_s: shortest window; the machine is read at its ends, too coarsely for single blocks.
    """

    wanted: int = 25
    enough: int = 5
    budget_s: float = 10.0
    window_s: float = 0.5


def disturbance(before: Reading, after: Reading) -> str | None:
    """Say what disturbed the window between two readings, or None."""
    span = after.at - before.at
    if after.stolen - before.stolen > _STOLEN_SHARE * span + _TICK_ALLOWANCE_S:
        return STOLEN
    others = (after.busy - before.busy) - (after.own - before.own)
    if others > _OTHERS_SHARE * span + _TICK_ALLOWANCE_S:
        return OTHERS
    return None


def interruption(before: Progress, after: Progress, span: float) -> str | None:
    """Say what kept this process from its work in a block of so many seconds, or None."""
    short = span <= _SLICE_S
    if short and after.switches != before.switches:
        return SWITCHED_OFF
    # A thread that sleeps at a barrier and finds its processor taken when it is woken was not
    # switched off; all others wait for it nevertheless.
    share = _WAITED_SHARE_SHORT if short else _WAITED_SHARE_LONG
    return WAITED if after.waited - before.waited > share * span else None


def kept(blocks: Sequence[Block]) -> list[float]:
    """Return the times of the blocks that count, in the order they were taken."""
    return [block.us for block in blocks if block.dropped is None]


def drops(blocks: Sequence[Block]) -> dict[str, int]:
    """Count the blocks that do not count, by reason."""
    return dict(Counter(block.dropped for block in blocks if block.dropped is not None))


Key = TypeVar("Key", bound=Hashable)


def interleave(
    contenders: Sequence[Key],
    take: Callable[[Key], Block],
    read: Callable[[], Reading],
    rule: Rule,
    rng: random.Random,
) -> dict[Key, list[Block]]:
    """Take blocks of all contenders in rounds, each in an order of its own.

    Rounds form windows; what disturbed a window drops all its blocks.

    Args:
        contenders: names of what is timed.
        take: times one block, and drops it where it knows a reason.
        read: reads the machine; its ``at`` is the time that counts against the budget.
        rule: when to stop.
        rng: decides the order.

    Returns:
        Every block that was taken, the dropped ones too.
    """
    blocks: dict[Key, list[Block]] = {name: [] for name in contenders}
    before = read()
    end = before.at + rule.budget_s
    while before.at < end and _wanting(blocks, rule):
        window: list[tuple[Key, Block]] = []
        after = before
        while after.at - before.at < rule.window_s:
            window += [(name, take(name)) for name in rng.sample(contenders, len(contenders))]
            after = read()
        why = disturbance(before, after)
        for name, block in window:
            dropped = block if block.dropped or why is None else replace(block, dropped=why)
            blocks[name].append(dropped)
        before = after
    return blocks


def _wanting(blocks: dict[Key, list[Block]], rule: Rule) -> bool:
    return any(len(kept(taken)) < rule.wanted for taken in blocks.values())
