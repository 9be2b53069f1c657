"""Reports for people: a table in the terminal, a Markdown page, a line of progress.

Generic: a command says which columns its rows have; nothing here knows an operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from xllm_kernel.numerics import progress
from xllm_kernel.numerics.report import Report, Row
from xllm_kernel.platforms.evidence import disclaimer

Columns = Sequence[tuple[str, Callable[[Row], str]]]
"""Headings and what they show of a row."""

NOTHING = "-"
"""Shown where a row has no figure; a column of nothing else is left out."""

_NAMES = 3
"""Columns of words, before those of figures."""


_WORDS = {"not_applicable": "n/a", "not_run": "not run"}


def number(value: object, digits: int = 3) -> str:
    """Show a number with so many decimals, or a dash for none."""
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) else NOTHING


def title(report: Report) -> str:
    """Return the page's heading."""
    return f"Numerical validation: {report.request.implementation}"


def verdict(report: Report) -> str:
    """Return one line: the status and the counts behind it."""
    counts = report.coverage()
    shown = [f"{counts['passed']} of {counts['total']} cases passed"]
    shown += [
        f"{counts[state]} {_WORDS.get(state, state)}"
        for state in ("failed", "error", "not_applicable", "not_run")
        if counts[state]
    ]
    word = report.status.upper().replace("_", " ")
    kind = "" if disclaimer(report.evidence) is None else f" ({report.evidence})"
    return f"{word}{kind}  {', '.join(shown)}"


def terminal(report: Report, columns: Columns) -> str:
    """Return the table, the reasons and the verdict for a terminal."""
    lines = [f"{title(report)}  ({_where(report)})"]
    if any(row.status != "not_run" for row in report.rows):
        lines += ["", *_aligned(_cells(report, columns)), ""]
    for name, reason, again in _reasons(report):
        lines += [f"  {name}: {reason}", *([] if again is None else [f"    reproduce: {again}"])]
    lines += [f"  {sentence}" for sentence in _processes(report)]
    lines.append(verdict(report))
    if report.reason and not _reasons(report):
        lines.append(f"  {report.reason}")
    lines += [f"  {notice}" for notice in _notices(report)]
    if report.request.output is not None:
        lines.append(f"  report: {report.request.output}")
    return "\n".join(lines)


def markdown(report: Report, columns: Columns) -> str:
    """Return the whole report as a Markdown page."""
    lines = [f"# {title(report)}", "", f"**{verdict(report)}**", ""]
    for notice in _notices(report):
        lines += [f"**{_escape(notice)}**", ""]
    if report.reason:
        lines += [f"Reason: {_escape(report.reason)}", ""]
    facts = {
        "operation": report.request.suite.operation,
        "implementation": report.request.implementation,
        "device, mode": f"{report.request.device}, {report.request.mode}",
        "evidence": report.evidence or "none",
        "revision": report.request.revision or "not given",
        "started": report.started,
        **{k: v for k, v in report.settings.items() if v is not None},
        **report.environment,
    }
    lines += _markdown_table([("fact", "value"), *((k, str(v)) for k, v in facts.items())])
    if report.rows:
        lines += ["", "## Cases", "", *_markdown_table(_cells(report, columns))]
    reasons = _reasons(report)
    if reasons:
        lines += ["", "## Reasons", ""]
        for name, reason, again in reasons:
            lines.append(f"- `{name}`: {_escape(reason)}")
            lines += [] if again is None else ["", "  ```sh", f"  {again}", "  ```"]
    processes = _processes(report)
    if processes:
        lines += ["", "## Processes", "", *(f"- {_escape(sentence)}" for sentence in processes)]
    if report.receipt is not None:
        built = [f"- {_escape(fact)}" for fact in report.receipt["build"]]
        lines += ["", "## Built as", "", *(built or ["nothing of ours was built"])]
        lines += ["", "## Candidates passed over", ""]
        lines += [_passed_over(other) for other in report.receipt["excluded"]] or ["none"]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Tables:
    """A report as JSON, a Markdown page and a table in the terminal.

    Attributes:
        columns: the command's, beside those that every row has.
    """

    columns: Columns

    def write(self, report: Report) -> None:
        """Write JSON and, beside it, Markdown."""
        report.write(markdown(report, self.columns))

    def terminal(self, report: Report) -> str:
        """Return the table, the reasons and the verdict."""
        return terminal(report, self.columns)


