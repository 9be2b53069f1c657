"""What one sample of a regime times: the same buffers, rotated ones, or a call without work.

Knows neither operators nor devices; a platform captures and measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Protocol

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.case_run import CaseEndedError, MeasurementError, Subject
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.platforms import Platform
from xllm_kernel.platforms.captured import Captured

Clock = Callable[[], int]
"""Monotonic nanoseconds."""

Columns = dict[str, float]
"""Microseconds a call, by name."""

HOT, COLD, ENQUEUE, GRAPH = "hot", "cold", "enqueue", "graph"
REGIMES = (HOT, COLD, ENQUEUE, GRAPH)

RESET, ROTATION, WALL = "reset_us", "rotation_us", "wall_us"

# Buffers that are rotated hold more than this many times the last-level cache.
CACHES = 3
# As many copies are rotated at most: each is prepared, and judged, by itself.
_MOST_COPIES = 16
EVERY_CALL = "every call"
_BEFORE = {True: EVERY_CALL, False: "every sample"}


class RegimeAbsentError(Exception):
    """A case has no such regime; says why."""


class Unit(Protocol):
    """What can be sampled.

    Attributes:
        calls: operator calls in one replay.
        iterations: replays that a sample has unless it is said otherwise; None for what time tells.
        reset_before: how often arguments are put back, in words, or None.
        warms: whether some replays before a sample make it steadier.
    """

    calls: int
    iterations: int | None
    warms: bool
    reset_before: str | None

    def sample(self, count: int) -> Columns:
        """Time so many replays as one."""

    def idle(self, count: int) -> Columns:
        """Time an empty callable in the same way."""


def default_regime(mode: str) -> str:
    """Return the regime of a mode where nobody asks for another."""
    return HOT if mode == "eager" else GRAPH


def check_regimes(names: Sequence[str], mode: str) -> None:
    """Raise ConfigurationError for regimes that a mode does not have, or that occur twice."""
    if len(set(names)) < len(names):
        raise ConfigurationError(f"--regimes: each must be named once, got {' '.join(names)}")
    known = (HOT, COLD, ENQUEUE) if mode == "eager" else (GRAPH,)
    wrong = [name for name in names if name not in known]
    if wrong:
        raise ConfigurationError(
            f"--regimes: mode '{mode}' has {', '.join(known)}, got {wrong[0]}; choose another mode"
        )


def unit(regime: str, subject: Subject, clock: Clock) -> Unit:
    """Return what a regime samples of a case.

    Raises:
        RegimeAbsentError: where the case has no such regime.
        CaseEndedError: where a copy of it is wrong.
    """
    if regime == COLD:
        return _rotating(subject, clock)
    if regime == ENQUEUE:
        return _without_work(subject, clock)
    return Steady(subject.platform, subject.captured, subject.prepared.reset, clock)


class Steady:
    """The same buffers in every call."""

    def __init__(
        self, platform: Platform, captured: Captured, reset: Reset | None, clock: Clock
    ) -> None:
        """Take what is timed.

        Args:
            platform: measures.
            captured: the unit.
            reset: runs between timed calls or samples, outside of every timed span.
            clock: host clock.
        """
        self.calls, self.warms = captured.calls, True
        self.iterations: int | None = None
        self.reset_before = None if reset is None else _BEFORE[reset.every_call]
        self._platform, self._captured, self._clock = platform, captured, clock
        self._reset = reset
        self._empty = Captured(captured.calls, _nothing, list)
        self._alike = None if reset is None else Reset(_nothing, reset.every_call)

    def sample(self, count: int) -> Columns:
        """Time replays of the case."""
        sample = self._measured(self._captured, self._reset, count)
        if sample.get(WALL, 0.0) <= 0.0:
            raise MeasurementError(
                f"the clock did not advance over {count} replays; raise --iterations"
            )
        return sample

    def idle(self, count: int) -> Columns:
        """Time replays of nothing; putting nothing back is no figure."""
        columns = self._measured(self._empty, self._alike, count)
        columns.pop(RESET, None)
        return columns

    def _measured(self, captured: Captured, reset: Reset | None, count: int) -> Columns:
        """Take one sample; with a reset before every call, of calls that are timed one by one."""
        measure = self._platform.measure
        if reset is None:
            return measure(captured, count, self._clock)
        if not reset.every_call:
            spent = self._put_back(reset)
            return measure(captured, count, self._clock) | {RESET: spent}
        total: Columns = {}
        for _ in repeat(None, count):
            spent = self._put_back(reset)
            one = measure(captured, 1, self._clock) | {RESET: spent}
            for name, value in one.items():
                total[name] = total.get(name, 0.0) + value
        return {name: value / count for name, value in total.items()}

    def _put_back(self, reset: Reset) -> float:
        """Restore what calls write to and return the microseconds that it took."""
        begin = self._clock()
        reset.function()
        self._platform.synchronize()
        return (self._clock() - begin) / 1e3


class Rotating:
    """Buffers that no cache holds: each call has its own, and before a turn the caches are filled.

    What a turn's calls use was last touched before more than ``CACHES`` last-level caches of other
    memory were written. Filling is outside of every timed span, and a column of its own.
    """

    def __init__(
        self,
        platform: Platform,
        replays: Sequence[Callable[[], object]],
        resets: Sequence[Callable[[], object]],
        fill: Callable[[], object],
        clock: Clock,
    ) -> None:
        """Take what is timed.

        Args:
            platform: measures.
            replays: a call each, on buffers of its own.
            resets: put back what the calls write to.
            fill: writes more memory than the caches hold.
            clock: host clock.
        """
        self.calls, self.warms = 1, False
        self.iterations: int | None = len(replays)
        self.reset_before = "every turn of the buffers" if resets else None
        self._platform, self._replays, self._resets = platform, replays, resets
        self._fill, self._clock = fill, clock

    def sample(self, count: int) -> Columns:
        """Time calls, a turn of the buffers after the other."""
        total: Columns = {}
        left = count
        while left:
            calls = min(left, len(self._replays))
            spent = self._turn()
            one = self._timed(self._replays[:calls])
            for name, value in (one | {ROTATION: spent / calls}).items():
                total[name] = total.get(name, 0.0) + value * calls
            left -= calls
        return {name: value / count for name, value in total.items()}

    def idle(self, count: int) -> Columns:
        """Time as many calls of nothing."""
        return self._timed([_nothing] * min(count, len(self._replays)))

    def _turn(self) -> float:
        """Put back and fill the caches; return the microseconds that it took."""
        begin = self._clock()
        for reset in self._resets:
            reset()
        self._fill()
        self._platform.synchronize()
        return (self._clock() - begin) / 1e3

    def _timed(self, replays: Sequence[Callable[[], object]]) -> Columns:
        def turn() -> None:
            for replay in replays:
                replay()

        captured = Captured(len(replays), turn, list)
        return self._platform.measure(captured, 1, self._clock)


class _Submitting:
    """A steady unit of whose time only the submission counts."""

    def __init__(self, steady: Steady) -> None:
        self.calls, self.warms = steady.calls, True
        self.iterations: int | None = None
        self.reset_before = steady.reset_before
        self._steady = steady

    def sample(self, count: int) -> Columns:
        return _submission(self._steady.sample(count))

    def idle(self, count: int) -> Columns:
        return _submission(self._steady.idle(count))


def _submission(columns: Columns) -> Columns:
    return {WALL: columns["host_enqueue_us"]}


def _rotating(subject: Subject, clock: Clock) -> Unit:
    """Prepare copies of a case, judge each, and rotate through them."""
    cache = subject.platform.last_level_cache_bytes()
    if cache is None:
        raise RegimeAbsentError("the system does not say how large the last-level cache is")
    wanted = CACHES * cache + 1
    count = max(1, min(_MOST_COPIES, -(-wanted // max(1, touched_bytes(subject.prepared)))))
    copies = [subject.prepared] + [subject.case.prepare(subject.plan) for _ in range(count - 1)]
    for copy in copies[1:]:
        _judge(copy)
    captured = [subject.platform.capture(copy.function, subject.mode, calls=1) for copy in copies]
    resets = [copy.reset.function for copy in copies if copy.reset is not None]
    fill = _filler(wanted, subject.plan.spec.device)
    return Rotating(subject.platform, [c.replay for c in captured], resets, fill, clock)


def _without_work(subject: Subject, clock: Clock) -> Unit:
    """Return a call that comes back before work is done, or has none where calls wait for it."""
    platform = subject.platform
    if platform.submits:
        return _Submitting(Steady(platform, subject.captured, subject.prepared.reset, clock))
    if subject.prepared.without_work is None:
        raise RegimeAbsentError("the suite states no call without work")
    prepared = subject.prepared.without_work()
    _judge(prepared)
    captured = platform.capture(prepared.function, subject.mode, calls=1)
    return Steady(platform, captured, prepared.reset, clock)


def _judge(prepared: PreparedCase) -> None:
    if prepared.reset is not None:
        prepared.reset.function()
    verdict = prepared.validate(prepared.function)
    if verdict.get("status") != "passed":
        raise CaseEndedError("failed", "validate copy", str(verdict.get("reason")))


def touched_bytes(prepared: PreparedCase) -> int:
    """Return the bytes that a call moves as its suite says, or else those of its arguments."""
    if prepared.work is not None:
        return prepared.work.moved_bytes
    return sum(a.numel() * a.element_size() for a in prepared.arguments.values() if is_tensor(a))


def _filler(size: int, device: str) -> Callable[[], object]:
    import torch

    memory = torch.zeros(size // 4 + 1, dtype=torch.int32, device=device)
    return lambda: memory.add_(1)


def _nothing() -> None:
    """Cost what a call costs, and no more."""
