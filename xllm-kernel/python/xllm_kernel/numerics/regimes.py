"""Kinds of data and of memory that a tame draw never is, each a few rows high; by name, in order.

Knows rows of numbers, no operator: a suite makes its arguments of them, and cases of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xllm_kernel.numerics.memory import DENSE, Form, Layout
from xllm_kernel.numerics.regime_rows import (
    Fill,
    alternating,
    around_normal,
    constant,
    edge,
    far_below_edge,
    minus_zero,
    near_least,
    ones_in_turn,
    plain,
    row_by_row,
    same_row,
    some_minus_zero,
    spike,
    times,
    up_from_least,
    up_to_edge,
    with_one,
    zero,
)


@dataclass(frozen=True, slots=True)
class Variant:
    """One case of a regime, for each dtype.

    Attributes:
        shape: extents of the rows.
        fill: makes the rows.
        label: tells it apart from others of the same shape and eps.
        eps: what is added beneath a root, or elsewhere against a division by zero; None leaves it
            to the suite.
        layout: how the rows lie.
        shared: makes what all rows share, of a draw of their width; None leaves it to the suite.
    """

    shape: tuple[int, ...]
    fill: Fill = plain
    label: str = ""
    eps: float | None = None
    layout: Layout = DENSE
    shared: Fill | None = None


@dataclass(frozen=True, slots=True)
class Regime:
    """A kind of inputs.

    Attributes:
        name: as in options and case identifiers.
        text: what it is, for people.
        variants: its cases.
    """

    name: str
    text: str
    variants: tuple[Variant, ...]


# An odd width ends in part of a vector; the even one is what hardware with whole vectors takes.
_ODD, _EVEN = 513, 576
_ROWS = ((3, _ODD), (4, _EVEN))
_WIDTHS = (1, 2, 3, 7, 9, 17, 33, 65, 129, 769, 1200, 8191, 131072)


def _both(fill: Fill, label: str = "", eps: float | None = None) -> tuple[Variant, ...]:
    return tuple(Variant(shape, fill, label, eps) for shape in _ROWS)


def _laid_out(shapes: Sequence[tuple[int, ...]], **layouts: Layout) -> tuple[Variant, ...]:
    return tuple(
        Variant(shape, label=label, layout=layout)
        for label, layout in layouts.items()
        for shape in shapes
    )


REGIMES: tuple[Regime, ...] = (
    Regime(
        "large",
        "magnitudes up to the dtype's largest, or to where float32 still holds a row's squares; "
        "what rows share so large that results overflow in float16",
        (
            *_both(row_by_row(edge, up_to_edge, far_below_edge)),
            Variant((4, _EVEN), label="overflowing", shared=times(4e4)),
        ),
    ),
    Regime(
        "small",
        "magnitudes from the smallest subnormal up, once with an eps that leaves results subnormal",
        (
            *_both(row_by_row(near_least, around_normal, up_from_least)),
            *_both(row_by_row(near_least, around_normal, up_from_least), eps=1.0),
        ),
    ),
    Regime(
        "constant",
        "rows of one value each: 300 and more, about -1, about 2^-7",
        _both(row_by_row(constant(300.0), constant(-1.0), constant(2.0**-7))),
    ),
    Regime(
        "alternating",
        "rows of one magnitude each, its sign alternating: near 60000, 1, 2^-7",
        _both(row_by_row(alternating(60000.0), alternating(-1.0), alternating(2.0**-7))),
    ),
    Regime(
        "outlier",
        "one element of 100 a row, first, in the middle or last, among others of about 0.01",
        _both(row_by_row(spike(0.0), spike(0.5), spike(1.0))),
    ),
    Regime(
        "zeros",
        "rows of zeros between others, once with an eps of 1e-12",
        (
            *_both(row_by_row(plain, zero)),
            *_both(row_by_row(plain, zero), eps=1e-12),
        ),
    ),
    Regime(
        "signed_zeros",
        "rows of -0, and some -0 in others",
        _both(row_by_row(some_minus_zero, minus_zero)),
    ),
    Regime(
        "eps",
        "eps 0, tiny, about a row's mean square, large",
        (
            Variant((4, _EVEN), times(0.5), eps=0.0),
            Variant((4, _EVEN), times(1e-6), eps=1e-12),
            Variant((3, _ODD), times(1e-3), eps=1e-6),
            Variant((4, _EVEN), times(1e-3)),
            Variant((8, _EVEN), times(0.03), eps=1e-3),
            Variant((3, _ODD), plain, eps=1.0),
            Variant((4, _EVEN), times(10.0), eps=1e4),
        ),
    ),
    Regime(
        "nonfinite",
        "one NaN, infinity or -infinity in a row, rows without beside it; a NaN in what rows share",
        (
            *(Variant((6, w), ones_in_turn(math.nan), "nan") for w in (_ODD, _EVEN)),
            *(Variant((6, w), ones_in_turn(math.inf), "inf") for w in (_ODD, _EVEN)),
            Variant((6, _ODD), ones_in_turn(-math.inf), "minus_inf"),
            Variant((3, _EVEN), label="shared_nan", shared=with_one(math.nan, 0.5)),
        ),
    ),
    Regime(
        "empty",
        "no rows, no rows of three dimensions, and rows of no width",
        (Variant((0, _EVEN)), Variant((2, 0, _EVEN)), Variant((3, 0))),
    ),
    Regime(
        "widths",
        f"three rows of widths {', '.join(map(str, _WIDTHS))}",
        tuple(Variant((3 if width < 8192 else 1, width)) for width in _WIDTHS),
    ),
    Regime(
        "dimensions",
        "one, three and four dimensions",
        (Variant((_EVEN,)), Variant((2, 3, 65)), Variant((2, 3, 64)), Variant((2, 1, 3, 64))),
    ),
    Regime(
        "strided",
        "gaps between rows, a slice of a buffer three times as wide, the same in three dimensions",
        (
            *_laid_out(_ROWS, gap=Layout(gap=7)),
            *_laid_out([(4, _EVEN)], slice=Layout(offset=_EVEN, gap=2 * _EVEN)),
            *_laid_out([(3, 4, 64)], slice=Layout(offset=256, block_gap=512)),
            *_laid_out([(3, 4, 65)], blocks=Layout(offset=5, gap=3, block_gap=29)),
        ),
    ),
    Regime(
        "transposed",
        "rows whose elements are columns of memory",
        _laid_out(((5, _EVEN), (5, _ODD)), columns=Layout(form=Form.COLUMNS)),
    ),
    Regime(
        "expanded",
        "rows that are all the same memory",
        tuple(
            Variant((5, width), same_row, layout=Layout(form=Form.REPEATED))
            for width in (_ODD, _EVEN)
        ),
    ),
    Regime(
        "misaligned",
        "every tensor so many elements away from an aligned address, rows dense or a gap apart",
        (
            *_laid_out(_ROWS, by1=Layout(offset=1), by3=Layout(offset=3)),
            *_laid_out([(4, _EVEN)], by5=Layout(offset=5, gap=1), by8=Layout(offset=8)),
        ),
    ),
)
"""Beside the suite's own matrix of normal draws."""


def named(names: Sequence[str]) -> list[Regime]:
    """Return regimes by name, in their own order, each once."""
    return [regime for regime in REGIMES if regime.name in names]
