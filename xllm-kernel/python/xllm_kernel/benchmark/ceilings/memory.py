"""Memory that the probe's passes go over: two buffers of one size, touched and kept.

Times nothing.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

_LINE = 64  # bytes of a cache line, and of the widest vector


class Buffer:
    """One anonymous mapping that can grow; its pages are there before anything is timed.

    Attributes:
        size: bytes.
        address: of the first one; 0 while there is none.
    """

    def __init__(self) -> None:
        """Start without memory."""
        self.size = self.address = 0
        self._mapping: mmap.mmap | None = None
        self._held: object = None

    def reserve(self, size: int) -> None:
        """Have at least so many bytes; growing moves them."""
        if size <= self.size:
            return
        self.close()
        mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # Not hidden from children (MADV_DONTFORK): one that drops this object would unmap whatever
        # it has there. That the first pass after a fork copies pages is no matter: the best counts.
        mapping[:: mmap.PAGESIZE] = b"\1" * len(range(0, size, mmap.PAGESIZE))
        first = ctypes.c_char.from_buffer(mapping)
        self.size, self.address = size, ctypes.addressof(first)
        self._mapping, self._held = mapping, first

    def close(self) -> None:
        """Give the memory back."""
        self._held = None  # a mapping that is pointed to cannot be closed
        if self._mapping is not None:
            self._mapping.close()
        self._mapping, self.size, self.address = None, 0, 0


class Ring:
    """A source and a destination of one size, gone over in a circle.

    All passes share the place where the last one ended, so whatever a pass touches lies a whole
    turn behind in the memory's history.
    """

    def __init__(self) -> None:
        """Start without memory."""
        self.source, self.destination = Buffer(), Buffer()
        self._size = self._next = 0

    def reserve(self, size: int) -> None:
        """Have at least so many bytes in each buffer."""
        self._size = max(size, self._size)
        self.source.reserve(self._size)
        self.destination.reserve(self._size)

    def stretches(self, size: int) -> Iterator[tuple[int, int]]:
        """Go on by so many bytes; yields offset and length of each unbroken stretch."""
        if self._size == 0:
            raise ValueError("ceilings: a pass needs memory, which was given back")
        while size > 0:
            length = min(size, self._size - self._next)
            yield self._next, length
            end = self._next + -(-length // _LINE) * _LINE
            self._next = 0 if end >= self._size else end
            size -= length

    def close(self) -> None:
        """Give the memory back."""
        self.source.close()
        self.destination.close()
        self._size = self._next = 0
