"""A report's document as lines: one for each regime of a row, and one for a row without figures.

Decides what of a line may be shown and what its verdict is; shows nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xllm_kernel.platforms.evidence import disclaimer

Document = Mapping[str, Any]
"""A report's JSON value, ``schema_version`` 2."""

REGIMES = ("hot", "cold", "enqueue", "graph")
VERDICTS = ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
IMPOSSIBLE, UNSTABLE, BASELINE = "IMPOSSIBLE", "UNSTABLE", "baseline"
_STATES = {"not_applicable": "n/a", "not_run": "not run"}
_SPREAD = "the deviation is over a tenth of the median"
_NO_BASELINE = "the baseline has no figures here"
_TOO_FEW = (
    "too few rounds in which its sample and the baseline's two count; a quieter machine or a "
    "longer --budget gives more"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One regime of a row, or a row without figures.

    Attributes:
        row: the document's row.
        regime: in which the figures were taken; None without figures.
        figures: what may be shown; None for a row that has none or is simulated.
        against: the comparison with the baseline, unless either figure is impossible.
        is_baseline: whether others are divided by it.
        doubt: why there is no comparison, although there is a baseline.
    """

    row: Mapping[str, Any]
    regime: str | None = None
    figures: Mapping[str, Any] | None = None
    against: Mapping[str, Any] | None = None
    is_baseline: bool = False
    doubt: str | None = None

    @property
    def implementation(self) -> str:
        """Name the implementation."""
        return str(self.row["implementation"])

    @property
    def case(self) -> str:
        """Name the case."""
        return str(self.row["case_id"])

    @property
    def threads(self) -> int | None:
        """Return how many threads computed."""
        threads: int | None = self.row.get("threads")
        return threads

    @property
    def dtype(self) -> str:
        """Return the case's dtype; empty where its parameters have none of that name."""
        return str(self.row["parameters"].get("dtype", ""))

    @property
    def bytes_moved(self) -> int | None:
        """Return how many bytes a call must read and write, once each."""
        work = self.row.get("work")
        return None if work is None else work["read_bytes"] + work["written_bytes"]

    @property
    def simulated(self) -> bool:
        """Say whether what the row says stands for no device."""
        return disclaimer(self.row["evidence"]) is not None

    @property
    def state(self) -> str:
        """Return how the row ended, in words."""
        status = str(self.row["status"])
        return _STATES.get(status, status)

    @property
    def roofline(self) -> Mapping[str, Any] | None:
        """Return what the machine allows for the row's work."""
        found: Mapping[str, Any] | None = (self.figures or {}).get("roofline")
        return found

    @property
    def impossible(self) -> bool:
        """Say whether the figures exceed what the machine allows."""
        return bool(self.roofline and self.roofline["impossible"])

    @property
    def times(self) -> Mapping[str, Any] | None:
        """Return the figures, unless they are impossible and hence no result."""
        return None if self.impossible else self.figures

    @property
    def median(self) -> float | None:
        """Return the median in microseconds a call, where there is a result."""
        return None if self.times is None else float(self.times["wall_us"]["median"])

    @property
    def noise(self) -> float | None:
        """Return by how much the same thing measured twice differed: 0.01 is one per cent.

        Of a row with a ratio, what its band is made of, which is 0.95 % wider.
        """
        floor = (self.against or self.times or {}).get("noise_floor")
        return None if floor is None else max(abs(float(floor[end]) - 1) for end in ("low", "high"))

    @property
    def unstable(self) -> tuple[str, ...]:
        """Return why the figures should not be relied on."""
        if self.figures is None:
            return ()
        named = tuple(map(str, self.figures["unstable"]))
        return named or ((_SPREAD,) if self.figures["wall_us"]["unstable"] else ())

    @property
    def verdict(self) -> str:
        """Return one word on the line; empty where there is nothing to say."""
        if self.row["status"] != "passed":
            return self.state
        if self.simulated:
            return str(self.row["evidence"])
        if self.impossible:
            return IMPOSSIBLE
        if self.unstable:
            return UNSTABLE
        if self.against is not None:
            return str(self.against["verdict"])
        return BASELINE if self.is_baseline else ""


def lines(document: Document) -> list[Line]:
    """Return every line of a report, in the order of its rows, then of regimes."""
    bare = list(_bare(document))
    bases = {
        _place(line): line.impossible
        for line in bare
        if line.figures is not None and line.implementation == document.get("baseline")
    }
    # Where nothing else has rows, or should have, an implementation is its own baseline.
    alone = {line.implementation for line in bare} == {document.get("baseline")}
    own = alone and not document.get("missing")
    return [_compared(line, document, bases, own) for line in bare]


def _bare(document: Document) -> Iterable[Line]:
    for row in document["rows"]:
        regimes = (row.get("timings") or {}).get("regimes", {})
        if not regimes or disclaimer(row["evidence"]) is not None:
            yield Line(row)
            continue
        for regime in (*REGIMES, *sorted(set(regimes) - set(REGIMES))):
            if regime in regimes:
                yield Line(row, regime, regimes[regime])


def _place(line: Line) -> tuple[object, ...]:
    """Return what a line and its baseline's have in common."""
    return line.row["operation"], line.case, line.threads, line.regime


def _compared(
    line: Line, document: Document, bases: Mapping[tuple[object, ...], bool], own: bool
) -> Line:
    """Add the comparison, or why there is none.

    Args:
        line: as the row has it.
        document: the report.
        bases: which baselines are impossible.
        own: whether the implementation is its own baseline.
    """
    if line.figures is None or line.impossible:
        return line
    against, doubt = line.figures["against"], None
    name = document.get("baseline")
    mine = line.implementation == name and not own
    if against is not None and bases.get(_place(line)):
        against, doubt = None, "the baseline's figure is impossible"
    elif against is None and name and not mine:
        doubt = _TOO_FEW if _place(line) in bases else _NO_BASELINE
    return Line(line.row, line.regime, line.figures, against, mine and against is None, doubt)


def regimes_of(found: Sequence[Line]) -> list[str]:
    """Return the regimes that have figures, in their order."""
    present = {line.regime for line in found if line.regime is not None}
    return [name for name in REGIMES if name in present] + sorted(present - set(REGIMES))


def implementations_of(found: Iterable[Line]) -> list[str]:
    """Return the implementations in order of appearance."""
    return list(dict.fromkeys(line.implementation for line in found))
