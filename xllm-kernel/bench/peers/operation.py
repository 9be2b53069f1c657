"""What the comparison knows of an operator: its forms, its buffers, what a call must do.

Names no operator and no library; each operator has a file of its own in ``operations``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from xllm_kernel.numerics.suite import Work

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Form:
    """One calling convention; figures of two forms are never compared.

    Attributes:
        name: as on the command line and in cases' identifiers.
        meaning: one sentence.
        callers_memory: whether results go to memory of the caller's, and no allocator is timed.
        every_call: whether what calls write must be put back before each of them; False where no
            call reads it.
    """

    name: str
    meaning: str
    callers_memory: bool = False
    every_call: bool = False


@dataclass(frozen=True, slots=True)
class Dimensions:
    """One set of inputs.

    Attributes:
        dtype: a name in ``torch``.
        rows: extent of the first dimension.
        width: extent of the last dimension, over which a row is normalised or the like.
    """

    dtype: str
    rows: int
    width: int


class Buffers(Protocol):
    """The memory of a case in one process.

    Attributes:
        arguments: of a call, by name: tensors and numbers.
        work: what a call must at least move and compute.
    """

    arguments: dict[str, Any]
    work: Work

    def refresh(self, number: int) -> None:
        """Put other data into the same memory; 0 picks the first ones."""

    def reset(self) -> None:
        """Put back what calls of the form write to."""

    def expected(self) -> Sequence[torch.Tensor]:
        """Return each output in float64: of the rows of a block that repeats."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator.

    Attributes:
        name: as on the command line.
        forms: its calling conventions.
        buffers: makes the memory of a case in one form, and nothing that the form does not need.
        note: what a reader must know of the figures.
    """

    name: str
    forms: tuple[Form, ...]
    buffers: Callable[[Form, Dimensions], Buffers]
    note: str

    def form(self, name: str) -> Form:
        """Return a form by its name."""
        return next(form for form in self.forms if form.name == name)


Operations = Mapping[str, Operation]
