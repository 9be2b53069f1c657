"""The kinds of conditions that domains are made of.

Each says what must hold and what it saw; none knows an operator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xllm_kernel.domain import Clause, Facts


@dataclass(frozen=True, slots=True)
class Rank(Clause):
    """A tensor has at least, or exactly, so many dimensions."""

    minimum: int
    exact: bool = False

    def _label(self) -> str:
        return "rank"

    def _must(self) -> str:
        bound = "exactly" if self.exact else "at least"
        plural = "dimension" if self.minimum == 1 else "dimensions"
        return f"{self.argument} must have {bound} {self.minimum} {plural}"

    def _violated_by(self, facts: Facts) -> str | None:
        rank = len(facts[self.argument].shape)
        holds = rank == self.minimum if self.exact else rank >= self.minimum
        return None if holds else f", got {rank}"


@dataclass(frozen=True, slots=True)
class DtypeIn(Clause):
    """A tensor's dtype is one of a list."""

    allowed: tuple[str, ...]

    def _label(self) -> str:
        return "dtype"

    def _must(self) -> str:
        return f"{self.argument}.dtype must be one of {', '.join(self.allowed)}"

    def _violated_by(self, facts: Facts) -> str | None:
        dtype = facts[self.argument].dtype
        return None if dtype in self.allowed else f", got {dtype}"


@dataclass(frozen=True, slots=True)
class SameDtype(Clause):
    """Two tensors share a dtype, or the first has the one that is always accepted."""

    other: str
    always: str | None = None

    def _label(self) -> str:
        return "dtype"

    def _must(self) -> str:
        either = f"be {self.always} or " if self.always else ""
        return f"{self.argument}.dtype must {either}equal {self.other}.dtype"

    def _violated_by(self, facts: Facts) -> str | None:
        dtype, wanted = facts[self.argument].dtype, facts[self.other].dtype
        return None if dtype in (wanted, self.always) else f" ({wanted}), got {dtype}"


@dataclass(frozen=True, slots=True)
class Extent(Clause):
    """A dimension has at least so many elements; ``label`` names the dimension."""

    axis: int
    label: str
    minimum: int

    def _label(self) -> str:
        return self.label

    def _must(self) -> str:
        return f"{self.argument}.shape[{self.axis}] must be at least {self.minimum}"

    def _violated_by(self, facts: Facts) -> str | None:
        extent = facts[self.argument].shape[self.axis]
        return None if extent >= self.minimum else f", got {extent}"


@dataclass(frozen=True, slots=True)
class ExtentMultiple(Clause):
    """A dimension is a positive multiple of a step, up to a limit; ``label`` names it."""

    axis: int
    label: str
    step: int
    maximum: int

    def _label(self) -> str:
        return self.label

    def _must(self) -> str:
        interval = f"from {self.step} to {self.maximum}"
        return f"{self.argument}.shape[{self.axis}] must be a multiple of {self.step} {interval}"

    def _violated_by(self, facts: Facts) -> str | None:
        extent = facts[self.argument].shape[self.axis]
        if self.step <= extent <= self.maximum and extent % self.step == 0:
            return None
        return f", got {extent}"


@dataclass(frozen=True, slots=True)
class ElementsAtMost(Clause):
    """A tensor has no more elements than a limit."""

    maximum: int

    def _label(self) -> str:
        return "elements"

    def _must(self) -> str:
        return f"{self.argument} must have at most {self.maximum} elements"

    def _violated_by(self, facts: Facts) -> str | None:
        count = math.prod(facts[self.argument].shape)
        return None if count <= self.maximum else f", got {count}"


@dataclass(frozen=True, slots=True)
class RowsReach(Clause):
    """From the first row's start to the last one's end is no further than a limit, in elements.

    Asks rows that lie at one distance, each dense; any others are copied before they are read, and
    then count as elements.
    """

    maximum: int

    def _label(self) -> str:
        return "reach"

    def _must(self) -> str:
        bound = f"at most {self.maximum} elements of memory"
        return f"{self.argument}'s rows must reach over {bound}"

    def _violated_by(self, facts: Facts) -> str | None:
        tensor = facts[self.argument]
        step, rows = tensor.row_step, math.prod(tensor.shape[:-1])
        if step is None or rows == 0:
            return None
        reach = (rows - 1) * step + tensor.shape[-1]
        if reach <= self.maximum:
            return None
        where = f"strides {list(tensor.strides)} for shape {list(tensor.shape)}"
        return f", got {reach} by {where}; pass a contiguous copy"


@dataclass(frozen=True, slots=True)
class FormatIn(Clause):
    """A device stores a tensor in one of a list of formats; asks only where the format is known."""

    allowed: tuple[str, ...]

    def _label(self) -> str:
        return "format"

    def _must(self) -> str:
        return f"{self.argument}'s format must be one of {', '.join(self.allowed)}"

    def _violated_by(self, facts: Facts) -> str | None:
        found = facts[self.argument].format
        return None if found in (None, *self.allowed) else f", got {found}"


