"""Logarithmic axes: where a value lies, where ticks go, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS: Sequence[Sequence[float]] = (
    (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, *(2.2, 2.4, 2.6, 2.8), *range(3, 10)),
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1, 3),
    (1,),
)
_FINE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class Log:
    """A logarithmic axis.

    Attributes:
        low, high: the values at its ends, above zero.
        start, end: where the ends lie.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a value lies; one beyond an end lies at the end."""
        inside = min(max(value, self.low), self.high)
        part = math.log(inside / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Return round values between the ends, as many as fit."""
        return ticks(self.low, self.high, most)


def spanning(values: Iterable[float], start: float, end: float, margin: float = 0.06) -> Log:
    """Return the axis that holds values, with a margin as a share of its length.

    Args:
        values: above zero; at least one.
        start: where the low end lies.
        end: where the high end lies.
        margin: left free on either side.
    """
    known = list(values)
    low, high = min(known), max(known)
    room = max((high / low) ** margin, 1.02)
    return Log(low / room, high * room, start, end)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round values from low to high, at most so many, and two at least where they can be."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        found = [step * 10.0**decade for decade in decades for step in steps]
        inside = [value for value in found if low <= value <= high]
        if 3 <= len(inside) <= most:
            return inside
    whole = [10.0**decade for decade in decades if low <= 10.0**decade <= high]
    if len(whole) > most:
        return whole[:: math.ceil(len(whole) / most)]
    return _even(low, high, most)


def _even(low: float, high: float, most: int) -> list[float]:
    """Return evenly spaced values: over a narrow range a logarithm is nearly straight."""
    size = 10.0 ** math.floor(math.log10(high))
    for step in (part * size for part in _FINE):
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first < most:
            return [round(i * step, 12) for i in range(first, last + 1)]
    return [low, high]


def microseconds(value: float) -> str:
    """Write a tick of time."""
    for size, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if value >= size * 0.9999:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e3:.4g} ns"


def bytes_(value: float) -> str:
    """Write a tick of bytes, in powers of ten."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size * 0.9999:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} B"
