"""The report in a terminal: a table a regime that fits the width, and what to know of its rows.

Uses ``rich`` for colour and rules where it is installed; the facts are the same without it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from xllm_kernel.benchmark.report.columns import REGIME_MEANINGS, Column, groups, table
from xllm_kernel.benchmark.report.lines import Document, Line, lines
from xllm_kernel.benchmark.report.reasons import processes, reasons
from xllm_kernel.benchmark.report.summary import headline, notices, sentences, title, where
from xllm_kernel.benchmark.tables import GAP, MARGIN, Cells, drawn, fitted, printable, width_of

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


def terminal(document: Document, width: int, color: bool) -> str:
    """Return the report for a terminal.

    Args:
        document: the report's JSON value.
        width: characters in a line.
        color: whether the terminal shows colours.
    """
    found = lines(document)
    said = [printable(f"{title(document, found)}  ({where(document)})")]
    for regime, some in groups(found):
        said += ["", *_section(regime, some, width, color)]
    said.append("")
    for reason in reasons(found):
        said.append(f"  {printable(reason.place)}: {printable(reason.text)}")
        said += [f"    reproduce: {printable(reason.reproduce)}"] if reason.reproduce else []
    said += [f"  {printable(sentence)}" for sentence in processes(document)]
    said += [
        f"  not there: {printable(other['name'])}: {printable(other['reason'])}"
        for other in document.get("missing") or ()
    ]
    said.append(headline(document))
    said += [f"  {printable(document['reason'])}"] if document["reason"] else []
    said += [f"  {printable(sentence)}" for sentence in sentences(document, found)]
    said += [f"  {printable(notice)}" for notice in notices(document)]
    return "\n".join(said)


def _section(regime: str | None, some: Sequence[Line], width: int, color: bool) -> list[str]:
    columns, cells = table(some)
    columns, cells, notes = fitted(columns, [[printable(c) for c in row] for row in cells], width)
    name = "without figures" if regime is None else f"{regime}: {REGIME_MEANINGS.get(regime, '')}"
    shown = _drawn(columns, cells, width, color)
    return [f"  {printable(name)}", *shown, *(f"  {note}" for note in notes)]


def _drawn(columns: Sequence[Column], cells: Cells, width: int, color: bool) -> list[str]:
    try:
        import rich  # noqa: F401
    except ImportError:
        return drawn(columns, cells)
    return _rich(columns, cells, width, color)


def _rich(columns: Sequence[Column], cells: Cells, width: int, color: bool) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for column in columns:
        shown.add_column(column.heading, justify="left" if column.words else "right", no_wrap=True)
    for row in cells:
        shown.add_row(*(Text(text, style=_STYLES.get(text, "")) for text in row))
    room = max(width, width_of(columns, cells)) + GAP
    console = Console(
        file=io.StringIO(),
        width=room,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
    )
    with console.capture() as captured:
        console.print(shown)
    return [" " * MARGIN + line.rstrip() for line in captured.get().splitlines()]
