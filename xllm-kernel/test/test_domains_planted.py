"""Planted disagreements: a domain, a fake or a call that is wrong about one clause is found."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import xllm_kernel
from domains.agreement import Judge
from domains.arguments import Arguments, fits
from domains.boundaries import Probe, probes
from domains.maker import Maker
from domains.subjects import subjects
from domains.voices import Subject
from xllm_kernel import clauses as kinds
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.registry import KernelRegistry

pytestmark = pytest.mark.filterwarnings("ignore")

Call = Callable[..., Any]


@pytest.fixture
def every(fresh: KernelRegistry) -> list[Subject]:
    """The processor's implementations, those of them that were built."""
    xllm_kernel.initialize(device="cpu")
    return subjects()[0]


@pytest.fixture
def subject(every: list[Subject]) -> Subject:
    """The one with the most clauses of those that need no build."""
    return next(one for one in every if one.name == "cpu.torch.rms_norm_out")


def _finding(subject: Subject, true: Domain, clause: str) -> str | None:
    """Return what the boundaries of one clause, of the true domain, show first; or None."""
    judge = Judge(subject)
    for probe in (one for one in _boundaries(true) if one.clause == clause):
        try:
            wrong = judge.hear(probe.arguments).wrong
        except IndexError:
            return "a later clause relies on it"
        if wrong:
            return wrong[0]
    return None


@functools.cache
def _boundaries(domain: Domain) -> list[Probe]:
    # What is outside first, for that is what most mistakes are about.
    return sorted(probes(domain), key=lambda probe: probe.inside)


def _replaced(domain: Domain, clause: Clause, *instead: Clause) -> Domain:
    kept = [new for one in domain.clauses for new in (instead if one is clause else (one,))]
    return dataclasses.replace(domain, clauses=tuple(kept))


def test_a_domain_that_forgets_a_clause_is_found(every: list[Subject]) -> None:
    for subject in every:
        for clause in subject.domain.clauses:
            wrong = dataclasses.replace(subject, domain=_replaced(subject.domain, clause))
            found = _finding(wrong, subject.domain, clause.name)
            assert found is not None, f"{subject.name} without {clause.name}"


def _nudged(clause: Clause) -> Iterator[Clause]:
    """Yield a clause with its limits a step off, in both directions where there are two."""
    if isinstance(clause, (kinds.Rank, kinds.Extent)):
        for step in (-1, 1):
            yield dataclasses.replace(clause, minimum=clause.minimum + step)
    if isinstance(clause, kinds.DtypeIn):
        yield dataclasses.replace(clause, allowed=clause.allowed[:-1])
        yield dataclasses.replace(clause, allowed=(*clause.allowed, "float64"))
    if isinstance(clause, kinds.SameDtype):
        yield dataclasses.replace(clause, always=None if clause.always else "float32")
    if isinstance(clause, kinds.FloatIn):
        for end, away in (("minimum", -math.inf), ("maximum", math.inf)):
            for towards in (away, -away):
                edge = math.nextafter(getattr(clause, end), towards)
                yield dataclasses.replace(clause, **{end: edge})


def test_a_domain_a_step_off_is_found(every: list[Subject]) -> None:
    tried = 0
    for subject in every:
        for clause in subject.domain.clauses:
            for other in _nudged(clause):
                wrong = dataclasses.replace(
                    subject, domain=_replaced(subject.domain, clause, other)
                )
                found = _finding(wrong, subject.domain, clause.name)
                assert found is not None, f"{subject.name} with {other}"
                tried += 1
    assert tried >= 12 * len(every)


