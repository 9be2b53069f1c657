"""An operator's cases in every form, for the benchmark's runners; implementations are libraries.

Knows no operator and no library: both are given.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peers import check
from peers.operation import Buffers, Dimensions, Form, Operation
from peers.peer import Call, Peer, PeerError, reason
from xllm_kernel.numerics.case_run import CaseEndedError
from xllm_kernel.numerics.planted.fault import Fault
from xllm_kernel.numerics.suite import PreparedCase, Reset, Trial, ZeroArgument
from xllm_kernel.registry import KernelSpec, OpContract, PreparedKernel


@dataclass(frozen=True, slots=True)
class PeerCase:
    """One form on one set of inputs.

    Attributes:
        operation: the operator.
        form: the calling convention.
        dimensions: of the inputs.
        forms: those that each library has, by its name.
    """

    operation: Operation
    form: Form
    dimensions: Dimensions
    forms: Mapping[str, frozenset[str]]

    @property
    def case_id(self) -> str:
        """Return form, dtype and shape."""
        size = self.dimensions
        return f"{self.form.name}/{size.dtype}/{size.rows}x{size.width}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the same as values."""
        size = self.dimensions
        return {"form": self.form.name, "dtype": size.dtype, "shape": [size.rows, size.width]}

    def unsupported_reason(self, plan: PreparedKernel) -> str | None:
        """Leave out libraries without the form."""
        has = self.form.name in self.forms[plan.spec.name]
        return None if has else "has no such form"

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the memory of this process and bind the library to it.

        Raises:
            CaseEndedError: for a library that does not cover the case.
        """
        buffers = self.operation.buffers(self.form, self.dimensions)
        try:
            call: Call = plan.function(self.form.name, buffers.arguments)
        except PeerError as error:
            raise CaseEndedError("not_applicable", "support", str(error)) from error
        reset = None
        if self.form.callers_memory:
            reset = Reset(buffers.reset, every_call=self.form.every_call)
        return PreparedCase(
            function=call.run,
            validate=_Judge(buffers, call),
            reset=reset,
            refresh=buffers.refresh,
            arguments=buffers.arguments,
            work=buffers.work,
        )


@dataclass(frozen=True, slots=True)
class _Judge:
    """Compares what a call left with what the data that stand in the buffers must give."""

    buffers: Buffers
    call: Call

    def __call__(self, function: ZeroArgument) -> Mapping[str, Any]:
        results = self.call.results(function())
        like = self.buffers.arguments["input"]
        return check.judge(results, like, self.buffers.expected())


@dataclass(frozen=True, slots=True)
class PeerSuite:
    """All cases of a comparison.

    Attributes:
        compared: the operator.
        peers: the libraries.
        sizes: the inputs of each form.
    """

    compared: Operation
    peers: Sequence[Peer]
    sizes: Mapping[str, Sequence[Dimensions]]

    @property
    def operation(self) -> str:
        """Return the operator's name."""
        return self.compared.name

    @property
    def implementations(self) -> tuple[str, ...]:
        """Return the libraries' names."""
        return tuple(peer.name for peer in self.peers)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return none: libraries are judged grossly, and nobody's checks are tried here."""
        return ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: the command has its own parser."""

    def cases(self, args: argparse.Namespace) -> Iterable[PeerCase]:
        """Return the cases, form by form."""
        forms = {
            peer.name: frozenset(form for name, form in peer.calls if name == self.operation)
            for peer in self.peers
        }
        return [
            PeerCase(self.compared, self.compared.form(name), dimensions, forms)
            for name, sizes in self.sizes.items()
            for dimensions in sizes
        ]

    def trials(self, args: argparse.Namespace) -> Iterable[Trial]:
        """Return none: other libraries state no guarantees."""
        return ()

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Load a library into this process.

        Returns:
            A plan whose function takes a form's name and arguments, and returns the bound call.

        Raises:
            PeerError: where it does not load.
        """
        peer = next(peer for peer in self.peers if peer.name == implementation)
        try:
            library = peer.load()
        except Exception as error:  # of any kind: the report says why
            raise PeerError(reason(error)) from error
        spec = KernelSpec(
            name=peer.name,
            # Forms differ in what they write to; their cases declare resets.
            contract=OpContract(self.operation),
            device=device,
            execution_modes=(mode,),
            input_domain="what the library accepts",
            solution=peer.name,
            build=library.built,
        )
        function = _binder(peer, self.operation, library.api)
        return PreparedKernel(spec=spec, function=function, generation=1, excluded=())


def _binder(peer: Peer, operation: str, api: Any) -> Callable[[str, Mapping[str, Any]], Call]:
    return lambda form, arguments: peer.calls[operation, form](api, arguments)