@dataclass(frozen=True, slots=True)
class SameExtent(Clause):
    """A dimension has as many elements as another tensor's; ``label`` names the dimension."""

    axis: int
    other: str
    other_axis: int
    label: str

    def _label(self) -> str:
        return self.label

    def _must(self) -> str:
        mine = f"{self.argument}.shape[{self.axis}]"
        return f"{mine} must equal {self.other}.shape[{self.other_axis}]"

    def _violated_by(self, facts: Facts) -> str | None:
        extent = facts[self.argument].shape[self.axis]
        wanted = facts[self.other].shape[self.other_axis]
        return None if extent == wanted else f" ({wanted}), got {extent}"


@dataclass(frozen=True, slots=True)
class DeviceIs(Clause):
    """A tensor lives on a device type."""

    device: str

    def _label(self) -> str:
        return "device"

    def _must(self) -> str:
        return f"{self.argument} must be on device {self.device}"

    def _violated_by(self, facts: Facts) -> str | None:
        device = facts[self.argument].device
        return None if device.partition(":")[0] == self.device else f", got {device}"


@dataclass(frozen=True, slots=True)
class SameDevice(Clause):
    """Two tensors live on one device."""

    other: str

    def _label(self) -> str:
        return "device"

    def _must(self) -> str:
        return f"{self.argument} must be on {self.other}'s device"

    def _violated_by(self, facts: Facts) -> str | None:
        device, wanted = facts[self.argument].device, facts[self.other].device
        return None if device == wanted else f" ({wanted}), got {device}"


@dataclass(frozen=True, slots=True)
class UnitStride(Clause):
    """Neighbours along the last dimension are neighbours in memory; one element has none."""

    def _label(self) -> str:
        return "stride"

    def _must(self) -> str:
        return f"{self.argument}.stride(-1) must be 1"

    def _violated_by(self, facts: Facts) -> str | None:
        tensor = facts[self.argument]
        if tensor.shape[-1] <= 1 or tensor.strides[-1] == 1:
            return None
        return f", got {tensor.strides[-1]}; pass a contiguous copy"


@dataclass(frozen=True, slots=True)
class SameShape(Clause):
    """Two tensors have the same extents."""

    other: str

    def _label(self) -> str:
        return "shape"

    def _must(self) -> str:
        return f"{self.argument}.shape must equal {self.other}.shape"

    def _violated_by(self, facts: Facts) -> str | None:
        shape, wanted = list(facts[self.argument].shape), list(facts[self.other].shape)
        return None if shape == wanted else f" ({wanted}), got {shape}"


@dataclass(frozen=True, slots=True)
class RowsApart(Clause):
    """No two rows, along the last dimension, share an element; needs a last stride of 1.

    May refuse rows that interleave without touching; never accepts rows that touch.
    """

    def _label(self) -> str:
        return "rows"

    def _must(self) -> str:
        return f"{self.argument}'s rows must lie apart in memory"

    def _violated_by(self, facts: Facts) -> str | None:
        tensor = facts[self.argument]
        if any(extent == 0 for extent in tensor.shape):
            return None
        covered = tensor.shape[-1]
        leading = zip(tensor.strides[:-1], tensor.shape[:-1], strict=True)
        # By growing stride, each dimension must step over all that the smaller ones cover.
        for stride, extent in sorted((s, e) for s, e in leading if e != 1):
            if stride < covered:
                return f", got strides {list(tensor.strides)} for shape {list(tensor.shape)}"
            covered += stride * (extent - 1)
        return None


@dataclass(frozen=True, slots=True)
class Apart(Clause):
    """The ranges of bytes between two tensors' first and last elements share none."""

    needs_memory: ClassVar[bool] = True
    other: str

    def _label(self) -> str:
        return f"apart_from_{self.other}"

    def _must(self) -> str:
        return f"{self.argument} must lie apart from {self.other} in memory"

    def _violated_by(self, facts: Facts) -> str | None:
        mine, theirs = facts[self.argument], facts[self.other]
        if mine.memory is None or theirs.memory is None or mine.memory[0] != theirs.memory[0]:
            return None
        (begin, end), (other_begin, other_end) = mine.span, theirs.span
        shared = min(end, other_end) - max(begin, other_begin)
        if shared <= 0:
            return None
        return f", got {shared} bytes that both span; pass a buffer of its own"


@dataclass(frozen=True, slots=True)
class FloatIn(Clause):
    """A number is finite and lies in a closed interval."""

    minimum: float
    maximum: float

    def _label(self) -> str:
        return ""

    def _must(self) -> str:
        interval = f"at least {self.minimum:g} and at most {self.maximum:g}"
        return f"{self.argument} must be finite, {interval}"

    def _violated_by(self, facts: Facts) -> str | None:
        value = facts[self.argument]
        if math.isfinite(value) and self.minimum <= value <= self.maximum:
            return None
        return f", got {value:g}"
