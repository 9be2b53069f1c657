"""Domain, call, fake and C++ API of each implementation agree about 500 argument sets."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import PACKAGE_ROOT, REPOSITORY_ROOT

pytest.importorskip("hypothesis", reason="needs the optional package 'hypothesis'")

import xllm_kernel
from domains import campaign
from domains.agreement import Judge
from domains.arguments import Arguments
from domains.boundaries import PROBES, probes
from domains.cpp_api import STATUSES, CppApi
from domains.subjects import CPP_API, other_voices, subjects
from domains.voices import Subject
from xllm_kernel import catalog, clauses
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.ops.rms_norm.domain import XLITE_DOMAIN
from xllm_kernel.registry import KernelRegistry

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of rare dtypes

CASES = 500
PROGRAM = REPOSITORY_ROOT / "build/cpp/test/cpp/refusals"
# Without the native build those of simd are missing, as everywhere.
NAMES = [
    name
    for operation in catalog.operations().values()
    for backend in operation.backends
    if backend.device == "cpu"
    for name in backend.implementations
]

NO_PROGRAM = "the C++ tests are not built, or older than their sources: ./dev evidence domains"

_tallies: dict[str, campaign.Tally] = {}


def _program() -> Path | None:
    """Return what the C++ build made, unless its sources are newer."""
    folders = ("csrc/simd", "include", "test/cpp/domains", "test/cpp/support")
    sources = [path for name in folders for path in (PACKAGE_ROOT / name).rglob("*.*")]
    if not PROGRAM.is_file():
        return None
    built = PROGRAM.stat().st_mtime
    return PROGRAM if all(path.stat().st_mtime <= built for path in sources) else None


def _subject(name: str) -> Subject:
    """Return an implementation, or skip where it was not built."""
    xllm_kernel.initialize(device="cpu")
    found = {one.name: one for one in subjects()[0]}
    if name not in found:
        pytest.skip("native build absent: ./dev build")
    return found[name]


@pytest.fixture
def tally(request: pytest.FixtureRequest, fresh: KernelRegistry) -> campaign.Tally:
    """What came of an implementation's campaign, run once."""
    name = request.param
    if name not in _tallies:
        subject = _subject(name)
        with other_voices(subject, _program()) as others:
            _tallies[name] = campaign.run(subject, CASES, others)
    return _tallies[name]


@pytest.mark.parametrize("tally", NAMES, indirect=True)
def test_all_voices_agree(tally: campaign.Tally) -> None:
    assert not tally.disagreements, "\n".join(tally.disagreements)
    assert tally.cases == CASES
    assert {"clauses", "call", "fake call"} <= set(tally.voices)


@pytest.mark.parametrize("tally", NAMES, indirect=True)
def test_every_clause_is_met_on_both_sides(tally: campaign.Tally) -> None:
    assert not tally.one_sided
    assert tally.accepted >= CASES / 6
    assert set(tally.clauses) <= set(tally.refused)


@pytest.mark.parametrize("tally", [n for n in NAMES if n.startswith("cpu.simd")], indirect=True)
def test_the_cpp_api_agrees(tally: campaign.Tally) -> None:
    if CPP_API not in tally.voices:
        pytest.skip(NO_PROGRAM)
    assert tally.voices[CPP_API] >= CASES * 0.7


def test_the_cpp_apis_statuses_stand_for_every_clause() -> None:
    # A view has one of the API's dtypes, and lies on the processor.
    apart = {"input.dtype"}
    simd = {domain.operation: domain for name, domain in _domains() if name == "SIMD_DOMAIN"}
    assert set(STATUSES) == set(simd)
    for operation, domain in simd.items():
        named = {name for _, names in STATUSES[operation] for name in names}
        clauses = {clause.name for clause in domain.clauses}
        assert named == {name for name in clauses - apart if not name.endswith(".device")}


def _domains() -> Iterator[tuple[str, Domain]]:
    for operation in catalog.operations():
        module = importlib.import_module(f"xllm_kernel.ops.{operation}.domain")
        for name, value in vars(module).items():
            if name.endswith("_DOMAIN"):
                yield name, value


class _Deaf(CppApi):
    """The program, but what it says of one status is taken for acceptance."""

    def ask(self, arguments: Arguments) -> str:
        said = super().ask(arguments)
        return "kOk" if said == "kWeightStride" else said


def test_a_cpp_api_that_forgets_a_clause_is_found(fresh: KernelRegistry) -> None:
    program = _program()
    subject = _subject("cpu.simd.rms_norm")
    if program is None:
        pytest.skip(NO_PROGRAM)
    with _Deaf(program, subject.domain) as api:
        judge = Judge(subject, {CPP_API: api})
        wrong = [
            one for probe in probes(subject.domain) for one in judge.hear(probe.arguments).wrong
        ]
    assert wrong
    assert set(wrong) == {"C++ API: kOk, but by the clauses kWeightStride"}


def test_a_random_set_finds_what_no_boundary_shows_and_is_shrunk(fresh: KernelRegistry) -> None:
    sound = _subject("cpu.torch.rms_norm")

    def call(given: torch.Tensor, *others: Any) -> torch.Tensor:
        if given.dim() == 3 and given.shape[0] > 2:
            raise RuntimeError("no (clause input.rank)")
        return sound.calls["call"](given, *others)

    tally = campaign.run(dataclasses.replace(sound, calls={"call": call}), CASES)
    (found,) = tally.disagreements
    assert found.startswith("call: no (clause input.rank)\n  domain: accepted")
    assert "'input': Laid(shape=(3, 1, " in found
    assert tally.cases < CASES


def test_every_kind_of_clause_has_probes() -> None:
    every = {c for c in vars(clauses).values() if isinstance(c, type) and issubclass(c, Clause)}
    assert set(PROBES) == every - {Clause}


def test_clause_names_are_unique_in_each_domain() -> None:
    for name, domain in _domains():
        names = [clause.name for clause in domain.clauses]
        assert len(names) == len(set(names)), name


def test_probes_of_a_domain_without_a_device_are_on_both_sides() -> None:
    # That of a device that is not here: facts alone.
    sides = {(probe.clause, probe.inside) for probe in probes(XLITE_DOMAIN)}
    names = {clause.name for clause in XLITE_DOMAIN.clauses}
    assert sides == {(name, inside) for name in names for inside in (True, False)}


def test_the_same_argument_sets_in_every_run(fresh: KernelRegistry) -> None:
    subject = _subject("cpu.torch.rms_norm")
    first, second = (campaign.run(subject, 250) for _ in range(2))
    assert first == second
