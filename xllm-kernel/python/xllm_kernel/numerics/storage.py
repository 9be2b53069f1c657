"""What a call did to memory it does not own: mutated arguments, outputs that share storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's whole storage as bytes, gaps between its elements included."""
    import torch

    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage())


def overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Say whether the storages of two tensors share a byte."""
    if first.device != second.device:
        return False
    a, b = first.untyped_storage(), second.untyped_storage()
    return a.data_ptr() < b.data_ptr() + b.nbytes() and b.data_ptr() < a.data_ptr() + a.nbytes()


class ArgumentGuard:
    """Remembers arguments as they were made, to tell later what was done to them.

    The memory is of the arguments' creation, not of the last call: a write in any call since then,
    a timed one for instance, is seen by the next check.
    """

    def __init__(self, arguments: Mapping[str, torch.Tensor], mutates: Iterable[str] = ()) -> None:
        """Copy every argument that the contract does not let the operator write.

        Args:
            arguments: tensors by argument name.
            mutates: names the operator may write to.
        """
        self._arguments = dict(arguments)
        allowed = frozenset(mutates)
        self._before = {
            name: storage_bytes(tensor).clone()
            for name, tensor in arguments.items()
            if name not in allowed
        }

    def mutation(self) -> str | None:
        """Return a sentence about the first argument that was written to, or None."""
        for name, before in self._before.items():
            now = storage_bytes(self._arguments[name])
            if now.numel() != before.numel():
                return f"argument '{name}' was resized from {before.numel()} to {now.numel()} bytes"
            if not now.equal(before):
                byte = int((now != before).nonzero()[0])
                return f"argument '{name}' was written to: byte {byte} of its storage changed"
        return None

    def alias(self, outputs: Iterable[tuple[str, torch.Tensor]]) -> str | None:
        """Return a sentence about the first output that shares storage, or None.

        Args:
            outputs: paths and tensors of a result.
        """
        seen: list[tuple[str, torch.Tensor]] = []
        for path, output in outputs:
            for name, argument in self._arguments.items():
                if overlap(output, argument):
                    return f"{path} shares storage with argument '{name}'"
            for other_path, other in seen:
                if overlap(output, other):
                    return f"{path} shares storage with {other_path}"
            seen.append((path, output))
        return None
