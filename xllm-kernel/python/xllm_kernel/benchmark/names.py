"""Names without what all of them have in common, for tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shortened:
    """Names without what all have in front and at the end.

    Attributes:
        names: each name's short form.
        pattern: what was left out, ``front/*/back``; ``*`` where nothing was.
    """

    names: Mapping[str, str]
    pattern: str = "*"


def shortened(names: Sequence[str], between: str = "/") -> Shortened:
    """Shorten names that are alike in front and at the end, by whole parts.

    Args:
        names: the names; where one would become empty, all stay as they are.
        between: what stands between parts.
    """
    parts = {name: name.split(between) for name in names}
    whole = Shortened({name: name for name in parts})
    if len(parts) < 2:
        return whole
    least = min(len(each) for each in parts.values())
    front = _alike([each[:least] for each in parts.values()])
    back = _alike([each[::-1][:least] for each in parts.values()])
    if front + back >= least:
        return whole
    one = next(iter(parts.values()))
    pattern = between.join([*one[:front], "*", *one[len(one) - back :]])
    short = {name: each[front : len(each) - back] for name, each in parts.items()}
    return Shortened({name: between.join(each) for name, each in short.items()}, pattern)


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """Count the first parts that all have in common."""
    columns = list(zip(*lists, strict=True))
    return next((i for i, column in enumerate(columns) if len(set(column)) > 1), len(columns))
