"""Argument sets as data: how tensors lie in memories they may share; facts and tensors of them.

Decides nothing about what is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from xllm_kernel.domain import TensorFacts

# Larger memories are described to clauses and fakes, and never allocated.
MOST_BYTES = 1 << 20
# Larger results are not computed: what refuses them is asked, what accepts them is not called.
MOST_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class Laid:
    """A tensor as it lies in a memory.

    Attributes:
        shape: extents.
        strides: in elements, none negative.
        dtype: name without PyTorch's prefix.
        device: as ``str(tensor.device)`` has it.
        memory: which memory; tensors of one device and number share it.
        offset: of the first element, in elements of this dtype.
        format: a device's own number and name of a layout; None for a plain tensor.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    memory: int = 0
    offset: int = 0
    format: tuple[int, str] | None = None

    @property
    def itemsize(self) -> int:
        return torch_dtype(self.dtype).itemsize

    @property
    def reach(self) -> int:
        """Elements from the memory's start to past the last that is touched."""
        if 0 in self.shape:
            return self.offset
        steps = zip(self.shape, self.strides, strict=True)
        return self.offset + 1 + sum((extent - 1) * stride for extent, stride in steps)

    @property
    def facts(self) -> TensorFacts:
        """What the clauses may know, found without PyTorch."""
        return TensorFacts(
            self.shape,
            self.strides,
            self.dtype,
            self.device,
            self.offset,
            memory=(self.memory + 1, self.offset * self.itemsize),
            itemsize=self.itemsize,
            format=self.format[1] if self.format else None,
        )


class UnmakeableError(Exception):
    """A device's library makes no such tensor."""


Arguments = Mapping[str, Any]
"""Argument name to Laid, or to any value that is passed on as it is."""


def torch_dtype(name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, name)
    return found


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return TensorFacts.contiguous(shape, "", "").strides


def facts_of(arguments: Arguments) -> dict[str, Any]:
    return {n: v.facts if isinstance(v, Laid) else v for n, v in arguments.items()}


def tensors_of(arguments: Arguments) -> dict[str, Laid]:
    return {name: value for name, value in arguments.items() if isinstance(value, Laid)}


def fits(arguments: Arguments) -> bool:
    """Say whether the memories may be allocated."""
    return all(laid.reach * laid.itemsize <= MOST_BYTES for laid in tensors_of(arguments).values())


def is_small(arguments: Arguments) -> bool:
    """Say whether a result of the largest shape may be computed."""
    return all(math.prod(laid.shape) <= MOST_ELEMENTS for laid in tensors_of(arguments).values())


class Made:
    """Real tensors of an argument set, and the memories that they lie in.

    Raises:
        UnmakeableError: on construction, where a device's library makes no such tensor.

    Attributes:
        values: by argument name, as a call takes them.
        memories: bytes of each, by device and number.
    """

    def __init__(self, arguments: Arguments) -> None:
        self.memories: dict[tuple[str, int], torch.Tensor] = {}
        laid = tensors_of(arguments)
        for place in {(one.device, one.memory): None for one in laid.values()}:
            inside = [one for one in laid.values() if (one.device, one.memory) == place]
            size = max(one.reach * one.itemsize for one in inside)
            self.memories[place] = _memory(size, place[0])
        self.values = {
            name: self._view(value) if isinstance(value, Laid) else value
            for name, value in arguments.items()
        }
        self.before = {place: memory.clone() for place, memory in self.memories.items()}

    def _view(self, laid: Laid) -> torch.Tensor:
        if laid.format is not None:
            return _formatted(laid)
        memory = self.memories[laid.device, laid.memory]
        empty = torch.empty(0, dtype=torch_dtype(laid.dtype), device=laid.device)
        return empty.set_(memory.untyped_storage(), laid.offset, laid.shape, laid.strides)

    def touched(self) -> Iterator[tuple[str, int]]:
        """Yield the memories that are not as they were."""
        for place, memory in self.memories.items():
            if not memory.is_meta and not torch.equal(memory, self.before[place]):
                yield place


def fakes_of(arguments: Arguments, mode: FakeTensorMode) -> dict[str, Any]:
    """Describe an argument set to PyTorch, with nothing behind it."""
    if fits(arguments):
        made = Made(arguments)
        return {
            name: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
            for name, value in made.values.items()
        }
    with mode:
        return Made(arguments).values


def _memory(size: int, device: str) -> torch.Tensor:
    """Return bytes that are finite and uneven in every float type, the same each time."""
    room = -(-max(size, 16) // 16) * 8
    words = torch.arange(room) % 1021 + 0x3800
    return words.to(torch.int16).view(torch.uint8).to(device)


def _formatted(laid: Laid) -> torch.Tensor:
    import torch_npu

    assert laid.format is not None
    made: torch.Tensor = torch_npu.empty_with_format(
        laid.shape, dtype=torch_dtype(laid.dtype), device=laid.device, acl_format=laid.format[0]
    )
    if torch_npu.get_npu_format(made) != laid.format[0]:
        raise UnmakeableError(f"{laid} came out in format {torch_npu.get_npu_format(made)}")
    return made
