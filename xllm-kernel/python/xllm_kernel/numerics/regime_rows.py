"""Rows of many magnitudes and patterns, made of a normal draw; which go together, ``regimes`` says.

Knows rows of numbers, no operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xllm_kernel.domain import FLOAT32_MAX

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Scale:
    """Magnitudes of a dtype, for rows of some width.

    Attributes:
        top: largest magnitude of which a whole row's squares have a float32 sum.
        normal: smallest normal one.
        least: smallest subnormal one.
    """

    top: float
    normal: float
    least: float

    @classmethod
    def of(cls, dtype: torch.dtype, width: int) -> Scale:
        """Return them for a dtype and a width."""
        import torch

        info = torch.finfo(dtype)
        # Less by what rounding to 8 bits, in two parts and in their sum, may add to a square.
        reach = math.sqrt(FLOAT32_MAX / max(1, width)) * (1.0 - 2.0**-6)
        return cls(min(info.max, reach), info.smallest_normal, info.smallest_normal * info.eps)


Fill = Callable[["torch.Tensor", Scale], "torch.Tensor"]
"""Makes rows ``[..., width]`` of a normal draw of that shape; float64, rounded to a dtype later."""


def plain(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Leave the draw as it is."""
    return normal


def row_by_row(*fills: Fill) -> Fill:
    """Fill rows with several kinds in turn."""

    def fill(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
        rows = normal.clone()
        for number, kind in enumerate(fills):
            rows[number :: len(fills)] = kind(normal[number :: len(fills)], scale)
        return rows

    return fill


def times(factor: float) -> Fill:
    """Scale the draw."""
    return lambda normal, scale: normal * factor


def edge(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Make every magnitude the largest."""
    return normal.sign() * scale.top


def up_to_edge(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Scale each row to the largest magnitude."""
    return normal * (scale.top / normal.abs().amax(-1, keepdim=True))


def far_below_edge(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Spread magnitudes from the largest down by powers of two."""
    # As many bits as half precision has in its exponents, from the edge down.
    return normal.sign() * scale.top * (-4.0 * normal.abs()).exp2()


def near_least(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Make small multiples of the smallest subnormal."""
    return normal.sign() * (1.0 + normal.abs() * 2.0).floor() * scale.least


def around_normal(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Scale the draw to the smallest normal magnitude, so that about two thirds are subnormal."""
    return normal * scale.normal


def up_from_least(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Spread magnitudes from the smallest subnormal up by powers of two."""
    return normal.sign() * scale.least * (5.0 * normal.abs()).exp2()


def constant(value: float) -> Fill:
    """Make rows of one value each, no smaller than the one given."""

    # Another draw is another constant, never a smaller one: 300 squared is beyond half precision.
    def fill(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
        return (value * (1.0 + normal[..., :1].abs())).expand(normal.shape)

    return fill


def alternating(value: float) -> Fill:
    """Make rows of one magnitude each, no larger than the one given, with signs in turn."""

    def fill(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
        import torch

        signs = 1.0 - 2.0 * (torch.arange(normal.shape[-1]) % 2)
        return signs * value / (1.0 + normal[..., :1].abs() / 8.0)

    return fill


def spike(place: float) -> Fill:
    """Make small rows with one element of 100, at a place from 0 to 1 in the row."""

    def fill(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
        rows = normal * 0.01
        rows[..., int(place * (normal.shape[-1] - 1))] = 100.0
        return rows

    return fill


def zero(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Make zeros, of either sign."""
    return normal * 0.0


def minus_zero(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Make zeros that are all negative."""
    return normal.abs() * -0.0


def some_minus_zero(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Put negative zeros where the draw is small."""
    return normal.where(normal.abs() > 0.5, -0.0)


def with_one(value: float, place: float) -> Fill:
    """Put one such element into each row, at a place from 0 to 1."""

    def fill(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
        rows = normal.clone()
        rows[..., int(place * (normal.shape[-1] - 1))] = value
        return rows

    return fill


def ones_in_turn(value: float) -> Fill:
    """One such element in the first, middle and last column of a row, rows without in between."""
    places = (with_one(value, p) for p in (0.0, 0.5, 1.0))
    return row_by_row(*(fill for place in places for fill in (place, plain)))


def same_row(normal: torch.Tensor, scale: Scale) -> torch.Tensor:
    """Make every row the first one."""
    return normal[:1].expand(normal.shape)
