"""The best that memory allows: copies and updates of the bytes that an operator must move.

Knows no operator. A pass over bytes is measured like a library's call, and in the same turns.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from pathlib import Path

import torch

from peers.operation import PeerError

Measure = Callable[[int], float]
"""Makes so many passes or calls; returns the microseconds of one."""

Ceilings = Callable[[torch.Tensor, torch.Tensor, bool, int], Mapping[str, Measure]]
"""Takes a source, memory of its size, whether the source may change, and the threads."""


def timed(function: Callable[[], object]) -> Measure:
    """Measure calls of a function with this process's clock."""

    def measure(count: int) -> float:
        begin = time.perf_counter_ns()
        for _ in repeat(None, count):
            function()
        return (time.perf_counter_ns() - begin) / 1e3 / count

    return measure


def of_torch(
    source: torch.Tensor, destination: torch.Tensor, may_change: bool, _threads: int
) -> dict[str, Measure]:
    """Return torch's own copy and, where the source may change, an update in place."""
    whole = source.view(torch.int16 if source.element_size() == 2 else torch.int32)
    passes = {"torch copy": timed(lambda: destination.copy_(source))}
    if may_change:
        passes["torch update"] = timed(whole.bitwise_not_)
    return passes


def of_library(path: Path) -> Ceilings:
    """Return the passes of our own probe, ``bench/ceilings/ceilings.h``, which times itself.

    Args:
        path: the shared library.

    Raises:
        PeerError: where it does not load.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise PeerError(f"--ceilings must be a library that loads: {error}") from error
    library.xllm_ceiling_error.restype = ctypes.c_char_p

    def passes(
        source: torch.Tensor, destination: torch.Tensor, may_change: bool, threads: int
    ) -> dict[str, Measure]:
        def of(name: str, *tensors: torch.Tensor) -> Measure:
            function = getattr(library, f"xllm_ceiling_{name}")
            function.restype = ctypes.c_double
            buffers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
            arguments = (*buffers, ctypes.c_int64(source.nbytes), ctypes.c_int32(threads))

            def measure(count: int) -> float:
                seconds: float = function(*arguments, ctypes.c_int64(count))
                if seconds < 0:
                    raise PeerError(f"ceiling {name}: {library.xllm_ceiling_error().decode()}")
                return seconds * 1e6

            return measure

        found = {
            "copy": of("copy", destination, source),
            "streaming copy": of("copy_streaming", destination, source),
        }
        return found | {"update": of("update", source)} if may_change else found

    return passes
