"""What the comparison says beside the benchmark's own report: forms, and the gain of two threads.

Computed from the report's document alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peers.operation import Operation
from xllm_kernel.benchmark.statistics import paired
from xllm_kernel.benchmark.units import HOT

_FEWEST_ROUNDS = 3
_NOTHING = "-"

Row = Mapping[str, Any]


def markdown(document: Mapping[str, Any], operation: Operation) -> str:
    """Return the sections that follow the report's own."""
    forms = [f"- *{form.name}*: {form.meaning}" for form in _forms(document, operation)]
    versions = [f"- {name}: {', '.join(built)}" for name, built in _built(document).items()]
    lines = ["", "## Forms", "", *forms, "", operation.note]
    lines += ["", "## Libraries", "", *versions] if versions else []
    lines += ["", f"## {_GAIN}", "", *_table(gains(document))] if gains(document) else []
    return "\n".join(lines) + "\n"


def terminal(document: Mapping[str, Any], operation: Operation) -> str:
    """Return the lines that follow the report's own in a terminal."""
    lines = [f"  {form.name}: {form.meaning}" for form in _forms(document, operation)]
    lines.append(f"  {operation.note}")
    if gains(document):
        lines += ["", f"  {_GAIN}", *(f"  {line}" for line in _table(gains(document)))]
    return "\n".join(lines)


_GAIN = "Gain of two threads: one thread's time over two threads', round by round"


def gains(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return, a case each, our gain of the second thread and that of copying as many bytes.

    Returns:
        Cells, the heading first; nothing where no case ran on one thread and on two. A dash stands
        for a gain of figures from which nothing is concluded, or of too few common rounds.
    """
    ours = [row for row in document["rows"] if row["implementation"] == document["baseline"]]
    by_case: dict[str, dict[int, Row]] = {}
    for row in ours:
        if row["timings"] is not None:
            figures = row["timings"]["regimes"][HOT]
            by_case.setdefault(row["case_id"], {})[row["threads"]] = figures
    pairs = {case: (on[1], on[2]) for case, on in by_case.items() if {1, 2} <= on.keys()}
    cells = [(case, _gain(*both), _gain_of_copy(*both)) for case, both in pairs.items()]
    return [("case", str(document["baseline"]), "best copy"), *cells] if cells else []


def _doubtful(figures: Row) -> bool:
    """Say whether nothing may be concluded from figures."""
    return bool(figures["unstable"] or (figures["roofline"] or {}).get("impossible"))


def _gain(one: Row, two: Row) -> str:
    first = dict(zip(one["rounds"], one["wall_us"]["samples"], strict=True))
    second = dict(zip(two["rounds"], two["wall_us"]["samples"], strict=True))
    both = [number for number in first if number in second]
    if len(both) < _FEWEST_ROUNDS or _doubtful(one) or _doubtful(two):
        return _NOTHING
    ratio = paired([first[number] for number in both], [second[number] for number in both])
    return f"{ratio.middle:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _gain_of_copy(one: Row, two: Row) -> str:
    times = [
        [
            us
            for name, us in (row["roofline"] or {}).get("ceilings_us", {}).items()
            if "copy" in name
        ]
        for row in (one, two)
    ]
    return f"{min(times[0]) / min(times[1]):.2f}" if all(times) else _NOTHING


def _forms(document: Mapping[str, Any], operation: Operation) -> Iterable[Any]:
    used = {row["parameters"]["form"] for row in document["rows"]}
    return [form for form in operation.forms if form.name in used]


def _built(document: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return what was loaded of each library that took part."""
    receipts = dict(document["other_receipts"])
    if document["receipt"] is not None:
        receipts = {document["implementation"]: document["receipt"], **receipts}
    return {name: receipt["build"] for name, receipt in receipts.items()}


def _table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table whose columns are aligned, to be read in a terminal too."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
