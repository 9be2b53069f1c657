"""Those who have a say about arguments: clauses, call, operator, fakes; each gives its word.

Compares nothing. The C++ API's voice is in ``cpp_api``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from domains.arguments import Arguments, Laid, Made, facts_of, fakes_of
from xllm_kernel.custom_ops import NAMESPACE
from xllm_kernel.domain import Domain, Violation
from xllm_kernel.errors import DomainError
from xllm_kernel.registry import Candidate

_CLAUSE = re.compile(r"\(clause ([\w.]+)\)$")

Result = tuple[Any, ...]
"""Of each output: shape, the strides that count, offset, dtype, device."""


@dataclass(frozen=True)
class Word:
    """What one voice said.

    Attributes:
        clause: the violated clause; None for accepted, ``"?"`` for an error that names none.
        text: the whole message.
        result: of an accepted call.
        wrote: what a call wrote that it must not.
    """

    clause: str | None
    text: str = ""
    result: Result | None = None
    wrote: str = ""


@dataclass(frozen=True)
class Subject:
    """An implementation with a domain, and the callables that it is called through.

    Attributes:
        name: of the implementation.
        domain: what it says that it accepts.
        mutates: arguments that an accepted call writes.
        calls: by name: what a model holds, and the operator behind it where that is another.
        fakes: those of them that are given fakes: a builtin hands those to its operator.
    """

    name: str
    domain: Domain
    mutates: tuple[str, ...]
    calls: Mapping[str, Callable[..., Any]]
    fakes: Mapping[str, Callable[..., Any]]

    @classmethod
    def of(cls, candidate: Candidate) -> Subject:
        """Describe a registered implementation."""
        spec = candidate.spec
        assert spec.domain is not None
        calls: dict[str, Callable[..., Any]] = {"call": candidate.function}
        name = f"{spec.solution}_{spec.contract.operation}"
        packet = getattr(getattr(torch.ops, NAMESPACE), name, None)
        if packet is not None and packet.default is not candidate.function:
            calls["operator"] = packet.default
        fakes = dict(calls)
        if packet is not None and getattr(candidate.function, "__self__", None) is packet.default:
            del fakes["operator"]
        return cls(spec.name, spec.domain, spec.contract.mutates, calls, fakes)


def word_of_clauses(subject: Subject, arguments: Arguments) -> Word:
    """Ask the clauses about facts that PyTorch had no part in."""
    violation = _no_tensor(subject.domain, arguments)
    if violation is None:
        violation = subject.domain.violation(facts_of(arguments))
    if violation is None:
        return Word(None)
    who = f"{subject.domain.operation} [{subject.name}]"
    text = f"{who}: {violation.sentence} (clause {violation.clause})"
    return Word(violation.clause, text)


def _no_tensor(domain: Domain, arguments: Arguments) -> Violation | None:
    for name in domain.tensors:
        if not isinstance(arguments[name], Laid):
            seen = type(arguments[name]).__name__
            return Violation(f"{name}.type", f"{name} must be a tensor, got {seen}")
    return None


def word_of_check(subject: Subject, arguments: Arguments) -> Word:
    """Ask the check that Python implementations make of the same tensors."""
    values = Made(arguments).values
    return _ask(lambda: subject.domain.check(subject.name, **values))


def word_of_call(subject: Subject, call: Callable[..., Any], arguments: Arguments) -> Word:
    """Make a real call, and see what it wrote."""
    made = Made(arguments)
    with torch.no_grad():
        word = _ask(lambda: call(*made.values.values()))
    allowed = set()
    if word.clause is None:
        for name in subject.mutates:
            laid = arguments[name]
            allowed.add((laid.device, laid.memory))
    wrote = [str(place) for place in made.touched() if place not in allowed]
    return Word(word.clause, word.text, word.result, ", ".join(wrote))


def word_of_fake(call: Callable[..., Any], arguments: Arguments, mode: FakeTensorMode) -> Word:
    """Make the call with fakes."""
    values = fakes_of(arguments, mode)
    with mode, torch.no_grad():
        return _ask(lambda: call(*values.values()))


def _ask(call: Callable[[], Any]) -> Word:
    try:
        output = call()
    except DomainError as error:
        return Word(error.clause, str(error))
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        found = _CLAUSE.search(str(error))
        return Word(found[1] if found else "?", str(error))
    outputs = output if isinstance(output, tuple) else (output,)
    return Word(None, result=tuple(_described(one) for one in outputs))


def _described(output: Any) -> Any:
    if not isinstance(output, torch.Tensor):
        return output
    # By PyTorch's own rule a stride that steps to no other element counts for nothing; its kernels
    # and their fakes differ there.
    steps = zip(output.shape, output.stride(), strict=True)
    counting = () if 0 in output.shape else tuple(step for extent, step in steps if extent > 1)
    layout = (tuple(output.shape), counting, output.storage_offset())
    return (*layout, str(output.dtype), str(output.device))
