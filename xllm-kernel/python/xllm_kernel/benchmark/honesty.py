"""Whether a figure could be of less work than it seems: remembered results, late computation.

Outputs are judged elsewhere; here only what time alone can show. Neither check knows an operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from xllm_kernel.benchmark.units import WALL, Clock, touched_bytes
from xllm_kernel.numerics.case_run import CaseEndedError, Subject
from xllm_kernel.numerics.replayed import tensors_of
from xllm_kernel.numerics.storage import is_tensor, storage_bytes
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.platforms.evidence import disclaimer

# A call on data that it has not seen may take this many times one on data that it has: honest ones
# differ by what branch predictors and caches learn, a remembered result by the whole computation.
MOST_TIMES_SLOWER = 3.0
# A call alone also waits for threads that a call in a row finds awake: of 25 us on two threads of a
# busy machine, three times as long was seen.
MOST_TIMES_SLOWER_ALONE = 6.0
# Below, a result that is looked up costs about what computing it does, and nothing is to be gained.
_WORTH_US = 20.0
# Larger cases take long to fill, and whoever remembers results does so at any size.
_MOST_BYTES = 1 << 22
# Beyond, a call on other memory may leave too little of the case's in the caches.
_MOST_BYTES_IN_TURNS = 1 << 20
_ROW_US = 5e3
_PAIRS = 7
# On a busy machine all of a few calls on two threads can be held up by chance; so many are not.
_MOST_PAIRS = 63
# Who remembers from the second or the tenth call on has begun by then.
_CALLS_TO_REMEMBER = 32
_BUDGET_S = 2.0

_LATE_S = 0.02
_TRIES = 2


def check(subject: Subject, clock: Clock) -> None:
    """Withdraw a case whose figures are of other work than a first call's.

    Raises:
        CaseEndedError: naming what was seen.
    """
    late = late_elements(subject)
    if late:
        raise CaseEndedError(
            "failed",
            "timing",
            f"an output changed after the call had returned and the device was done ({late}); all "
            "work must be over by then",
        )
    times = hurried(subject, clock)
    if times is not None and times > MOST_TIMES_SLOWER_ALONE:
        raise CaseEndedError(
            "failed",
            "timing",
            f"a call on new data takes {times:.1f} times one of many in a row on the same; each "
            "call must do the whole work, however soon it follows another",
        )
    times = remembered(subject, clock)
    if times is not None and times > MOST_TIMES_SLOWER:
        raise CaseEndedError(
            "failed",
            "timing",
            f"a call on new data takes {times:.1f} times one on data that it has seen; results "
            "must be computed in every call",
        )


def late_elements(subject: Subject, wait: Callable[[float], None] = time.sleep) -> str | None:
    """Look whether outputs change after a replay is done; return the first that does.

    Args:
        subject: the case.
        wait: lets so many seconds pass.
    """
    platform, captured, prepared = subject.platform, subject.captured, subject.prepared
    written: Collection[str] = subject.plan.spec.contract.mutates
    if prepared.reset is not None and not written:
        written = prepared.arguments.keys()  # the case alone knows which
    for _ in range(_TRIES):
        _put_back(subject)
        captured.replay()
        platform.synchronize()
        outputs = tensors_of(captured.outputs())
        outputs += [a for name, a in prepared.arguments.items() if name in written and is_tensor(a)]
        # The last ones first: whoever computes meanwhile has begun at the front.
        bytes_of = [storage_bytes(tensor) for tensor in reversed(outputs)]
        seen = [memory.clone() for memory in bytes_of]
        wait(_LATE_S)
        platform.synchronize()
        for number, (memory, before) in enumerate(zip(bytes_of, seen, strict=True), 1):
            if not memory.equal(before):
                return f"output {len(outputs) - number}"
    return None


def remembered(subject: Subject, clock: Clock) -> float | None:
    """Compare single replays on new data with ones on data that were there before.

    Both follow the same work: new data are written into the arguments, or into memory like them.
    What keeps results by address, by version or by value is quick on the second kind alone.

    Returns:
        The least time of the first kind over that of the second, for others only ever slow a call
        down; None where there are no new data, a call takes too little to gain anything by, or
        times stand for no device.
    """
    prepared = subject.prepared
    if prepared.refresh is None or touched_bytes(prepared) > _MOST_BYTES:
        return None
    if disclaimer(subject.platform.evidence) is not None:
        return None
    other = subject.case.prepare(subject.plan)  # memory like the case's, for its data to go to
    if other.refresh is None:
        return None
    end = clock() + int(_BUDGET_S * 1e9)
    new: list[float] = []
    seen: list[float] = []
    for number in _numbers():
        prepared.refresh(number)
        new.append(_one(subject, clock))
        affordable = int((end - clock()) / (2e3 * max(new[-1], 1e-3)))
        for _ in range(min(_CALLS_TO_REMEMBER, affordable)):
            _one(subject, clock)
        other.refresh(number)
        seen.append(_one(subject, clock))
        times = min(new) / max(min(seen), 1e-3)
        wanted = _PAIRS if times <= MOST_TIMES_SLOWER else _MOST_PAIRS
        if len(new) >= wanted or clock() >= end:
            break
    return None if min(new) < _WORTH_US else times


def hurried(subject: Subject, clock: Clock) -> float | None:
    """Compare single calls on new data with calls on the same data that follow one another.

    What leaves work out where calls follow closely is quick in the second kind alone. The first
    follow calls on other memory, so that threads are awake and the code is in the caches.

    Returns:
        The least time of the first kind over that of the second; None where the two would differ
        for other reasons: on devices with a queue, where calls put back what they wrote, in
        larger memory; and where a call takes too little to tell.

    Raises:
        CaseEndedError: where the result of such a call is wrong.
    """
    prepared, platform = subject.prepared, subject.platform
    plain = subject.mode == "eager" and not platform.submits and prepared.reset is None
    if not plain or prepared.refresh is None or touched_bytes(prepared) > _MOST_BYTES_IN_TURNS:
        return None
    other = subject.case.prepare(subject.plan)
    new: list[float] = []
    times = None
    for number in islice(_numbers(), _MOST_PAIRS):
        prepared.refresh(number)
        other.function()
        other.function()
        new.append(_one(subject, clock))
        if len(new) < _PAIRS:
            continue
        times = _over_those_in_a_row(subject, min(new), clock)
        if times is None or times <= MOST_TIMES_SLOWER_ALONE:
            break
    verdict = prepared.validate(lambda: subject.captured.outputs()[-1])
    if verdict.get("status") != "passed":
        reason = verdict.get("reason")
        raise CaseEndedError("failed", "timing", f"soon after a call on other data: {reason}")
    return times


def _over_those_in_a_row(subject: Subject, alone_us: float, clock: Clock) -> float | None:
    """Return a call's time over that of one of many in a row; None where it takes too little."""
    if alone_us < _WORTH_US:
        return None
    count = max(1, min(64, int(_ROW_US / alone_us)))
    one = Captured(subject.captured.calls, subject.captured.replay, list)
    in_a_row = min(subject.platform.measure(one, count, clock)[WALL] for _ in range(_TRIES))
    return alone_us / in_a_row


def _numbers() -> Iterator[int]:
    """Return numbers of data that nobody else uses."""
    number = 1000
    while True:
        number += 1
        yield number


def _one(subject: Subject, clock: Clock) -> float:
    """Return the microseconds of one replay, a call."""
    _put_back(subject)
    one = Captured(subject.captured.calls, subject.captured.replay, list)
    return subject.platform.measure(one, 1, clock)[WALL]


def _put_back(subject: Subject) -> None:
    if subject.prepared.reset is not None:
        subject.prepared.reset.function()
