"""The columns of a benchmark's table: what each shows of a line, and what it means.

Text only; where it is put is the terminal's, the Markdown page's and the HTML page's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xllm_kernel.benchmark.report.lines import Line, regimes_of
from xllm_kernel.numerics.render import NOTHING

_DEVIATION = "median_absolute_deviation"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: its title.
        show: its text for a line; ``NOTHING`` where the line has no such thing.
        meaning: what it is, for the legend.
        value: what it sorts by; None sorts last, whichever way.
        weight: how long it stays where there is no room; the lightest goes first.
        words: whether it holds words, which stand to the left.
        between: of names that may be shortened, what stands between their parts; else None.
    """

    heading: str
    show: Callable[[Line], str]
    meaning: str
    value: Callable[[Line], float | None] | None = None
    weight: int = 9
    words: bool = False
    between: str | None = None


def microseconds(value: object) -> str:
    """Show microseconds with about four digits; a dash for none."""
    if not isinstance(value, (int, float)):
        return NOTHING
    digits = 3 if value < 10 else 2 if value < 100 else 1
    return f"{value:.{digits}f}"


def ratio_text(ratio: Mapping[str, Any]) -> str:
    """Show a ratio and its interval: ``0.512 [0.50, 0.53]``."""
    return f"{_ratio(ratio['middle'])} [{_ratio(ratio['low'])}, {_ratio(ratio['high'])}]"


def rate_text(rate: float | None) -> str:
    """Show a rate, 10^9 a second."""
    return NOTHING if rate is None else f"{rate:.2f}" if rate < 10 else f"{rate:.1f}"


def share_text(roofline: Mapping[str, Any]) -> str:
    """Show the share of the ceiling that binds, and its name."""
    return f"{100 * float(roofline['share']):.0f} % {roofline['binding']}"


def _ratio(value: float | str) -> str:
    """Show a ratio; three decimals near 1, where they decide."""
    number = float(value)
    if number >= 99.95:
        return f"{number:.0f}"
    return f"{number:.3f}" if number < 2 else f"{number:.2f}"


def _of(name: str, key: str) -> Callable[[Line], float | None]:
    def value(line: Line) -> float | None:
        column = (line.times or {}).get(name)
        return None if column is None else float(column[key])

    return value


def _empty(line: Line) -> float | None:
    return None if line.times is None else float(line.times["empty_callable"]["wall_us"]["median"])


def _time(heading: str, value: Callable[[Line], float | None], meaning: str, weight: int) -> Column:
    return Column(heading, lambda line: microseconds(value(line)), meaning, value, weight)


def _median_text(line: Line) -> str:
    return line.verdict if line.simulated and line.state == "passed" else microseconds(line.median)


def _rate(heading: str, key: str, meaning: str, weight: int, *, computing: bool) -> Column:
    """Return the column of a rate of the lines whose ceiling is arithmetic's, or of the others."""

    def value(line: Line) -> float | None:
        if line.times is None or not line.roofline:
            return None
        binds = line.roofline["binding"] in ("fma", "dot")
        return float(line.roofline[key]) if binds is computing else None

    return Column(heading, lambda line: rate_text(value(line)), meaning, value, weight)


def _share(line: Line) -> float | None:
    return None if line.times is None or not line.roofline else float(line.roofline["share"])


def _middle(line: Line) -> float | None:
    return None if line.against is None else float(line.against["ratio"]["middle"])


def _count(line: Line) -> str:
    if line.times is None:
        return NOTHING
    figures = line.times
    dropped = sum(figures["dropped"].values())
    calls = figures["iterations"] * figures["calls_a_replay"]
    return f"{figures['repeats']} x {calls}" + (f" (-{dropped})" if dropped else "")


def _roofline(show: Callable[[Mapping[str, Any]], str]) -> Callable[[Line], str]:
    return lambda line: NOTHING if _share(line) is None else show(line.roofline or {})


