"""Random argument sets: inside ones in every layout, some with defects. Knows no operator."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from hypothesis import configuration
from hypothesis import strategies as st

from domains.arguments import Arguments, Laid, dense_strides
from domains.boundaries import every_dtype, other_devices
from domains.maker import Maker
from xllm_kernel.clauses import ExtentMultiple
from xllm_kernel.domain import FLOAT32_MAX, Domain

# Its caches go where everything goes that ./dev makes.
configuration.set_hypothesis_home_dir(Path(__file__).resolve().parents[3] / "build/hypothesis")

_EXTENTS = st.sampled_from((1, 2, 3, 0, 5, 17))
_NUMBERS = st.one_of(
    st.sampled_from((1e-5, 0.0, -0.0, 1, 0, math.nan, math.inf, -math.inf, -1e-9, 1e-60)),
    st.sampled_from((FLOAT32_MAX, math.nextafter(FLOAT32_MAX, math.inf), 3.5e38, -5e-324, -1)),
    st.floats(),
)
# Rows that nobody can hold, but describe.
_HUGE = (2**20, 2**32, 2**45)
# Of a result with more no tensor can be made, nor a fake: PyTorch says so before any clause could.
_MOST_ELEMENTS = 2**58


def argument_sets(domain: Domain) -> st.SearchStrategy[Arguments]:
    """Draw argument sets of a domain: about half of them inside, the others up to two defects off.

    Args:
        domain: the domain; only its clauses are known.
    """
    return _draw_arguments(Maker(domain))


@st.composite
def _draw_arguments(draw: Any, maker: Maker) -> Arguments:
    leading = tuple(draw(st.lists(_EXTENTS, max_size=4)))
    made = dict(maker.make(leading=leading, width=draw(_widths(maker)), dtype=draw(_dtypes(maker))))
    for name in maker.domain.tensors:
        made[name] = draw(_layouts(made[name]))
    if draw(st.integers(0, 3)) == 0:
        _share(draw, maker, made)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        name = draw(st.sampled_from(maker.domain.tensors))
        if isinstance(made[name], Laid):
            made[name] = draw(_defects(made[name], maker))
    for name in maker.domain.numbers:
        if draw(st.booleans()):
            made[name] = draw(_NUMBERS)
    return made


def _widths(maker: Maker) -> st.SearchStrategy[int]:
    multiple = maker.first(ExtentMultiple)
    if multiple is None:
        return st.integers(1, 130)
    return st.integers(1, 6).map(lambda count: count * multiple.step)


def _dtypes(maker: Maker) -> st.SearchStrategy[str]:
    return st.sampled_from(maker.dtypes)


@st.composite
def _layouts(draw: Any, laid: Laid) -> Laid:
    """Lay a dense tensor in another way; most ways keep a row's elements together."""
    shape, rank = laid.shape, len(laid.shape)
    way = draw(st.sampled_from(("dense", "padded", "permuted", "repeated", "overlapping", "any")))
    offset = draw(st.sampled_from((0, 0, 1, 3, 8)))
    strides = list(laid.strides)
    if rank > 1 and way == "padded":
        gap = draw(st.integers(1, 70))
        strides[:-1] = [step + gap * max(step // shape[-1], 1) for step in strides[:-1]]
    elif rank > 1 and way == "permuted":
        order = draw(st.permutations(range(rank - 1)))
        if draw(st.integers(0, 5)) == 0:
            order = draw(st.permutations(range(rank)))  # the last dimension, too
        order = [*order, rank - 1] if len(order) < rank else list(order)
        dense = dense_strides(tuple(shape[axis] for axis in order))
        for step, axis in zip(dense, order, strict=True):
            strides[axis] = step
    elif rank > 1 and way == "repeated":
        strides[draw(st.integers(0, rank - 2))] = 0
    elif rank > 1 and way == "overlapping":
        strides[-2] = draw(st.integers(1, max(shape[-1], 1)))
    elif rank and way == "any" and draw(st.integers(0, 3)) == 0:
        strides[draw(st.integers(0, rank - 1))] = draw(st.integers(0, 300))
    # A dimension of one element has no distance, so any will do.
    for axis, extent in enumerate(shape):
        if extent == 1 and draw(st.integers(0, 3)) == 0:
            strides[axis] = draw(st.sampled_from((0, 1, 7, 2**40)))
    return dataclasses.replace(laid, strides=tuple(strides), offset=offset)


def _share(draw: Any, maker: Maker, made: dict[str, Any]) -> None:
    """Put a tensor into the memory of another: upon it, beside it, or near its ends."""
    one, other = (draw(st.sampled_from(maker.domain.tensors)) for _ in range(2))
    upon = made[other]
    reach = upon.reach
    near = st.sampled_from((0, upon.offset, reach, max(reach - 1, 0), reach + 1, reach // 2))
    offset = draw(near)
    if draw(st.booleans()) and upon.shape == made[one].shape:
        made[one] = dataclasses.replace(made[one], strides=upon.strides)
    made[one] = dataclasses.replace(made[one], memory=upon.memory, offset=offset)


@st.composite
def _defects(draw: Any, laid: Laid, maker: Maker) -> Any:
    """Change one thing about a tensor, mostly to something that no domain takes."""
    what = draw(st.sampled_from(("dtype", "shape", "shape", "strides", "device", "huge", "none")))
    shape, rank = laid.shape, len(laid.shape)
    if what == "dtype":
        usual = st.sampled_from(("float32", "float16", "bfloat16", "float64", "int32"))
        dtype = draw(st.one_of(usual, st.sampled_from(every_dtype())))
        return dataclasses.replace(laid, dtype=dtype)
    if what == "device":
        return dataclasses.replace(laid, device=draw(st.sampled_from(other_devices(maker.device))))
    if what == "none":
        return None
    if what == "strides" and rank:
        axis = draw(st.integers(0, rank - 1))
        step = draw(st.sampled_from((0, 1, 2, 3, max(shape[-1] - 1, 0), shape[-1] + 1, 2 * 64)))
        strides = (*laid.strides[:axis], step, *laid.strides[axis + 1 :])
        return dataclasses.replace(laid, strides=strides)
    if what == "huge":
        # Repeated, so that it has no more memory than before.
        kept = slice(1 if rank > 1 else 0, None)
        extent = min(draw(st.sampled_from(_HUGE)), _MOST_ELEMENTS // max(math.prod(shape[kept]), 1))
        shape, strides = (extent, *shape[kept]), (0, *laid.strides[kept])
        return dataclasses.replace(laid, shape=shape, strides=strides)
    other = draw(_shapes(shape))
    return dataclasses.replace(laid, shape=other, strides=dense_strides(other))


@st.composite
def _shapes(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a shape near another, or any."""
    rank = len(shape)
    way = draw(st.sampled_from(("more", "less", "longer", "shorter", "any")))
    if way == "more":
        return (1, *shape)
    if way == "less":
        return shape[1:]
    if way == "any" or not rank:
        return tuple(draw(st.lists(_EXTENTS, max_size=5)))
    axis = draw(st.integers(0, rank - 1))
    extent = shape[axis] + (1 if way == "longer" else -1)
    return (*shape[:axis], max(extent, 0), *shape[axis + 1 :])
