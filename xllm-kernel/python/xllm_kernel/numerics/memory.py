"""Where a case's arguments lie: plainly, or so that a step outside of them shows.

Guarded, a tensor's elements lie on the processor flush against a page that nobody may touch; on
other devices, and towards the other side, a pattern surrounds them that digests look after.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# All bits set: a NaN in every floating-point dtype, and not one that kernels write.
POISON = 0xFF

SIDES = ("end", "start")
"""Which end of the elements is guarded by a page."""

# Of pattern on each side where there are no guard pages: what devices align their memory to.
_CANARY_BYTES = 512

_guarded_side: str | None = None


class Form(Enum):
    """Which neighbours a tensor's elements have in memory.

    Attributes:
        ROWS: those along the last dimension.
        COLUMNS: those along the last but one, as in a transposed tensor.
        REPEATED: those along the last; every row is the same memory, as in an expanded tensor.
    """

    ROWS = "rows"
    COLUMNS = "columns"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor's rows lie in memory.

    Attributes:
        offset: elements that the rows are moved away from where an allocator would put them, or
            from the guarded end of their memory: its address is then aligned to one element only.
        gap: elements between the end of each row and the start of the next.
        block_gap: elements more between the blocks of rows that the last but two dimension counts.
        form: which elements are neighbours.
    """

    offset: int = 0
    gap: int = 0
    block_gap: int = 0
    form: Form = Form.ROWS

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the strides, in elements, of a tensor that lies so."""
        axes = list(reversed(range(len(shape))))  # from neighbours to those furthest apart
        if self.form is Form.REPEATED:
            return (*[0] * len(axes[1:]), *[1] * len(axes[:1]))
        if self.form is Form.COLUMNS:
            axes[:2] = reversed(axes[:2])
        steps, step = dict.fromkeys(axes, 1), 1
        for axis, more in zip(axes, (self.gap, self.block_gap, *[0] * len(axes)), strict=False):
            steps[axis] = step
            step = step * max(1, shape[axis]) + more
        return tuple(steps[axis] for axis in range(len(shape)))


DENSE = Layout()


@contextmanager
def guarded(side: str) -> Iterator[None]:
    """Let ``place`` guard what it places, with the pages at one of ``SIDES``."""
    global _guarded_side
    before, _guarded_side = _guarded_side, side
    try:
        yield
    finally:
        _guarded_side = before


def place(tensor: torch.Tensor, device: str, layout: Layout = DENSE) -> torch.Tensor:
    """Copy a tensor to a device, into memory of its own; what its elements leave free is poisoned.

    Args:
        tensor: on the CPU.
        device: where to.
        layout: how its rows shall lie.

    Returns:
        A view of its whole region: the storage begins and ends with the pattern, if with anything.
    """
    import torch

    shape = tuple(tensor.shape)
    strides = layout.strides(shape)
    reach = sum((e - 1) * s for e, s in zip(shape, strides, strict=True)) + 1
    span = reach * tensor.element_size() if tensor.numel() else 0
    away = layout.offset * tensor.element_size()
    region, start = _region(span, away, device)
    storage = torch.empty(0, dtype=tensor.dtype, device=device)
    storage.set_(region.untyped_storage(), start // tensor.element_size(), shape, strides)
    write(storage, tensor)
    return storage


def write(view: torch.Tensor, values: torch.Tensor) -> None:
    """Copy values into a view; where its rows are one memory, the first of them, as all are alike.

    Args:
        view: on any device.
        values: of the same shape.
    """
    first = once(view.shape, view.stride())
    view[first].copy_(values[first])


def once(shape: Sequence[int], strides: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of a tensor's elements that names each place in memory no more than once."""
    pairs = zip(shape, strides, strict=True)
    return tuple(slice(0, 1) if step == 0 and extent > 1 else slice(None) for extent, step in pairs)


def touched_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes that a tensor's elements occupy, places that several share counted once.

    Gaps between rows are no elements, although whole cache lines travel.
    """
    index = once(tensor.shape, tensor.stride())
    return tensor[index].numel() * tensor.element_size()


def poisoned(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a dense tensor on the CPU, poison throughout."""
    import torch

    size = math.prod(shape) * dtype.itemsize
    return torch.full((size,), POISON, dtype=torch.uint8).view(dtype).view(*shape)


def _region(span: int, away: int, device: str) -> tuple[torch.Tensor, int]:
    """Return poisoned bytes and where among them a span may begin."""
    import torch

    if _guarded_side is None:
        return torch.full((away + span,), POISON, dtype=torch.uint8, device=device), away
    if device != "cpu":
        around = _CANARY_BYTES + away
        size = around + span + _CANARY_BYTES
        return torch.full((size,), POISON, dtype=torch.uint8, device=device), around
    region = between_guard_pages(span + away)
    start = away if _guarded_side == "start" else region.numel() - away - span
    return region, start


def between_guard_pages(size: int) -> torch.Tensor:
    """Return poisoned bytes, at least so many, between two pages that nobody may touch.

    They end and begin at a page's border, and live as long as the tensor's storage.
    """
    import torch

    page = mmap.PAGESIZE
    inner = max(1, -(-size // page)) * page
    memory = mmap.mmap(-1, inner + 2 * page)
    bytes_ = (ctypes.c_uint8 * len(memory)).from_buffer(memory)
    address = ctypes.addressof(bytes_)
    for guard in (address, address + page + inner):
        _protect(guard, page)
    region = torch.frombuffer(bytes_, dtype=torch.uint8, count=inner, offset=page)
    return region.fill_(POISON)


def _protect(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    nobody = 0
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), nobody) != 0:
        raise OSError(ctypes.get_errno(), "mprotect of a guard page")
