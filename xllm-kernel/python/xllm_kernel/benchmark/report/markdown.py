"""The report as a Markdown page: the same facts as the terminal's, with what stands behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xllm_kernel.benchmark.report.columns import (
    REGIME_MEANINGS,
    Column,
    groups,
    legend,
    table,
)
from xllm_kernel.benchmark.report.facts import environment, other_builds, run_facts, worst_error
from xllm_kernel.benchmark.report.lines import Document, Line, lines
from xllm_kernel.benchmark.report.reasons import dropped, processes, reasons
from xllm_kernel.benchmark.report.summary import headline, notices, sentences, title

Table = Sequence[Sequence[str]]


def markdown(document: Document) -> str:
    """Return the whole report.

    Args:
        document: the report's JSON value.
    """
    found = lines(document)
    said = [f"# {_text(title(document, found))}", "", f"**{headline(document)}**", ""]
    for notice in notices(document):
        said += [f"**{_text(notice)}**", ""]
    said += [f"Reason: {_text(document['reason'])}", ""] if document["reason"] else []
    said += [f"- {_text(sentence)}" for sentence in sentences(document, found)]
    for regime, some in groups(found):
        said += _figures(regime, some)
    said += _reasons(document, found)
    said += _validation(found)
    said += _facts("The run", run_facts(document)) + _facts("Environment", environment(document))
    said += _receipt(document)
    said += _legend(found)
    return "\n".join(said) + "\n"


def _figures(regime: str | None, some: Sequence[Line]) -> list[str]:
    columns, cells = table(some)
    name = "Rows without figures" if regime is None else f"Figures, {regime}"
    meaning = REGIME_MEANINGS.get(regime or "")
    note = [f"{meaning[0].upper()}{meaning[1:]}.", ""] if meaning else []
    return ["", f"## {name}", "", *note, *_table(columns, cells)]


def _table(columns: Sequence[Column], cells: Table) -> list[str]:
    rule = "|" + "".join(" :--- |" if column.words else " ---: |" for column in columns)
    head = "| " + " | ".join(_text(column.heading) for column in columns) + " |"
    return [head, rule, *("| " + " | ".join(map(_text, row)) + " |" for row in cells)]


def _reasons(document: Document, found: Sequence[Line]) -> list[str]:
    said = []
    known = reasons(found)
    if known:
        said += ["", "## Reasons", ""]
    for reason in known:
        said.append(f"- {_text(reason.place)}: {_text(reason.text)}")
        for quoted in (reason.reproduce, reason.stderr):
            said += _quoted(quoted) if quoted else []
    uncounted = dropped(found)
    if uncounted:
        said += ["", "## Samples that do not count", ""]
        said += [f"- {_text(reason.place)}: {_text(reason.text)}" for reason in uncounted]
    missing = document.get("missing") or ()
    if missing:
        said += ["", "## Not there", ""]
        said += [f"- {_text(other['name'])}: {_text(other['reason'])}" for other in missing]
    sentences_of_processes = processes(document)
    if sentences_of_processes:
        said += ["", "## Processes", "", *(f"- {_text(each)}" for each in sentences_of_processes)]
    return said


def _quoted(text: str) -> list[str]:
    """Return text as a block of code that nothing in it can end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return ["", f"  {fence}", *(f"  {line}" for line in text.splitlines()), f"  {fence}"]


def _validation(found: Sequence[Line]) -> list[str]:
    head = ["| case | implementation | threads | phases | worst error |", "|" + " --- |" * 5]
    body = []
    for line in {id(line.row): line for line in found}.values():
        phases = {name: verdict["status"] for name, verdict in line.row["validation"].items()}
        if phases:
            told = ", ".join(f"{name} {status}" for name, status in phases.items())
            threads = "-" if line.threads is None else str(line.threads)
            cells = (line.case, line.implementation, threads, told, worst_error(line.row) or "-")
            body.append("| " + " | ".join(map(_text, cells)) + " |")
    return ["", "## Validation", "", *head, *body] if body else []


def _facts(name: str, facts: Mapping[str, str]) -> list[str]:
    rows = [f"| {_text(key)} | {_text(value)} |" for key, value in facts.items()]
    return ["", f"## {name}", "", "| fact | value |", "| --- | --- |", *rows]


def _receipt(document: Document) -> list[str]:
    receipt = document["receipt"]
    if receipt is None:
        return []
    built = [f"- {_text(fact)}" for fact in receipt.get("build", ())]
    passed = [
        f"- {_text(other['name'])}: {_text(other['code'])}: {_text(other['reason'])}"
        for other in receipt["excluded"]
    ]
    said = ["", "## Built as", "", *(built or ["nothing of ours was built"])]
    for name, facts in other_builds(document).items():
        said += ["", f"## {_text(name)}: built as", "", *(f"- {_text(fact)}" for fact in facts)]
    return [*said, "", "## Candidates passed over", "", *(passed or ["none"])]


def _legend(found: Sequence[Line]) -> list[str]:
    columns, verdicts = legend(found)
    said = [f"- *{column.heading}*: {column.meaning}" for column in columns]
    said += [f"- **{word}**: {means}" for word, means in verdicts.items()]
    return ["", "## Legend", "", *said] if said else []


_MARKS = re.compile(r"[\\`*<>|#&~]|(?<=\])[(\[:]|(?<!\w)_|_(?!\w)")
"""What begins or ends markup; a bracket is harmless where none follows that would make a link."""


def _text(text: object) -> str:
    """Return text of which nothing is markup."""
    return _MARKS.sub(lambda mark: "\\" + mark[0], " ".join(str(text).split()))
