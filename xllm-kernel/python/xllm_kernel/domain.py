"""Executable input domains: named clauses over shapes, dtypes, strides, devices and scalars.

A domain is data beside an operator's contract. Argument checks, fakes, suites and descriptions
read it; this module knows no operator and imports no framework.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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
        offset: distance of the first element from the storage's start, in elements.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    offset: int = 0

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
    def of(cls, tensor: Any) -> TensorFacts:
        """Describe a Torch tensor, fake and symbolic ones included."""
        return cls(
            shape=tuple(tensor.shape),
            strides=tensor.stride(),
            dtype=str(tensor.dtype).removeprefix("torch."),
            device=str(tensor.device),
            offset=tensor.storage_offset(),
        )


Facts = Mapping[str, Any]
"""Argument name to TensorFacts or number."""


class Clause(Protocol):
    """One named condition."""

    @property
    def name(self) -> str:
        """Identify the clause, e.g. ``"weight.width"``."""

    @property
    def text(self) -> str:
        """State the condition in general."""

    def violation(self, facts: Facts) -> str | None:
        """Return what must hold and what was seen, or None where the condition holds."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A tensor has at least, or exactly, so many dimensions."""

    argument: str
    minimum: int
    exact: bool = False

    @property
    def name(self) -> str:
        return f"{self.argument}.rank"

    @property
    def text(self) -> str:
        bound = "exactly" if self.exact else "at least"
        plural = "dimension" if self.minimum == 1 else "dimensions"
        return f"{self.argument} must have {bound} {self.minimum} {plural}"

    def violation(self, facts: Facts) -> str | None:
        rank = len(facts[self.argument].shape)
        holds = rank == self.minimum if self.exact else rank >= self.minimum
        return None if holds else f"{self.text}, got {rank}"


@dataclass(frozen=True, slots=True)
class DtypeIn:
    """A tensor's dtype is one of a list."""

    argument: str
    allowed: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.argument}.dtype"

    @property
    def text(self) -> str:
        return f"{self.argument}.dtype must be one of {', '.join(self.allowed)}"

    def violation(self, facts: Facts) -> str | None:
        dtype = facts[self.argument].dtype
        return None if dtype in self.allowed else f"{self.text}, got {dtype}"


@dataclass(frozen=True, slots=True)
class SameDtype:
    """Two tensors share a dtype."""

    argument: str
    other: str

    @property
    def name(self) -> str:
        return f"{self.argument}.dtype"

    @property
    def text(self) -> str:
        return f"{self.argument}.dtype must equal {self.other}.dtype"

    def violation(self, facts: Facts) -> str | None:
        dtype, wanted = facts[self.argument].dtype, facts[self.other].dtype
        return None if dtype == wanted else f"{self.text} ({wanted}), got {dtype}"


@dataclass(frozen=True, slots=True)
class Extent:
    """A dimension has at least so many elements; ``label`` names it in the clause."""

    argument: str
    axis: int
    label: str
    minimum: int

    @property
    def name(self) -> str:
        return f"{self.argument}.{self.label}"

    @property
    def text(self) -> str:
        return f"{self.argument}.shape[{self.axis}] must be at least {self.minimum}"

    def violation(self, facts: Facts) -> str | None:
        extent = facts[self.argument].shape[self.axis]
        return None if extent >= self.minimum else f"{self.text}, got {extent}"


@dataclass(frozen=True, slots=True)
class SameExtent:
    """A dimension of one tensor has as many elements as a dimension of another."""

    argument: str
    axis: int
    other: str
    other_axis: int
    label: str

    @property
    def name(self) -> str:
        return f"{self.argument}.{self.label}"

    @property
    def text(self) -> str:
        mine = f"{self.argument}.shape[{self.axis}]"
        return f"{mine} must equal {self.other}.shape[{self.other_axis}]"

    def violation(self, facts: Facts) -> str | None:
        extent = facts[self.argument].shape[self.axis]
        wanted = facts[self.other].shape[self.other_axis]
        return None if extent == wanted else f"{self.text} ({wanted}), got {extent}"


@dataclass(frozen=True, slots=True)
class DeviceIs:
    """A tensor lives on a device type."""

    argument: str
    device: str

    @property
    def name(self) -> str:
        return f"{self.argument}.device"

    @property
    def text(self) -> str:
        return f"{self.argument} must be on device {self.device}"

    def violation(self, facts: Facts) -> str | None:
        device = facts[self.argument].device
        return None if device.partition(":")[0] == self.device else f"{self.text}, got {device}"


@dataclass(frozen=True, slots=True)
class SameDevice:
    """Two tensors live on one device."""

    argument: str
    other: str

    @property
    def name(self) -> str:
        return f"{self.argument}.device"

    @property
    def text(self) -> str:
        return f"{self.argument} must be on {self.other}'s device"

    def violation(self, facts: Facts) -> str | None:
        device, wanted = facts[self.argument].device, facts[self.other].device
        return None if device == wanted else f"{self.text} ({wanted}), got {device}"


@dataclass(frozen=True, slots=True)
class UnitStride:
    """Neighbours along the last dimension are neighbours in memory; one element has none."""

    argument: str

    @property
    def name(self) -> str:
        return f"{self.argument}.stride"

    @property
    def text(self) -> str:
        return f"{self.argument}.stride(-1) must be 1"

    def violation(self, facts: Facts) -> str | None:
        tensor = facts[self.argument]
        if tensor.shape[-1] <= 1 or tensor.strides[-1] == 1:
            return None
        return f"{self.text}, got {tensor.strides[-1]}; pass a contiguous copy"


@dataclass(frozen=True, slots=True)
class FloatIn:
    """A number is finite and lies in a closed interval."""

    argument: str
    minimum: float
    maximum: float

    @property
    def name(self) -> str:
        return self.argument

    @property
    def text(self) -> str:
        interval = f"at least {self.minimum:g} and at most {self.maximum:g}"
        return f"{self.argument} must be finite, {interval}"

    def violation(self, facts: Facts) -> str | None:
        value = facts[self.argument]
        if math.isfinite(value) and self.minimum <= value <= self.maximum:
            return None
        return f"{self.text}, got {value:g}"


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
        """Check real arguments.

        Args:
            implementation: full name, for the message.
            **arguments: tensors and numbers by argument name.

        Raises:
            DomainError: for the first violated clause.
        """
        violation = self._wrong_type(arguments)
        if violation is None:
            facts = {
                name: TensorFacts.of(value) if name in self.tensors else value
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
        return None