class Progress:
    """One line on a terminal: which case runs, how long the rest takes; silent anywhere else."""

    def __init__(
        self, total: int, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin to count.

        Args:
            total: how many cases there are.
            stream: where the line goes.
            clock: seconds.
        """
        self._total, self._stream, self._clock = total, stream, clock
        self._shown, self._begin = 0, clock()
        self._visible = stream.isatty()

    def show(self, name: str) -> None:
        """Say that the next case begins."""
        left = progress.remaining(self._shown, self._total, self._clock() - self._begin)
        self._shown += 1
        if self._visible:
            rest = "" if left is None else f"about {progress.worded(left)} left: "
            self._stream.write(f"\r\x1b[K[{self._shown}/{self._total}] {rest}{name}")
            self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._visible:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _where(report: Report) -> str:
    facts = [f"{report.request.device} {report.request.mode}"]
    for name in ("torch", "threads"):
        if name in report.environment:
            facts.append(f"{name} {report.environment[name]}")
    return ", ".join(facts)


def _cells(report: Report, columns: Columns) -> list[tuple[str, ...]]:
    """Return the table with its headings, without columns that show nothing."""
    rows = [("case", "result", "evidence", *(heading for heading, _ in columns))]
    for row in report.rows:
        state = _WORDS.get(row.status, row.status)
        rows.append(
            (row.case_id, state, row.evidence or NOTHING, *(show(row) for _, show in columns))
        )
    kept = [i for i in range(len(rows[0])) if i < _NAMES or any(r[i] != NOTHING for r in rows[1:])]
    return [tuple(row[i] for i in kept) for row in rows]


def _notices(report: Report) -> list[str]:
    """Return what a reader must know before any row: evidence that is none, and caveats."""
    notice = disclaimer(report.evidence)
    caveats = () if report.receipt is None else report.receipt["caveats"]
    return [*([] if notice is None else [notice]), *caveats]


def _reasons(report: Report) -> list[tuple[str, str, str | None]]:
    """Return case, reason and the command that runs it again, of every row that has a reason."""
    return [
        (
            row.case_id,
            row.reason if row.stage is None else f"{row.stage}: {row.reason}",
            report.reproduction(row),
        )
        for row in report.rows
        if row.reason
    ]


def _processes(report: Report) -> list[str]:
    """Return a sentence for each process that did not end by itself, and how it went on."""
    known = report.processes
    sentences = [
        f"at {death['case_id'] or 'no case'}, step '{death['stage']}': {death['ending']}"
        + _of_rank(report, death["rank"])
        for death in known.deaths
    ]
    if known.restarts:
        sentences.append(f"processes started again to go on: {known.restarts}")
    return sentences + [f"rank {rank} went away" for rank in known.lost]


def _of_rank(report: Report, rank: int) -> str:
    return f" (rank {rank})" if report.ranks > 1 else ""


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Align names to the left and figures to the right."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        left = [c.ljust(w) for c, w in zip(row[:_NAMES], widths[:_NAMES], strict=True)]
        right = [c.rjust(w) for c, w in zip(row[_NAMES:], widths[_NAMES:], strict=True)]
        lines.append("  " + "  ".join([*left, *right]).rstrip())
    return lines


def _markdown_table(cells: Sequence[Sequence[str]]) -> list[str]:
    head, *body = ("| " + " | ".join(map(_escape, row)) + " |" for row in cells)
    return [head, "|" + " --- |" * len(cells[0]), *body]


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _passed_over(other: Mapping[str, Any]) -> str:
    return f"- `{other['name']}`: {other['code']}: {_escape(other['reason'])}"
