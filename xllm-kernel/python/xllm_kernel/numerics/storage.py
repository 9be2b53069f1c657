"""What a call did to memory it does not own: mutated arguments, outputs that share storage.

Bytes are compared on the processor: a device is not asked whether it was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from xllm_kernel.numerics.memory import once

if TYPE_CHECKING:
    import torch


def is_tensor(value: object) -> bool:
    """Say whether an argument or a leaf of a result is a tensor; imports nothing to find out."""
    return hasattr(value, "untyped_storage")


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


def _element_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Mark, of a tensor's whole storage, the bytes that its elements occupy."""
    import torch

    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    mark = torch.zeros(tensor.untyped_storage().nbytes(), dtype=torch.uint8).untyped_storage()
    elements = torch.empty(0, dtype=integers[tensor.element_size()])
    elements.set_(mark, tensor.storage_offset(), tensor.size(), tensor.stride())
    elements[once(tensor.shape, tensor.stride())].fill_(-1)
    return torch.empty(0, dtype=torch.uint8).set_(mark) != 0


def _first_change(
    before: torch.Tensor, now: torch.Tensor, tensor: torch.Tensor, inside: bool
) -> int | None:
    """Return the first byte that differs inside, or outside, of a tensor's elements, or None."""
    if now.equal(before):
        return None
    wrong = (now != before) & (_element_bytes(tensor) == inside)
    return int(wrong.nonzero()[0]) if bool(wrong.any()) else None


def _where(tensor: torch.Tensor, byte: int) -> str:
    """Say where a byte of a tensor's storage lies, seen from its elements."""
    size = tensor.element_size()
    first = tensor.storage_offset() * size
    extents = zip(tensor.shape, tensor.stride(), strict=True)
    end = first + (sum((e - 1) * s for e, s in extents) + 1) * size if tensor.numel() else first
    if byte < first:
        return f"{first - byte} before the first element"
    return f"{byte - end + 1} past the last element" if byte >= end else "in a gap between rows"


class ArgumentGuard:
    """Remembers arguments as they were made, to tell later what was done to them.

    The memory is of the arguments' creation, not of the last call: a write in any call since then,
    a timed one for instance, is seen by the next check.
    """

    def __init__(
        self,
        arguments: Mapping[str, torch.Tensor],
        mutates: Iterable[str] = (),
        changes: Iterable[str] = (),
    ) -> None:
        """Copy the storage of every argument.

        Args:
            arguments: tensors by argument name.
            mutates: names of those that the contract lets the operator write, at their elements.
            changes: those of them whose bytes this case must change.
        """
        self._arguments = dict(arguments)
        self._mutates = frozenset(mutates) & frozenset(arguments)
        self._changes = frozenset(changes)
        self._before = {n: storage_bytes(t).to("cpu", copy=True) for n, t in arguments.items()}

    def argument(self, name: str) -> torch.Tensor:
        """Return an argument, with what stands in it now."""
        return self._arguments[name]

    def reset(self) -> None:
        """Restore the whole storage of every argument that may be written."""
        for name in self._mutates:
            storage_bytes(self._arguments[name]).copy_(self._before[name])

    def restore(self) -> None:
        """Restore the whole storage of every argument."""
        for name, before in self._before.items():
            storage_bytes(self._arguments[name]).copy_(before)

    def mutation(self) -> str | None:
        """Return a sentence about the first argument that was wrongly written, or left, or None."""
        for name, argument in self._arguments.items():
            before, now = self._before[name], storage_bytes(argument).cpu()
            if now.numel() != before.numel():
                return f"argument '{name}' was resized from {before.numel()} to {now.numel()} bytes"
            if name in self._mutates:
                if name in self._changes and now.equal(before):
                    return f"argument '{name}' must be written to, but none of its bytes changed"
                continue
            changed = _first_change(before, now, argument, inside=True)
            if changed is not None:
                return (
                    f"argument '{name}' was written to though the contract does not let it be: "
                    f"byte {changed} of its storage changed"
                )
        return None

    def stray(self) -> str | None:
        """Return a sentence about the first byte that changed outside of all elements, or None."""
        for name, argument in self._arguments.items():
            before, now = self._before[name], storage_bytes(argument).cpu()
            if now.numel() != before.numel():
                continue
            changed = _first_change(before, now, argument, inside=False)
            if changed is not None:
                return (
                    f"argument '{name}': memory outside of its elements was written to: byte "
                    f"{changed} of its storage changed, {_where(argument, changed)}"
                )
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
