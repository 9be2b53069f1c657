"""A graph mode on the processor: calls recorded as a device records them, and replayed as recorded.

Operators run while they are recorded, unlike on a device; a replay runs them again on the same
memory with the same numbers, and no Python of the operator's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.cpu import CpuPlatform

CALLS = 64
Damage = Callable[[list[Any], int], None]

# They do no work on a device.
_ALLOCATIONS = ("aten::empty", "aten::new_empty")

_capturing = False


def capturing() -> bool:
    """Say whether the call is being recorded, or compiled."""
    return torch.compiler.is_compiling() or _capturing


class Recorded(TorchDispatchMode):
    """Some calls, recorded; what they allocate stays theirs."""

    def __init__(self, function: Callable[[], Any], calls: int) -> None:
        super().__init__()
        self._steps: list[tuple[Any, Any, Any, Any]] = []
        with self, _flag():
            self.outputs = [function() for _ in range(calls)]
        self.replays = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.name().startswith(_ALLOCATIONS):
            self._steps.append((func, *map(_memory_of, (args, kwargs or {}, result))))
        return result

    def replay(self) -> None:
        self.replays += 1
        for func, args, kwargs, written in self._steps:
            for old, new in zip(
                tree_leaves(written), tree_leaves(func(*args, **kwargs)), strict=True
            ):
                # What wrote to an argument, or only looks at one, has nothing to copy.
                if torch.is_tensor(old) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def _memory_of(structure: Any) -> Any:
    """Return it with other tensors over the same memory, which is all that a graph holds."""
    return tree_map_only(torch.Tensor, torch.Tensor.detach, structure)


@contextmanager
def _flag():
    global _capturing
    _capturing = True
    try:
        yield
    finally:
        _capturing = False


def _unharmed(outputs: list[Any], replays: int) -> None:
    pass


def install(
    monkeypatch: pytest.MonkeyPatch, damage: Damage = _unharmed, *, streams: bool = False
) -> None:
    """Give the processor a mode ``graph``.

    Args:
        monkeypatch: takes it away again.
        damage: gets the outputs after each replay, and how many there have been.
        streams: whether it has another stream, which is no other one at all.
    """

    def capture(self: CpuPlatform, function: Callable[[], Any], mode: str, **options: Any):
        if mode != "graph":
            return eager(function)
        calls = options.get("calls") or CALLS
        graph = Recorded(function, calls)

        def replay() -> None:
            graph.replay()
            damage(graph.outputs, graph.replays)

        return Captured(calls, replay, lambda: graph.outputs)

    monkeypatch.setattr(CpuPlatform, "execution_modes", ("eager", "graph", "compile"))
    monkeypatch.setattr(CpuPlatform, "capture", capture)
    if streams:
        monkeypatch.setattr(CpuPlatform, "other_stream", lambda self: nullcontext())
