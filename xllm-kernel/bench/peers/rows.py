"""Tensors of rows that are cheap to make, to put back and to judge, however many there are.

A block of rows with values of their own is repeated; knows no operator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from peers.operation import Dimensions

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 67
"""Rows with values of their own. A prime: samples of every 16th row see all of them."""

EVERY = 16
"""Of a large output the first, the last and every so many rows are judged."""

_LARGE_ELEMENTS = 1 << 20
_SEED = 5309
_PAGE = 4096
# Magnitudes from 2^-4 to 2^2: six binades hold 1536 values of a dtype with 7 bits of mantissa.
_LEAST_LOG, _MOST_LOG = -4.0, 2.0


class Repeated:
    """Rows of one tensor, from a block that repeats."""

    def __init__(self, dimensions: Dimensions, stream: int) -> None:
        """Allocate and fill.

        Args:
            dimensions: of the tensor.
            stream: of random numbers; tensors of one stream are equal.
        """
        import torch

        generator = torch.Generator().manual_seed(_SEED + stream)
        shape = (min(BLOCK_ROWS, dimensions.rows), dimensions.width)
        span = _MOST_LOG - _LEAST_LOG
        size = (torch.rand(shape, generator=generator) * span + _LEAST_LOG).exp2_()
        sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
        self._first = (size * sign).to(getattr(torch, dimensions.dtype))
        self.block = self._first
        self.tensor = page_aligned(dimensions)
        self.restore()

    def renew(self, number: int) -> None:
        """Put other values into the tensor: the block's, shifted in both directions."""
        self.block = self._first.roll((number, 7 * number), (0, 1))
        self.restore()

    def restore(self) -> None:
        """Fill the tensor from the block."""
        rows, width = self.tensor.shape
        count = self.block.shape[0]
        whole = rows // count * count
        self.tensor[:whole].view(-1, count, width).copy_(self.block)
        self.tensor[whole:].copy_(self.block[: rows - whole])


def page_aligned(dimensions: Dimensions) -> torch.Tensor:
    """Return uninitialised rows that begin a page, so that they lie alike for all contenders."""
    import torch

    shape = (dimensions.rows, dimensions.width)
    dtype = getattr(torch, dimensions.dtype)
    memory = torch.empty(math.prod(shape) + _PAGE // dtype.itemsize, dtype=dtype)
    begin = -memory.data_ptr() % _PAGE // dtype.itemsize
    return memory[begin : begin + math.prod(shape)].view(shape)


def weight(dimensions: Dimensions) -> torch.Tensor:
    """Return a weight of values in [0.25, 0.5)."""
    import torch

    generator = torch.Generator().manual_seed(_SEED - 1)
    made = torch.rand(dimensions.width, generator=generator) * 0.25 + 0.25
    return made.to(getattr(torch, dimensions.dtype))


def judged(rows: int, width: int) -> list[int]:
    """Return the numbers of the rows that are judged: all of a small output, else a block at least.

    The block's rows are all there is to see; others, to the end, show that it was repeated rightly.
    """
    if rows * width <= _LARGE_ELEMENTS:
        return list(range(rows))
    return sorted({*range(min(rows, BLOCK_ROWS)), *range(0, rows, EVERY), rows - 1})
