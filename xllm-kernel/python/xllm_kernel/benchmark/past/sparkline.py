"""A line of bars for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

_STEPS = "▁▂▃▄▅▆▇█"


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
