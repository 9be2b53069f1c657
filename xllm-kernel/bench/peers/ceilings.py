"""The best that memory allows: copies and updates of the bytes that an operator must move.

Times nothing itself but for what its passes report; knows no operator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import repeat

import torch

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
