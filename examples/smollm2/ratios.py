"""Compare two implementations by benchmark reports that were made in alternation.

Time nothing: read the reports' rows, and keep one ratio a round, so that the spread of the machine
stays visible.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

PHASES = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Hold what one phase of the model costs in its norms.

    Attributes:
        phase: `prefill` or `decode`.
        calls: how many of the phase's norm calls were timed, all of one shape.
        shape: of each call's input, `[tokens, hidden]`.
        candidate_us: time of a call: the median over the calls, then over the rounds.
        baseline_us: the same of the other implementation.
        ratios: candidate time over baseline time, one a round.
        unstable: timings that the benchmark itself calls unstable, of all that were taken.
    """

    phase: str
    calls: int
    shape: tuple[int, ...]
    candidate_us: float
    baseline_us: float
    ratios: tuple[float, ...]
    unstable: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, with the ratios' median, minimum and maximum."""
        spread = {
            "ratio_median": statistics.median(self.ratios),
            "ratio_min": min(self.ratios),
            "ratio_max": max(self.ratios),
        }
        return asdict(self) | spread


def alternating_order(first: str, second: str, rounds: int) -> list[str]:
    """Return who runs when: A B, B A, A B, ... so that a drift of the machine favours neither."""
    pairs = ((first, second) if index % 2 == 0 else (second, first) for index in range(rounds))
    return [name for pair in pairs for name in pair]


def compare(
    candidate: Sequence[Mapping[str, Any]], baseline: Sequence[Mapping[str, Any]]
) -> list[PhaseTime]:
    """Compare two implementations, phase by phase.

    Args:
        candidate: benchmark reports, one a round.
        baseline: as many of the other implementation, over the same cases.

    Returns:
        One entry for each phase.

    Raises:
        ValueError: no rounds, unequal numbers of rounds, or reports over different cases.
    """
    if not candidate or len(candidate) != len(baseline):
        raise ValueError(f"rounds must be equal in number, got {len(candidate)}, {len(baseline)}")
    rows = [_timed_rows(report) for report in (*candidate, *baseline)]
    cases = list(rows[0])
    if any(list(other) != cases for other in rows):
        raise ValueError("all rounds must have timed the same cases")
    ours, theirs = rows[: len(candidate)], rows[len(candidate) :]
    result = []
    for phase in PHASES:
        names = [name for name, row in ours[0].items() if _phase(row) == phase]
        if not names:
            raise ValueError(f"no timed case belongs to the phase {phase}")
        mine = [_time_us(report, names) for report in ours]
        other = [_time_us(report, names) for report in theirs]
        result.append(
            PhaseTime(
                phase=phase,
                calls=len(names),
                shape=tuple(ours[0][names[0]]["parameters"]["shape"]),
                candidate_us=statistics.median(mine),
                baseline_us=statistics.median(other),
                ratios=tuple(m / o for m, o in zip(mine, other, strict=True)),
                unstable=sum(_wall(report[n])["unstable"] for report in rows for n in names),
            )
        )
    return result


def _timed_rows(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    rows = {row["case_id"]: row for row in report["rows"]}
    untimed = [name for name, row in rows.items() if row["status"] != "passed"]
    if untimed:
        raise ValueError(f"every case must have passed and been timed, but not {untimed[0]}")
    return rows


def _time_us(rows: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> float:
    times: list[float] = [_wall(rows[name])["median"] for name in names]
    return statistics.median(times)


def _wall(row: Mapping[str, Any]) -> Mapping[str, Any]:
    wall: Mapping[str, Any] = row["timings"]["regimes"]["hot"]["wall_us"]
    return wall


def _phase(row: Mapping[str, Any]) -> str:
    name: str = row["parameters"]["name"]
    return name.partition(".")[0]
