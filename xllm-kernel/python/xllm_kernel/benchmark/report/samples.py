"""The samples of every row as the page's script draws them; very many become an envelope.

An envelope keeps the least, the median and the greatest of each stretch of rounds, so that no
outlier is lost; the report's JSON has every sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from xllm_kernel.benchmark.report.lines import Line

PAGE_VALUES = 120_000
"""Samples that a page holds one by one, of all rows together; their text is about a megabyte."""

_FEWEST, _STRETCHES = 100, 400


def drawn(found: Sequence[Line]) -> dict[str, dict[str, Any]]:
    """Return what is drawn of each line with figures, by its number."""
    shown = {i: line for i, line in enumerate(found) if line.times is not None}
    limit = max(_FEWEST, PAGE_VALUES // max(1, len(shown)))
    return {str(i): _of(line, limit) for i, line in shown.items()}


def _of(line: Line, limit: int) -> dict[str, Any]:
    figures = line.times or {}
    column = figures["wall_us"]
    values, rounds = column["samples"], figures["rounds"]
    facts = {
        "name": label(line),
        "median": _short(column["median"]),
        "p90": _short(column["p90"]),
        "minimum": _short(column["minimum"]),
        "taken": len(values),
        "calls": figures["iterations"] * figures["calls_a_replay"],
        "stopped": figures["stopped"],
        "dropped": dict(figures["dropped"]),
        "unstable": list(line.unstable),
    }
    if len(values) > limit:
        return facts | {"stretches": envelope(rounds, values, min(limit, _STRETCHES))}
    return facts | {"rounds": list(rounds), "us": [_short(value) for value in values]}


def label(line: Line) -> str:
    """Name a line so that no other of the report has its name."""
    threads = "" if line.threads is None else f"threads {line.threads}"
    parts = (line.case, line.implementation, threads, line.regime or "")
    return ", ".join(part for part in parts if part)


def envelope(
    rounds: Sequence[int], values: Sequence[float], stretches: int
) -> list[tuple[int, int, float, float, float]]:
    """Return first and last round, least, median and greatest sample of stretches of rounds.

    Args:
        rounds: of each sample, in order.
        values: the samples, as many.
        stretches: how many to make at most.
    """
    size = math.ceil(len(values) / stretches)
    found = []
    for begin in range(0, len(values), size):
        some = values[begin : begin + size]
        last = rounds[min(begin + size, len(rounds)) - 1]
        least, middle, greatest = (_short(value) for value in (min(some), median(some), max(some)))
        found.append((rounds[begin], last, least, middle, greatest))
    return found


def _short(value: float) -> float:
    """Keep six digits: more says nothing in a plot."""
    return float(f"{value:.6g}")
