"""Executable input domains: named clauses over shapes, dtypes, strides, devices and scalars.

A domain is data beside an operator's contract. Argument checks, fakes, suites and descriptions
read it; this module knows no operator and imports no framework.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from xllm_kernel.errors import DomainError

FLOAT32_MAX = (2.0 - 2.0**-23) * 2.0**127


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What clauses may know of a tensor.

    Attributes:
        shape: extents.
        strides: in elements, one a dimension.
        dtype: name without a framework's prefix, e.g. ``"bfloat16"``.
        device: e.g. ``"cpu"`` or ``"npu:0"``.
        offset: distance of the first element from the storage's start, in elements; 0 where nobody
            asked.
        memory: what addresses count from (0: the address space; else a storage), and the first
            element's address; None where nobody asked or there is no memory.
        itemsize: bytes of one element; 0 where nobody asked.
        format: how a device lays the tensor out, by the device's own name, e.g. ``"ND"``; None
            where nobody asked or there is no device.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    offset: int = 0
    memory: tuple[int, int] | None = field(default=None, compare=False)
    itemsize: int = field(default=0, compare=False)
    format: str | None = None

    @property
    def span(self) -> tuple[int, int]:
        """First byte that the elements can touch, and one past the last; equal for none."""
        if self.memory is None or any(extent == 0 for extent in self.shape):
            return (0, 0)
        reach = 1
        for extent, stride in zip(self.shape, self.strides, strict=True):
            reach += (extent - 1) * stride
        first = self.memory[1]
        return (first, first + reach * self.itemsize)

    @property
    def row_step(self) -> int | None:
        """Elements from each row's start, along the last dimension, to the next one's.

        None where rows do not lie at one distance, or a row's elements are no neighbours; the width
        where there are not two rows.
        """
        width = self.shape[-1]
        if width > 1 and self.strides[-1] != 1:
            return None
        if math.prod(self.shape[:-1]) < 2:
            return width
        leading = zip(reversed(self.shape[:-1]), reversed(self.strides[:-1]), strict=True)
        (extent, step), *others = [(e, s) for e, s in leading if e != 1]
        covered = extent * step
        for extent, stride in others:
            if stride != covered:
                return None
            covered = extent * stride
        return step

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str, device: str) -> TensorFacts:
        """Describe a dense row-major tensor."""
        strides: list[int] = []
        step = 1
        for extent in reversed(shape):
            strides.append(step)
            step *= max(extent, 1)
        return cls(tuple(shape), tuple(reversed(strides)), dtype, device)

    @classmethod
    def of(cls, tensor: Any, *, located: bool = False) -> TensorFacts:
        """Describe a Torch tensor, fake and symbolic ones included.

        Args:
            tensor: the tensor.
            located: whether to say where in memory it lies, too.
        """
        return cls(
            shape=tuple(tensor.shape),
            strides=tensor.stride(),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            offset=tensor.storage_offset() if located else 0,
            memory=_memory_of(tensor) if located else None,
            itemsize=tensor.element_size() if located else 0,
        )


def is_traced() -> bool:
    """Say whether a compiler traces this very code, which then has no addresses to offer."""
    import torch

    return torch.compiler.is_dynamo_compiling()


def _memory_of(tensor: Any) -> tuple[int, int] | None:
    """Locate a tensor's first element: in the address space, or for a fake inside its storage."""
    try:
        storage = tensor.untyped_storage()
        start: int = tensor.storage_offset() * tensor.element_size()
        # What has no bytes behind it: a fake of another device, or a tensor on meta.
        if hasattr(tensor, "fake_mode") or tensor.is_meta:
            return (storage._cdata, start)
        return (0, storage.data_ptr() + start)
    except (RuntimeError, NotImplementedError):
        return None  # traced or wrapped, with no storage of its own


Facts = Mapping[str, Any]
"""Argument name to TensorFacts or number."""


@dataclass(frozen=True, slots=True)
class Clause(ABC):
    """One named condition on an argument.

    Attributes:
        argument: the argument that a violation blames.
        needs_memory: whether the clause asks where in memory tensors lie.
    """

    needs_memory: ClassVar[bool] = False
    argument: str

    @property
    def name(self) -> str:
        """Identify the clause, e.g. ``"weight.width"``."""
        return ".".join(filter(None, (self.argument, self._label())))

    @property
    def text(self) -> str:
        """State the condition in general."""
        return self._must()

    def violation(self, facts: Facts) -> str | None:
        """Return what must hold and what was seen, or None where the condition holds."""
        seen = self._violated_by(facts)
        return None if seen is None else self._must() + seen

    @abstractmethod
    def _label(self) -> str:
        """Name what the clause is about; empty where it is the argument itself."""

    @abstractmethod
    def _must(self) -> str:
        """Say what must hold."""

    @abstractmethod
    def _violated_by(self, facts: Facts) -> str | None:
        """Return how the sentence goes on with what was seen, or None where the clause holds."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The first clause that arguments violate, and the sentence about it."""

    clause: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Domain:
    """Every condition an implementation puts on its arguments, in the order they are checked.

    Attributes:
        operation: name of the operation, for messages.
        tensors: names of the tensor arguments.
        numbers: names of the number arguments.
        clauses: the conditions; a later one may rely on an earlier one.
    """

    operation: str
    tensors: tuple[str, ...]
    numbers: tuple[str, ...]
    clauses: tuple[Clause, ...]

    @property
    def text(self) -> str:
        """Describe the domain in one line."""
        return "; ".join(clause.text for clause in self.clauses)

    def violation(self, facts: Facts) -> Violation | None:
        """Return the first violated clause, or None inside the domain."""
        for clause in self.clauses:
            sentence = clause.violation(facts)
            if sentence is not None:
                return Violation(clause.name, sentence)
        return None

    def check(self, implementation: str, /, **arguments: Any) -> None:
        """Check arguments; while a compiler traces the caller, all but where in memory they lie.

        Args:
            implementation: full name, for the message.
            **arguments: tensors and numbers by argument name.

        Raises:
            DomainError: for the first violated clause.
        """
        violation = self._wrong_type(arguments)
        if violation is None:
            located = any(clause.needs_memory for clause in self.clauses) and not is_traced()
            facts = {
                name: TensorFacts.of(value, located=located) if name in self.tensors else value
                for name, value in arguments.items()
            }
            violation = self.violation(facts)
        if violation is not None:
            raise DomainError(
                f"{self.operation} [{implementation}]: {violation.sentence} "
                f"(clause {violation.clause})",
                clause=violation.clause,
            )

    def _wrong_type(self, arguments: Mapping[str, Any]) -> Violation | None:
        for name in self.tensors:
            if not hasattr(arguments[name], "storage_offset"):
                seen = type(arguments[name]).__name__
                return Violation(f"{name}.type", f"{name} must be a tensor, got {seen}")
        for name in self.numbers:
            value = arguments[name]
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                seen = type(value).__name__
                return Violation(f"{name}.type", f"{name} must be a number, got {seen}")
            if isinstance(value, int) and abs(value) > sys.float_info.max:
                return Violation(f"{name}.type", f"{name} must fit a float, got a larger integer")
        return None
