"""For each clause of a domain: argument sets just inside and just outside. Knows no operator.

A new kind of clause needs an entry in ``PROBES``; without one every use of its domain fails.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from domains.arguments import Arguments, dense_strides
from domains.maker import Maker
from xllm_kernel import clauses as kinds
from xllm_kernel.domain import Clause, Domain

Side = tuple[bool, Arguments]
"""Whether the arguments are inside, and the arguments."""


@dataclass(frozen=True)
class Probe:
    """An argument set at one clause's boundary.

    Attributes:
        clause: the clause's name.
        inside: whether the domain accepts the arguments; otherwise it names the clause.
        arguments: the argument set.
    """

    clause: str
    inside: bool
    arguments: Arguments


def probes(domain: Domain) -> Iterator[Probe]:
    """Yield argument sets on both sides of every clause, and whether they are inside."""
    maker = Maker(domain)
    for clause in domain.clauses:
        for inside, arguments in PROBES[type(clause)](maker, clause):
            yield Probe(clause.name, inside, arguments)


@functools.cache
def every_dtype() -> tuple[str, ...]:
    """Name every dtype that a tensor can have here, quantised ones apart: they want scales."""
    names = set()
    for value in vars(torch).values():
        if not isinstance(value, torch.dtype) or "q" in str(value):
            continue
        try:
            torch.empty(2, 2, dtype=value)
        except (RuntimeError, NotImplementedError):
            continue
        names.add(str(value).removeprefix("torch."))
    return tuple(sorted(names))


def other_devices(device: str) -> list[str]:
    """Name devices that are always there, besides one."""
    return [name for name in ("cpu", "meta") if name != device]


def _rank(maker: Maker, clause: Any) -> Iterator[Side]:
    for rank in range(6):
        inside = rank == clause.minimum if clause.exact else rank >= clause.minimum
        # A domain that asks for a width asks the only, and so the last, extent.
        shape = (*(1,) * (rank - 1), maker.width) if rank else ()
        yield inside, maker.make({clause.argument: {"shape": shape}})


def _dtype_in(maker: Maker, clause: Any) -> Iterator[Side]:
    for dtype in every_dtype():
        yield dtype in clause.allowed, maker.make({clause.argument: {"dtype": dtype}})


def _same_dtype(maker: Maker, clause: Any) -> Iterator[Side]:
    for model in maker.dtypes:
        for dtype in every_dtype() if model == maker.dtypes[0] else maker.dtypes:
            inside = dtype in (model, clause.always)
            yield inside, maker.make({clause.argument: {"dtype": dtype}}, dtype=model)


def _extent(maker: Maker, clause: Any) -> Iterator[Side]:
    for extent in (clause.minimum - 1, clause.minimum, clause.minimum + 1):
        for leading in ((3,), (0,), ()):
            if extent >= 0:
                yield extent >= clause.minimum, maker.make(leading=leading, width=extent)


def _extent_multiple(maker: Maker, clause: Any) -> Iterator[Side]:
    edges = (0, clause.step, 2 * clause.step, clause.maximum, clause.maximum + clause.step)
    for extent in sorted({max(0, edge + near) for edge in edges for near in (-1, 0, 1)}):
        inside = clause.step <= extent <= clause.maximum and extent % clause.step == 0
        yield inside, maker.make(leading=(2,), width=extent)


def _elements_at_most(maker: Maker, clause: Any) -> Iterator[Side]:
    # Repeated rows: any number of them takes the memory of one.
    step = maker.width
    for rows in (clause.maximum // step, clause.maximum // step + 1):
        laid = {"shape": (rows, step), "strides": (0, 1)}
        yield rows * step <= clause.maximum, maker.make({clause.argument: laid})


def _rows_reach(maker: Maker, clause: Any) -> Iterator[Side]:
    width = maker.width
    for far in (clause.maximum - width, clause.maximum - width + 1):
        laid = {"shape": (2, width), "strides": (far, 1)}
        yield far + width <= clause.maximum, maker.make({clause.argument: laid})


# By the device's own numbers: a plain format, and one that its matrix unit likes.
_FORMATS = ((2, "ND"), (29, "FRACTAL_NZ"))


def _format_in(maker: Maker, clause: Any) -> Iterator[Side]:
    for number, name in _FORMATS:
        laid = {"format": (number, name)}
        yield name in clause.allowed, maker.make({clause.argument: laid}, leading=(16,))
    yield True, maker.make()


def _same_extent(maker: Maker, clause: Any) -> Iterator[Side]:
    laid = maker.make()[clause.argument]
    for more in (-1, 0, 1):
        shape = list(laid.shape)
        shape[clause.axis] += more
        yield more == 0, maker.make({clause.argument: {"shape": tuple(shape)}})
    shape = [*laid.shape]
    shape[clause.axis] = 1
    yield False, maker.make({clause.argument: {"shape": tuple(shape)}})


def _device_is(maker: Maker, clause: Any) -> Iterator[Side]:
    yield True, maker.make()
    for device in other_devices(maker.device):
        yield False, maker.make({clause.argument: {"device": device}})


def _same_device(maker: Maker, clause: Any) -> Iterator[Side]:
    yield True, maker.make()
    for device in other_devices(maker.device):
        yield False, maker.make({clause.argument: {"device": device}})


def _unit_stride(maker: Maker, clause: Any) -> Iterator[Side]:
    shape = maker.make()[clause.argument].shape
    dense = dense_strides(shape)
    for stride in (0, 1, 2, 3):
        strides = (*(step * max(stride, 1) for step in dense[:-1]), stride)
        laid = {"shape": shape, "strides": strides}
        yield stride == 1, maker.make({clause.argument: laid})
    # One element has no neighbour; two have.
    for width in (1, 2):
        given = maker.make(width=width)[clause.argument]
        laid = {"strides": (*(step * 7 for step in given.strides[:-1]), 7)}
        yield width == 1, maker.make({clause.argument: laid}, width=width)


def _same_shape(maker: Maker, clause: Any) -> Iterator[Side]:
    shape = maker.make()[clause.argument].shape
    yield True, maker.make()
    others: list[tuple[int, ...]] = [(1, *shape), shape[1:], (1, *shape[1:]), shape[::-1]]
    others += [(*shape[:-1], shape[-1] + more) for more in (-1, 1)]
    others += [(shape[0] + more, *shape[1:]) for more in (-1, 1)]
    for other in others:
        yield other == shape, maker.make({clause.argument: {"shape": other}})


def _rows_apart(maker: Maker, clause: Any) -> Iterator[Side]:
    width = maker.width
    for step in (0, 1, width - 1, width, width + 1):
        laid = {"shape": (3, width), "strides": (step, 1)}
        yield step >= width, maker.make({clause.argument: laid}, leading=(3,))
        # In a row of one there is no other to touch, in none nothing at all.
        for rows in (0, 1):
            laid = {"shape": (rows, width), "strides": (step, 1)}
            yield True, maker.make({clause.argument: laid}, leading=(rows,))
    # Two leading dimensions, the outer one nearer; the inner one must step over three rows.
    for step in (3 * width - 1, 3 * width):
        laid = {"shape": (3, 2, width), "strides": (width, step, 1)}
        yield step == 3 * width, maker.make({clause.argument: laid}, leading=(3, 2))


def _apart(maker: Maker, clause: Any) -> Iterator[Side]:
    made = maker.make()
    mine, theirs = made[clause.argument], made[clause.other]
    for shared in (0, 1):
        # Mine behind theirs, then before them, with so many elements of both.
        yield (
            shared == 0,
            _together(maker, clause, theirs.reach - shared, 0, theirs.memory),
        )
        yield shared == 0, _together(maker, clause, 0, mine.reach - shared, theirs.memory)
    yield False, _together(maker, clause, 0, 0, theirs.memory)
    # One address, but nothing there.
    empty = maker.make({clause.argument: {"memory": theirs.memory}}, leading=(0,))
    yield True, empty


def _together(maker: Maker, clause: Any, mine: int, theirs: int, memory: int) -> Arguments:
    changes = {clause.argument: {"offset": mine, "memory": memory}}
    return maker.make({**changes, clause.other: {"offset": theirs}})


def _float_in(maker: Maker, clause: Any) -> Iterator[Side]:
    low, high = float(clause.minimum), float(clause.maximum)
    edges = [low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf)]
    edges += [math.nextafter(low, -math.inf), math.nextafter(high, math.inf)]
    edges += [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, 1e-60, -1e-60, 1e300, 1, 0, -1]
    for value in edges:
        yield low <= value <= high, maker.make({clause.argument: value})


PROBES: dict[type[Clause], Callable[[Maker, Any], Iterator[Side]]] = {
    kinds.Rank: _rank,
    kinds.DtypeIn: _dtype_in,
    kinds.SameDtype: _same_dtype,
    kinds.Extent: _extent,
    kinds.ExtentMultiple: _extent_multiple,
    kinds.ElementsAtMost: _elements_at_most,
    kinds.RowsReach: _rows_reach,
    kinds.FormatIn: _format_in,
    kinds.SameExtent: _same_extent,
    kinds.DeviceIs: _device_is,
    kinds.SameDevice: _same_device,
    kinds.UnitStride: _unit_stride,
    kinds.SameShape: _same_shape,
    kinds.RowsApart: _rows_apart,
    kinds.Apart: _apart,
    kinds.FloatIn: _float_in,
}
