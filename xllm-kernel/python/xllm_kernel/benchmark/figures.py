"""From samples to the figures of a row: statistics, ratios to a baseline, share of a ceiling; pure.

Takes no samples; a report holds what is made here as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xllm_kernel.benchmark.ceilings.roofline import roofline
from xllm_kernel.benchmark.conduct import Taken
from xllm_kernel.benchmark.statistics import Ratio, band, median, paired, summarize, verdict
from xllm_kernel.benchmark.units import WALL
from xllm_kernel.numerics.suite import Work

Figures = dict[str, Any]

# Fewer rounds in common give no ratio.
_FEWEST_ROUNDS = 3
_WIDE = "the samples spread by more than a tenth of their median"


def figures(about: Mapping[str, Any], taken: Taken, stopped: str) -> Figures:
    """Return the figures of one contender in one regime.

    Args:
        about: ``iterations``, ``calls_a_replay`` and ``reset_before``.
        taken: its samples.
        stopped: why there are no more.
    """
    rounds = taken.rounds()
    names = taken.samples[rounds[0]].columns
    columns = {name: summarize(taken.values(name, rounds)) for name in names}
    reset = about["reset_before"]
    return {
        "calls_a_replay": about["calls_a_replay"],
        "iterations": about["iterations"],
        "repeats": len(rounds),
        "stopped": stopped,
        **({} if reset is None else {"reset_before": reset}),
        **columns,
        "empty_callable": _empty(taken, rounds),
        "rounds": rounds,
        "dropped": taken.dropped(),
        "unstable": taken.disturbances() + ([_WIDE] if columns[WALL]["unstable"] else []),
        "roofline": None,
        "against": None,
        "noise_floor": None,
    }


def _empty(taken: Taken, rounds: Sequence[int]) -> dict[str, Any]:
    names = taken.samples[rounds[0]].empty
    return {name: summarize([taken.samples[n].empty[name] for n in rounds]) for name in names}


def halves(taken: Taken) -> dict[str, float] | None:
    """Return the ratio of a contender's odd rounds to its even ones: what chance alone makes."""
    times = taken.values(WALL, taken.rounds())
    odd, even = times[1::2], times[0::2]
    if len(odd) < _FEWEST_ROUNDS:
        return None
    return asdict(paired(odd, even[: len(odd)]))


def floor(first: Taken, second: Taken) -> dict[str, float] | None:
    """Return the ratio of two processes that run the same code, round by round."""
    rounds = _common([first, second])
    if len(rounds) < _FEWEST_ROUNDS:
        return None
    return asdict(paired(second.values(WALL, rounds), first.values(WALL, rounds)))


def quickest(processes: Sequence[Taken]) -> int:
    """Return which process of the same code has the figures: the one that took least.

    Where its memory lies makes one in some twenty slower, by up to a fifth, for as long as it
    lives; nothing makes one quicker than the code is.

    Args:
        processes: at least one.
    """
    rounds = _common(processes)
    if len(rounds) < _FEWEST_ROUNDS:
        return 0
    times = [median(one.values(WALL, rounds)) for one in processes]
    return times.index(min(times))


def against(
    own: Sequence[Taken], baseline: Sequence[Taken], name: str, threads: int | None
) -> dict[str, Any] | None:
    """Compare a contender with a baseline, round by round, each by its quicker process.

    Args:
        own: samples of the contender's processes.
        baseline: those of the baseline's two. Of the contender's and the baseline's noise, between
            processes of the same code, that counts whose two differ less: a process that is slow by
            itself tells nothing of the two quicker ones.
        name: the baseline's.
        threads: the baseline's.

    Returns:
        None where too few rounds are undisturbed for two that are compared.
    """
    mine, theirs = own[quickest(own)], baseline[quickest(baseline)]
    rounds = _common([mine, theirs])
    noises = [floor(*pair) for pair in (baseline, own) if len(pair) > 1]
    if len(rounds) < _FEWEST_ROUNDS or None in noises:
        return None
    ratio = paired(mine.values(WALL, rounds), theirs.values(WALL, rounds))
    # By what they differ by, and not by their intervals: the narrower one came about by chance.
    noise = min(
        (Ratio(**found) for found in noises if found), key=lambda one: abs(math.log(one.middle))
    )
    return {
        "baseline": name,
        "threads": threads,
        "ratio": asdict(ratio),
        "noise_floor": asdict(noise),
        "band": band(noise),
        "verdict": verdict(ratio, noise).value,
    }


def _common(processes: Sequence[Taken]) -> list[int]:
    """Return the rounds whose samples count for all, in order."""
    first, *others = (one.rounds() for one in processes)
    shared = set(first).intersection(*others)
    return [number for number in first if number in shared]


def ceilings(
    work: Mapping[str, Any] | None,
    median_us: float,
    passes: Mapping[str, Taken],
    kinds: Mapping[str, str],
) -> dict[str, Any] | None:
    """Return the share of the ceiling that binds, or None where it is not known.

    Args:
        work: what a call takes, as the suite states it.
        median_us: what it took.
        passes: samples of each pass, taken in the same rounds.
        kinds: of each pass: ``memory`` or ``compute``.
    """
    every = {name: list(taken.samples.values()) for name, taken in passes.items()}
    # A pass that waited for somebody in every round may be the quickest, and a lower ceiling than
    # the machine's makes a share too large.
    if work is None or any(all(one.disturbed for one in samples) for samples in every.values()):
        return None
    # The best that was seen, disturbed or not: what disturbs makes nothing quicker.
    best = {name: min(one.columns[WALL] for one in samples) for name, samples in every.items()}
    return roofline(Work(**work), median_us, best, kinds)
