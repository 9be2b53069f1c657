"""The report in a terminal: a table a regime that fits the width, and what to know of its rows.

Uses ``rich`` for colour and rules where it is installed; the facts are the same without it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from xllm_kernel.benchmark.report.columns import (
    CASE,
    IMPLEMENTATION,
    REGIME_MEANINGS,
    Column,
    groups,
    table,
)
from xllm_kernel.benchmark.report.lines import Document, Line, lines, shortened
from xllm_kernel.benchmark.report.reasons import processes, reasons
from xllm_kernel.benchmark.report.summary import headline, notices, sentences, title, where

_GAP, _MARGIN = 2, 2
_LEAST = 12
"""Characters that are left of a name where there is no room for more."""
_STYLES = {
    "FASTER": "bold green",
    "SLOWER": "bold red",
    "SAME": "cyan",
    "AMBIGUOUS": "yellow",
    "UNSTABLE": "bold yellow",
    "IMPOSSIBLE": "bold magenta",
    "failed": "bold red",
    "error": "bold red",
}
Cells = list[list[str]]


def terminal(document: Document, width: int, color: bool) -> str:
    """Return the report for a terminal.

    Args:
        document: the report's JSON value.
        width: characters in a line.
        color: whether the terminal shows colours.
    """
    found = lines(document)
    said = [_clean(f"{title(document, found)}  ({where(document)})")]
    for regime, some in groups(found):
        said += ["", *_section(regime, some, width, color)]
    said.append("")
    for reason in reasons(found):
        said.append(f"  {_clean(reason.place)}: {_clean(reason.text)}")
        said += [f"    reproduce: {_clean(reason.reproduce)}"] if reason.reproduce else []
    said += [f"  {_clean(sentence)}" for sentence in processes(document)]
    said += [
        f"  not there: {_clean(other['name'])}: {_clean(other['reason'])}"
        for other in document.get("missing") or ()
    ]
    said.append(headline(document))
    said += [f"  {_clean(document['reason'])}"] if document["reason"] else []
    said += [f"  {_clean(sentence)}" for sentence in sentences(document, found)]
    said += [f"  {_clean(notice)}" for notice in notices(document)]
    return "\n".join(said)


def _section(regime: str | None, some: Sequence[Line], width: int, color: bool) -> list[str]:
    columns, cells = table(some)
    columns, cells, notes = fitted(columns, [[_clean(c) for c in row] for row in cells], width)
    name = "without figures" if regime is None else f"{regime}: {REGIME_MEANINGS.get(regime, '')}"
    drawn = _drawn(columns, cells, width, color)
    return [f"  {_clean(name)}", *drawn, *(f"  {note}" for note in notes)]


def fitted(
    columns: Sequence[Column], cells: Cells, width: int
) -> tuple[list[Column], Cells, list[str]]:
    """Make a table fit: shorten names, leave light columns out, cut names; a lone case is a note.

    Args:
        columns: the columns.
        cells: their texts, a list for each row.
        width: characters in a line.

    Returns:
        The columns that stay, their cells, and notes on what a reader does not see.
    """
    columns, notes, gone = list(columns), [], []
    for column, between in ((CASE, "/"), (IMPLEMENTATION, ".")):
        if column in columns and _width(columns, cells) > width:
            at = columns.index(column)
            short = shortened([row[at] for row in cells], between)
            cells = [[*row[:at], short.names[row[at]], *row[at + 1 :]] for row in cells]
            notes += [f"{column.heading}s: {short.pattern}"] if short.pattern != "*" else []
    if CASE in columns and IMPLEMENTATION in columns and _width(columns, cells) > width:
        at = columns.index(CASE)
        if len({row[at] for row in cells}) == 1:
            notes.append(f"case: {cells[0][at]}")
            columns.pop(at)
            cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    while _width(columns, cells) > width and min(c.weight for c in columns) < _KEPT:
        at = min(range(len(columns)), key=lambda i: columns[i].weight)
        gone.append(columns.pop(at).heading)
        cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    if gone:
        notes.append(f"not shown for want of width: {', '.join(gone)}")
    return columns, _cut_to(columns, cells, width), notes


def _cut_to(columns: Sequence[Column], cells: Cells, width: int) -> Cells:
    """Cut names where a table is too wide still, the longest first."""
    while True:
        over = _width(columns, cells) - width
        sizes = _widths(columns, cells)
        longest = {i: sizes[i] for i, column in enumerate(columns) if column.words}
        at = max(longest, key=lambda i: longest[i])
        room = max(_LEAST, len(columns[at].heading), sizes[at] - over)
        if over <= 0 or room == sizes[at]:
            return cells
        cells = [[*row[:at], _cut(row[at], room), *row[at + 1 :]] for row in cells]


_KEPT = 96
"""Columns this heavy stay whatever the width: case, implementation, median, verdict."""


def _cut(text: str, room: int) -> str:
    """Cut a name in its middle: both ends tell it from others."""
    if len(text) <= room:
        return text
    front = (room - 1) // 2
    return f"{text[:front]}…{text[len(text) - (room - 1 - front) :]}"


def _widths(columns: Sequence[Column], cells: Cells) -> list[int]:
    return [
        max(len(column.heading), *(len(row[i]) for row in cells))
        for i, column in enumerate(columns)
    ]


def _width(columns: Sequence[Column], cells: Cells) -> int:
    return _MARGIN + sum(_widths(columns, cells)) + _GAP * (len(columns) - 1)


def _drawn(columns: Sequence[Column], cells: Cells, width: int, color: bool) -> list[str]:
    try:
        import rich  # noqa: F401
    except ImportError:
        return _plain(columns, cells)
    return _rich(columns, cells, width, color)


def _plain(columns: Sequence[Column], cells: Cells) -> list[str]:
    widths = _widths(columns, cells)
    drawn = []
    for row in [[column.heading for column in columns], *cells]:
        placed = [
            text.ljust(size) if column.words else text.rjust(size)
            for column, text, size in zip(columns, row, widths, strict=True)
        ]
        drawn.append(" " * _MARGIN + (" " * _GAP).join(placed).rstrip())
    return drawn


def _rich(columns: Sequence[Column], cells: Cells, width: int, color: bool) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in columns:
        shown.add_column(column.heading, justify="left" if column.words else "right", no_wrap=True)
    for row in cells:
        shown.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in row))
    room = max(width, _width(columns, cells)) + _GAP
    console = Console(
        file=io.StringIO(),
        width=room,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(shown)
    return [" " * _MARGIN + line.rstrip() for line in captured.get().splitlines()]


def _clean(text: object) -> str:
    """Return one line of printable text: names and reasons may hold what steers a terminal."""
    joined = " ".join(str(text).split())
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in joined)