def _forgetful(call: Call, clause: str) -> Call:
    """Wrap a callable so that it accepts what one clause refuses."""

    def wrapped(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (RuntimeError, ValueError) as error:
            if f"(clause {clause})" in str(error):
                return None
            raise

    return wrapped


@pytest.mark.parametrize("field", ["calls", "fakes"])
def test_a_callable_that_forgets_a_clause_is_found(every: list[Subject], field: str) -> None:
    for subject in every:
        for clause in subject.domain.clauses:
            callables = dict(getattr(subject, field))
            callables["call"] = _forgetful(callables["call"], clause.name)
            wrong = dataclasses.replace(subject, **{field: callables})
            found = _finding(wrong, subject.domain, clause.name)
            speaker = "call" if field == "calls" else "fake call"
            assert found is not None, f"{subject.name} without {clause.name}"
            assert found.startswith(f"{speaker}: accepted\n  domain: "), found


def _wrong_about(subject: Subject, arguments: Arguments, **callables: Call) -> list[str]:
    for name, call in callables.items():
        subject = dataclasses.replace(subject, **{name: {"call": call}})
    return Judge(subject).hear(arguments).wrong


def _inside(subject: Subject, changes: dict[str, Any] | None = None) -> Arguments:
    return Maker(subject.domain).make(changes)


def test_a_sound_subject_is_not_blamed(subject: Subject) -> None:
    assert not Judge(subject).hear(_inside(subject)).wrong
    assert not Judge(subject).hear(_inside(subject, {"eps": -1.0})).wrong


def test_a_call_that_refuses_what_is_inside_is_found(subject: Subject) -> None:
    def call(*arguments: Any) -> None:
        raise RuntimeError("rms_norm_out: eps must be positive (clause eps)")

    (wrong,) = _wrong_about(subject, _inside(subject), calls=call)
    assert wrong == "call: rms_norm_out: eps must be positive (clause eps)\n  domain: accepted"


def test_a_call_in_other_words_is_found(subject: Subject) -> None:
    def call(*arguments: Any) -> None:
        raise RuntimeError("eps is bad (clause eps)")

    (wrong,) = _wrong_about(subject, _inside(subject, {"eps": -1.0}), calls=call)
    assert wrong.startswith("call: eps is bad (clause eps)\n  domain: rms_norm_out [cpu.torch.")


def test_a_call_that_writes_before_it_refuses_is_found(subject: Subject) -> None:
    def call(output: torch.Tensor, *others: Any) -> None:
        output.zero_()
        subject.calls["call"](output, *others)

    (wrong,) = _wrong_about(subject, _inside(subject, {"eps": -1.0}), calls=call)
    assert wrong == "call: wrote to ('cpu', 0)"


def test_a_call_that_writes_to_what_it_only_reads_is_found(subject: Subject) -> None:
    def call(output: torch.Tensor, given: torch.Tensor, *others: Any) -> None:
        subject.calls["call"](output, given, *others)
        given.zero_()

    (wrong,) = _wrong_about(subject, _inside(subject), calls=call)
    assert wrong == "call: wrote to ('cpu', 1)"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fake: fake.double(),
        lambda fake: fake[:, :-1],
        lambda fake: fake.t().contiguous().t(),
        lambda fake: fake.to("meta"),
        lambda fake: torch.cat((fake, fake))[len(fake) :],
        lambda fake: (fake, fake),
    ],
    ids=["dtype", "shape", "strides", "device", "offset", "count"],
)
def test_a_fake_whose_result_differs_is_found(every: list[Subject], spoil: Call) -> None:
    subject = next(one for one in every if one.name == "cpu.torch.rms_norm")

    def fake(*arguments: Any) -> Any:
        return spoil(subject.fakes["call"](*arguments))

    (wrong,) = _wrong_about(subject, _inside(subject), fakes=fake)
    assert wrong.startswith("the results differ: ")


class _Deaf:
    """A voice that accepts everything."""

    def can_say(self, arguments: Arguments) -> bool:
        return True

    def disagreement(self, arguments: Arguments) -> str | None:
        return "kOk, but by the clauses kEps" if arguments["eps"] < 0 else None


def test_another_languages_voice_that_differs_is_found(subject: Subject) -> None:
    judge = Judge(subject, {"C++ API": _Deaf()})
    assert not judge.hear(_inside(subject)).wrong
    (wrong,) = judge.hear(_inside(subject, {"eps": -1.0})).wrong
    assert wrong == "C++ API: kOk, but by the clauses kEps"


def test_a_set_made_for_the_wrong_side_is_found(subject: Subject) -> None:
    (wrong,) = Judge(subject).hear(_inside(subject), "eps").wrong
    assert wrong == "made to be refused by eps, was accepted"


def test_what_is_too_large_to_make_still_shares_its_memory(subject: Subject) -> None:
    rows = {"shape": (2**16, 40), "strides": (40, 1), "memory": 0}
    arguments = _inside(subject, {"input": rows})
    assert not fits(arguments)
    heard = Judge(subject).hear(arguments)
    assert heard.clause == "output.apart_from_input"
    assert (heard.wrong, heard.voices) == ([], ["clauses", "fake call"])
