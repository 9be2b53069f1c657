"""Tables of text that fit a terminal: names are shortened, and columns that weigh little left out.

Knows nothing of what they show.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from xllm_kernel.benchmark.names import shortened

GAP, MARGIN = 2, 2
KEPT = 96
"""Columns this heavy stay whatever the width."""
_LEAST = 12
"""Characters that are left of a name where there is no room for more."""
_UNBOUNDED = 200
"""Characters in a line of what is no terminal."""
Cells = list[list[str]]


class Heading(Protocol):
    """What a table must know of a column."""

    @property
    def heading(self) -> str:
        """Return its title."""

    @property
    def weight(self) -> int:
        """Return how long it stays where there is no room; the lightest goes first."""

    @property
    def words(self) -> bool:
        """Say whether it holds words, which stand to the left."""

    @property
    def between(self) -> str | None:
        """Return what stands between the parts of names that may be shortened, else None."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A column of which a table need know no more; see ``Heading``."""

    heading: str
    weight: int = KEPT
    words: bool = False
    between: str | None = None


H = TypeVar("H", bound=Heading)


def room() -> int:
    """Return how many characters a line of standard output has room for."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNBOUNDED


def fitted(columns: Sequence[H], cells: Cells, width: int) -> tuple[list[H], Cells, list[str]]:
    """Make a table fit: shorten names, say those that are all alike below, leave columns out.

    Args:
        columns: the columns.
        cells: their texts, a list for each row.
        width: characters in a line.

    Returns:
        The columns that stay, their cells, and notes on what a reader does not see.
    """
    columns, notes, gone = list(columns), [], []
    for at, column in enumerate(columns):
        if column.between is not None and width_of(columns, cells) > width:
            short = shortened([row[at] for row in cells], column.between)
            cells = [[*row[:at], short.names[row[at]], *row[at + 1 :]] for row in cells]
            notes += [f"{column.heading}s: {short.pattern}"] if short.pattern != "*" else []
    while width_of(columns, cells) > width and (alike := _alike(columns, cells)) is not None:
        notes.append(f"{columns[alike].heading}: {cells[0][alike]}")
        columns, cells = _without(columns, cells, alike)
    while width_of(columns, cells) > width and min(c.weight for c in columns) < KEPT:
        at = min(range(len(columns)), key=lambda i: columns[i].weight)
        gone.append(columns[at].heading)
        columns, cells = _without(columns, cells, at)
    if gone:
        notes.append(f"not shown for want of width: {', '.join(gone)}")
    return columns, _cut_to(columns, cells, width), notes


def _alike(columns: Sequence[H], cells: Cells) -> int | None:
    """Return the first column of names that are all alike, if rows have another name."""
    names = [at for at, column in enumerate(columns) if column.between is not None]
    alike = (at for at in names if len({row[at] for row in cells}) == 1)
    return next(alike, None) if len(names) > 1 else None


def _without(columns: Sequence[H], cells: Cells, at: int) -> tuple[list[H], Cells]:
    kept = [[*row[:at], *row[at + 1 :]] for row in cells]
    return [*columns[:at], *columns[at + 1 :]], kept


def _cut_to(columns: Sequence[H], cells: Cells, width: int) -> Cells:
    """Cut words where a table is too wide still, the longest first."""
    while True:
        over = width_of(columns, cells) - width
        sizes = widths(columns, cells)
        longest = {i: sizes[i] for i, column in enumerate(columns) if column.words}
        at = max(longest, key=lambda i: longest[i])
        left = max(_LEAST, len(columns[at].heading), sizes[at] - over)
        if over <= 0 or left >= sizes[at]:
            return cells
        cells = [[*row[:at], _cut(row[at], left), *row[at + 1 :]] for row in cells]


def _cut(text: str, left: int) -> str:
    """Cut a name in its middle: both ends tell it from others."""
    if len(text) <= left:
        return text
    front = (left - 1) // 2
    return f"{text[:front]}…{text[len(text) - (left - 1 - front) :]}"


def widths(columns: Sequence[H], cells: Cells) -> list[int]:
    """Return how wide each column is."""
    return [
        max(len(column.heading), *(len(row[i]) for row in cells))
        for i, column in enumerate(columns)
    ]


def width_of(columns: Sequence[H], cells: Cells) -> int:
    """Return how wide the table is."""
    return MARGIN + sum(widths(columns, cells)) + GAP * (len(columns) - 1)


def drawn(columns: Sequence[H], cells: Cells) -> list[str]:
    """Return the table's lines, words to the left and figures to the right; headings first."""
    sizes = widths(columns, cells)
    lines = []
    for row in [[column.heading for column in columns], *cells]:
        placed = [
            text.ljust(size) if column.words else text.rjust(size)
            for column, text, size in zip(columns, row, sizes, strict=True)
        ]
        lines.append(" " * MARGIN + (" " * GAP).join(placed).rstrip())
    return lines


def printable(text: object) -> str:
    """Return one line of printable text: names and reasons may hold what steers a terminal."""
    joined = " ".join(str(text).split())
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in joined)
