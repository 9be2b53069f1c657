"""What an operator gives the shared runners: a suite of cases that prepare and judge themselves.

The runners never look at an operator's arguments; everything they need is behind these interfaces.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.bound import Expectation
    from xllm_kernel.numerics.planted.fault import Fault

ZeroArgument = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Reset:
    """Puts back what a case's operator writes to, so that every call sees the same arguments.

    Attributes:
        function: restores every argument that the contract mutates, byte for byte. Runners call it
            before each validated call, and outside of every timed span.
        every_call: whether it must run before each timed call too. False only where no call reads
            what an earlier one wrote, as a buffer that is overwritten whole: then it runs once
            before each sample.
    """

    function: ZeroArgument
    every_call: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """What any implementation must at least do for one call; states no more than the contract.

    Attributes:
        read_bytes: that must be read once, those of a repeated row counting once.
        written_bytes: that must be written once.
        operations: arithmetic ones, a multiply-add counting two.
        arithmetic: what does most of them at best: multiply-adds of float32 (``fma``), or dot
            products of bfloat16 pairs summed in float32 (``dot``).
        in_place: whether what is written lies where it was read.
    """

    read_bytes: int
    written_bytes: int
    operations: int
    arithmetic: Literal["fma", "dot"] = "fma"
    in_place: bool = False

    def __post_init__(self) -> None:
        """Refuse what no call can do."""
        for name in ("read_bytes", "written_bytes", "operations"):
            if getattr(self, name) < 0:
                raise ValueError(f"Work.{name} must be at least 0, got {getattr(self, name)}")
        if self.arithmetic not in ("fma", "dot"):
            raise ValueError(f"Work.arithmetic must be 'fma' or 'dot', got {self.arithmetic!r}")

    @property
    def moved_bytes(self) -> int:
        """Bytes read and bytes written together."""
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case with its inputs in place.

    Attributes:
        function: binds inputs, scalars and implementation; it must be safe to call again and again,
            once ``reset`` has run where there is one.
        validate: calls the function it is given once, and returns a mapping with ``status``
            (``passed`` or ``failed``) and whatever explains it. It must judge that function's
            result and no other: in graph modes the function reads what a replay wrote.
        metadata: facts about the inputs as JSON values, e.g. strides.
        reset: what an operator that mutates its arguments needs to be called again; without it the
            benchmark refuses such an operator.
        refresh: puts other data of the same shapes and kind into the same arguments and makes
            ``validate`` and ``reset`` go by them; the number picks the data, 0 the case's own. None
            where the case has no others.
        arguments: what ``function`` passes, by name and in order: tensors and numbers.
        expect: returns the ``Expectation`` of arguments on the CPU, and of where results must be.
            Suites that give these three can show what faults they catch; ``bound`` does.
        without_work: prepares the same call on arguments that leave nothing to compute, whose cost
            is that of a call alone; None where there are none.
        work: what a call must at least move and compute; None where the suite does not say, and no
            ceiling applies.
    """

    function: ZeroArgument
    validate: Callable[[ZeroArgument], Mapping[str, Any]]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    reset: Reset | None = None
    refresh: Callable[[int], None] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    expect: Callable[[Mapping[str, Any], torch.device], Expectation] | None = None
    without_work: Callable[[], PreparedCase] | None = None
    work: Work | None = None


class NotTriedError(Exception):
    """A guarantee cannot be tried here; says why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Arguments on which stated guarantees are tried, enough rows for several threads.

    Attributes:
        name: tells the trials of a suite apart, e.g. the dtype.
        rows: names of the arguments whose first dimension counts rows, as every result's does.
        make: returns all arguments by name, in the order of the call, the same at each call:
            tensors on the CPU, and numbers.
        subnormal: likewise, of arguments whose exact results are all subnormal.
        parts: computes the results from simpler operations by the implementation's own solution,
            in the order of what is returned and then of what the contract mutates; None where
            there are none. Raises NotTriedError where another solution is bound to them.
        unsupported_reason: as of a case; of trials of one name, the first that is covered is tried.
    """

    name: str
    rows: tuple[str, ...]
    make: Callable[[], dict[str, Any]]
    subnormal: Callable[[], dict[str, Any]]
    parts: Callable[[PreparedKernel, Mapping[str, Any]], Sequence[torch.Tensor]] | None = None
    unsupported_reason: Callable[[PreparedKernel], str | None] = lambda plan: None


class KernelCase(Protocol):
    """One logical case, described without any tensor."""

    @property
    def case_id(self) -> str:
        """Identifier that tells the case's parameters and seed, and reproduces them."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The case's parameters as JSON values."""

    def unsupported_reason(self, plan: PreparedKernel) -> str | None:
        """Return why the implementation does not cover the case, or None; calls nothing."""

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Create inputs and reference."""


class OperationSuite(Protocol):
    """All cases of one operation."""

    @property
    def operation(self) -> str:
        """Name in the implementations' contract."""

    @property
    def implementations(self) -> tuple[str, ...]:
        """Full names of the implementations that the suite knows."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Faults that only this operation can have, for ``--self-test``; may be none."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the suite's own options; the parser's default ``kind`` names the command."""

    def cases(self, args: argparse.Namespace) -> Iterable[KernelCase]:
        """Check the suite's options and return the cases they ask for.

        Raises:
            ConfigurationError: for options that make no sense.
        """

    def trials(self, args: argparse.Namespace) -> Iterable[Trial]:
        """Return what guarantees and certificates are tried on."""

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Load an implementation and return its plan; ``binding.bind`` does that."""
