"""From samples to the figures of a row: statistics, ratios to a baseline, share of a ceiling; pure.

Takes no samples; a report holds what is made here as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xllm_kernel.benchmark.ceilings.roofline import roofline
from xllm_kernel.benchmark.conduct import Taken
from xllm_kernel.benchmark.statistics import Ratio, band, paired, summarize, verdict
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


def floor(baseline: Taken, twin: Taken) -> dict[str, float] | None:
    """Return the ratio of two processes that run the same code, round by round."""
    rounds = _common(baseline, twin)
    if len(rounds) < _FEWEST_ROUNDS:
        return None
    return asdict(paired(twin.values(WALL, rounds), baseline.values(WALL, rounds)))


def against(
    taken: Taken, baseline: Taken, twin: Taken, name: str, threads: int | None
) -> dict[str, Any] | None:
    """Compare a contender with a baseline that took part twice, round by round.

    Args:
        taken: the contender's samples.
        baseline: the baseline's.
        twin: those of the baseline's second process: the two together are the noise floor, and
            their mean is what the contender is divided by.
        name: the baseline's.
        threads: the baseline's.

    Returns:
        None where too few rounds are undisturbed for all three.
    """
    noise = floor(baseline, twin)
    both = set(_common(baseline, twin))
    rounds = [number for number in taken.rounds() if number in both]
    if noise is None or len(rounds) < _FEWEST_ROUNDS:
        return None
    first, second = baseline.values(WALL, rounds), twin.values(WALL, rounds)
    means = [(a * b) ** 0.5 for a, b in zip(first, second, strict=True)]
    ratio = paired(taken.values(WALL, rounds), means)
    width = band(Ratio(**noise))
    return {
        "baseline": name,
        "threads": threads,
        "ratio": asdict(ratio),
        "noise_floor": noise,
        "band": width,
        "verdict": verdict(ratio, width).value,
    }


def _common(first: Taken, second: Taken) -> list[int]:
    theirs = set(second.rounds())
    return [number for number in first.rounds() if number in theirs]


def ceilings(
    work: Mapping[str, Any] | None,
    median_us: float,
    passes: Mapping[str, Taken],
    kinds: Mapping[str, str],
) -> dict[str, Any] | None:
    """Return the share of the ceiling that binds, or None where nothing is known of one.

    Args:
        work: what a call takes, as the suite states it.
        median_us: what it took.
        passes: samples of each pass, taken in the same rounds.
        kinds: of each pass: ``memory`` or ``compute``.
    """
    if work is None:
        return None
    # The best that was seen: a pass that waited for somebody says nothing of what memory allows,
    # and where every one did, nothing is known.
    best = {
        name: min(taken.values(WALL, calm))
        for name, taken in passes.items()
        if (calm := [n for n, sample in taken.samples.items() if sample.disturbed is None])
    }
    return roofline(Work(**work), median_us, best, kinds)
