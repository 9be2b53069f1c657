"""Tables and lines of text for a terminal.

Knows nothing of what they show.
"""

from __future__ import annotations

from collections.abc import Sequence

_STEPS = "▁▂▃▄▅▆▇█"


def aligned(cells: Sequence[Sequence[str]], names: int) -> list[str]:
    """Align words to the left and figures to the right.

    Args:
        cells: rows of equal length, the headings first.
        names: how many columns in front hold words; the last one does too.
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        shown = [
            cell.ljust(width) if at < names or at == len(row) - 1 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(shown).rstrip())
    return lines


def sparkline(values: Sequence[float | None], encoding: str) -> str:
    """Draw values as bars from the smallest to the largest; a gap where there is none.

    Args:
        values: at most one a character.
        encoding: of the stream that will show it; one without bars gets digits.
    """
    try:
        _STEPS.encode(encoding)
        steps = _STEPS
    except UnicodeEncodeError:
        steps = "12345678"
    known = [value for value in values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    # Differences of a per cent must not look like mountains.
    span = max(most - least, 0.1 * most) or 1.0
    last = len(steps) - 1
    return "".join(
        " " if value is None else steps[min(last, int((value - least) / span * len(steps)))]
        for value in values
    )