CASE = Column(
    "case",
    lambda line: line.case,
    "the suite's name of the case",
    weight=99,
    words=True,
    between="/",
)
IMPLEMENTATION = Column(
    "implementation",
    lambda line: line.implementation,
    "what was called",
    weight=98,
    words=True,
    between=".",
)
THREADS = Column(
    "threads",
    lambda line: NOTHING if line.threads is None else str(line.threads),
    "how many threads computed",
    value=lambda line: line.threads,
    weight=50,
)
MEDIAN = Column(
    "median us",
    _median_text,
    "microseconds a call, the median of the samples that count",
    value=lambda line: line.median,
    weight=97,
)
VERDICT = Column("verdict", lambda line: line.verdict or NOTHING, "below", weight=96, words=True)
FIGURES: Sequence[Column] = (
    MEDIAN,
    Column(
        "ratio",
        lambda line: NOTHING if line.against is None else ratio_text(line.against["ratio"]),
        "time over the baseline's in the same rounds, with its 95 % interval: below 1 is faster",
        value=_middle,
        weight=60,
    ),
    VERDICT,
    Column(
        "of ceiling",
        _roofline(share_text),
        "the time of the machine's best pass for the same work, over the median; which pass it is "
        "(fma: multiply-adds; dot: dot products; the others move as many bytes)",
        value=_share,
        weight=45,
    ),
    _rate(
        "GB/s",
        "gb_per_s",
        "10^9 bytes that a call must move, a second, where memory is what limits it",
        22,
        computing=False,
    ),
    _rate(
        "GFLOP/s",
        "gflop_per_s",
        "10^9 operations that a call must do, a second, where arithmetic is what limits it",
        23,
        computing=True,
    ),
    _time("p90", _of("wall_us", "p90"), "nine tenths of the samples are no longer", 8),
    _time("min", _of("wall_us", "minimum"), "the shortest sample", 7),
    _time("MAD", _of("wall_us", _DEVIATION), "median absolute deviation from the median", 10),
    Column(
        "noise",
        lambda line: NOTHING if line.noise is None else f"{100 * line.noise:.1f} %",
        "by how much the same thing measured twice differed; ratios this close to 1, or 0.95 % "
        "more, say nothing",
        value=lambda line: line.noise,
        weight=4,
    ),
    _time("empty", _empty, "the same loop around a call that does nothing; not subtracted", 6),
    _time("enqueue", _of("host_enqueue_us", "median"), "until the last submission returned", 20),
    _time(
        "device",
        _of("device_interval_us", "median"),
        "between two device events; gaps between submissions are inside",
        21,
    ),
    _time("reset", _of("reset_us", "median"), "putting arguments back; in no other column", 11),
    _time("rotation", _of("rotation_us", "median"), "going on to other buffers; not taken off", 12),
    Column("samples", _count, "how many count, times the calls in each (- dropped)", weight=5),
)
WITHOUT_FIGURES: Sequence[Column] = (
    Column("result", lambda line: line.state, "how the row ended", weight=96, words=True),
    Column(
        "evidence",
        lambda line: line.row["evidence"] or NOTHING,
        "how what the row says was obtained",
        weight=30,
        words=True,
    ),
    MEDIAN,
)

VERDICT_MEANINGS: Mapping[str, str] = {
    "FASTER": "the whole interval of the ratio lies below 1 and outside of the noise band",
    "SLOWER": "the whole interval lies above 1 and outside of the noise band",
    "SAME": "the whole interval lies inside the band, with the noise counted twice",
    "AMBIGUOUS": "the interval is too wide to say; more samples or a quieter machine may decide",
    "UNSTABLE": "something disturbed the measurement, see the reasons; nothing is concluded",
    "IMPOSSIBLE": "faster than the machine allows: an error of measurement, no figures are shown",
    "baseline": "what the others are divided by",
    "simulated": "ran on a stand-in for the device: no figures, nothing to rank",
}
REGIME_MEANINGS: Mapping[str, str] = {
    "hot": "the same buffers in every call",
    "cold": "buffers rotated through more than the last-level cache holds",
    "enqueue": "host time of a call that returns before its work is done",
    "graph": "calls captured as one graph, replay time a call",
}


def table(found: Sequence[Line]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns that lines of one regime, or of none, have something in, and the cells."""
    several = len({line.implementation for line in found}) > 1
    counts = {line.threads for line in found}
    threads = replace(THREADS, weight=IMPLEMENTATION.weight) if len(counts) > 1 else THREADS
    words = [CASE, threads, *([IMPLEMENTATION] if several else [])]
    timed = any(line.regime is not None for line in found)
    columns = [*words, *(FIGURES if timed else WITHOUT_FIGURES)]
    cells = [[column.show(line) for column in columns] for line in found]
    kept = [i for i, _ in enumerate(columns) if i == 0 or any(row[i] != NOTHING for row in cells)]
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in cells]


def groups(found: Sequence[Line]) -> list[tuple[str | None, list[Line]]]:
    """Return the lines by regime, those without figures last: no column mixes two regimes."""
    by_regime: list[tuple[str | None, list[Line]]] = [
        (name, [line for line in found if line.regime == name])
        for name in (*regimes_of(found), None)
    ]
    return [(name, some) for name, some in by_regime if some]


def legend(found: Sequence[Line]) -> tuple[list[Column], dict[str, str]]:
    """Return the columns that have something in, and what the verdicts that were given mean."""
    tables = [table(some)[0] for _, some in groups(found)]
    shown = {column.heading for columns in tables for column in columns} - {VERDICT.heading}
    known = (CASE, THREADS, IMPLEMENTATION, *FIGURES, *WITHOUT_FIGURES[:2])
    given = {line.verdict for line in found}
    verdicts = {word: means for word, means in VERDICT_MEANINGS.items() if word in given}
    return [column for column in known if column.heading in shown], verdicts
