"""What each implementation's rows turn out not to depend on, stated or not: names and comparisons.

Knows no operator. A dependency that a stated guarantee rules out is a failure; any other is a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xllm_kernel.numerics.invariants import checks as invariance
from xllm_kernel.numerics.invariants.checks import BATCHES, OFFSETS, REPETITIONS, THREADS, Subject
from xllm_kernel.platforms import Platform


@dataclass(frozen=True, slots=True)
class Circumstance:
    """Something that a row's bits may depend on.

    Attributes:
        text: what it is, for people.
        compared: what was compared with what.
        difference: looks for a dependency, given a platform and the run's mode.
        ruled_out_by: the guarantee that promises independence; None where none does.
    """

    text: str
    compared: str
    difference: Callable[[Subject, Platform, str], str | None]
    ruled_out_by: str | None = None


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def _anywhere(check: Callable[[Subject], str | None]) -> Callable[..., str | None]:
    return lambda subject, platform, mode: check(subject)


CIRCUMSTANCES: Mapping[str, Circumstance] = {
    "batch_size": Circumstance(
        "how many rows there are",
        f"batches of {_listed(BATCHES)} rows with the same rows among all",
        _anywhere(invariance.batch_size),
        "batch_invariant",
    ),
    "batch_position": Circumstance(
        "which row of the batch it is",
        f"batches of {_listed(BATCHES[1:])} rows reversed, rolled by one and by half, and single "
        "rows from the middle and the end, with the same rows among all",
        _anywhere(invariance.batch_position),
        "batch_invariant",
    ),
    "other_rows": Circumstance(
        "what the other rows hold",
        "every seventh row among NaN, infinities, zeros with the same rows among others",
        _anywhere(invariance.other_rows),
        "batch_invariant",
    ),
    "threads": Circumstance(
        "the number of threads",
        f"{_listed(THREADS[1:])} threads with one, in batches of {_listed(BATCHES)} rows",
        _anywhere(invariance.threads),
        "thread_invariant",
    ),
    "alignment": Circumstance(
        "the alignment of addresses",
        f"every tensor {_listed(OFFSETS)} elements off with aligned ones",
        _anywhere(invariance.alignment),
        "layout_invariant",
    ),
    "stream": Circumstance(
        "the stream",
        "a call on another stream with one on the current",
        lambda subject, platform, mode: invariance.stream(subject, platform),
    ),
    "mode": Circumstance(
        "the execution mode",
        "what the run's mode makes of the call with an eager call",
        invariance.mode,
    ),
    "repetition": Circumstance(
        "which call it is",
        f"{REPETITIONS - 1} more calls with the first",
        _anywhere(invariance.repetition),
        "repeatable",
    ),
}
"""By name, in the order of reports."""
