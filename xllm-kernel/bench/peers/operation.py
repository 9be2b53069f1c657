"""What the runner knows of an operator: its cases, its buffers, and how each library is called.

Names no operator and no library; each operator has a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch

Tensors = tuple[torch.Tensor, ...]


class PeerError(Exception):
    """Why a library takes no part."""


@dataclass(frozen=True, slots=True)
class Case:
    """One set of inputs, for all contenders.

    Attributes:
        dtype: a name in ``torch``.
        rows: extent of the first dimension.
        width: extent of the last dimension, over which a row is normalised or the like.
    """

    dtype: str
    rows: int
    width: int


@dataclass(frozen=True, slots=True)
class Call:
    """One library's operator, bound to the buffers.

    Attributes:
        run: makes one call.
        results: returns the outputs, given what ``run`` returned.
    """

    run: Callable[[], object]
    results: Callable[[Any], Tensors]


class Buffers(Protocol):
    """The memory of a case, shared by all contenders."""

    def reset(self) -> None:
        """Restore what calls write to: inputs as they were made, outputs full of NaN."""

    def expected(self) -> Tensors:
        """Return what the outputs must be, in float64."""

    def read(self) -> torch.Tensor:
        """Return, as one dense tensor, the bytes that must be read; as many must be written."""

    def written(self) -> torch.Tensor:
        """Return dense memory of that size that a copy may write to."""


# Takes the library, the case's buffers and the number of threads.
Binder = Callable[[Any, Any, int], Call]


@dataclass(frozen=True, slots=True)
class Form:
    """One calling convention; figures of two forms are never compared.

    Attributes:
        name: as shown.
        meaning: one sentence.
        mutates: whether a call changes its inputs, so that they are reset before each block.
        calls: how to call each library that has the form, by the library's name.
    """

    name: str
    meaning: str
    mutates: bool
    calls: Mapping[str, Binder]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator.

    Attributes:
        name: as on the command line.
        forms: its calling conventions.
        buffers: makes a case's memory, with values that stay normal however often calls repeat.
        note: what a reader must know of inputs and resets.
    """

    name: str
    forms: tuple[Form, ...]
    buffers: Callable[[Case], Buffers]
    note: str


def returned(value: Any) -> Tensors:
    """Take the outputs from what a call returned: a tensor or several."""
    return (value,) if isinstance(value, torch.Tensor) else tuple(value)


def standing(*tensors: torch.Tensor) -> Callable[[object], Tensors]:
    """Take the outputs from the buffers that a call writes to."""
    return lambda _value: tensors
