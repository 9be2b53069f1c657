"""The builtins of rms_norm's relatives: what they take by themselves, and with which effects.

Bits, messages and transforms of the bound callables are in ``test_simd_norm_family`` and
``test_simd_transforms``, which call what is bound; ``test_fastcall`` has the guards in detail.
"""

from __future__ import annotations

import importlib.util

import pytest
import torch
from conftest import need_native
from fastcall_spy import Spy
from simd_family import FORMS, INSIDE, Form, case, same_bits

import xllm_kernel

need_native()
if importlib.util.find_spec("xllm_kernel._build.fastcall") is None:
    pytest.skip("builtins absent: ./dev build", allow_module_level=True)


@pytest.fixture(params=sorted(FORMS))
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


@pytest.fixture
def spy(fresh: object, form: Form) -> Spy:
    xllm_kernel.initialize(device="cpu", overrides={form.operation: "simd"})
    return Spy(form.operation)


@pytest.mark.parametrize("name", INSIDE)
def test_inside_the_domain_taken_with_the_operators_bits(spy: Spy, form: Form, name: str) -> None:
    ours, theirs = form.pick(INSIDE[name]()), form.pick(INSIDE[name]())
    result, expected = spy.builtin(*ours.values()), spy.operator(*theirs.values())
    assert spy.calls == 0
    assert type(result) is type(expected)
    pairs = list(zip(result, expected, strict=True)) if isinstance(result, tuple) else []
    pairs += [(ours[n], theirs[n]) for n in ours if n != "eps"]
    for mine, other in pairs:
        assert mine.stride() == other.stride()
        assert same_bits(mine, other)


def test_keywords_taken_in_every_order(spy: Spy, form: Form) -> None:
    given = form.pick(case())
    assert spy.takes(**given)
    assert spy.takes(**dict(reversed(given.items())))


@pytest.mark.parametrize("wrong", ["eps", "weight", "missing", "twice"])
def test_wrong_calls_handed_on_and_nothing_written(spy: Spy, form: Form, wrong: str) -> None:
    given = form.pick(case())
    before = {n: given[n].clone() for n in form.writes}
    if wrong == "missing":
        del given["weight"]
    elif wrong == "eps":
        given["eps"] = -1.0
    elif wrong == "weight":
        given["weight"] = given["weight"][:3]
    positional = [given["input"]] if wrong == "twice" else []
    with pytest.raises((RuntimeError, TypeError)):
        spy.builtin(*positional, **given)
    assert spy.calls == 1
    for n, value in before.items():
        assert same_bits(given[n], value)


def test_each_write_counted_once(spy: Spy, form: Form) -> None:
    given = form.pick(case())
    versions = {n: given[n]._version for n in given if n != "eps"}
    assert spy.takes(**given)
    for n, version in versions.items():
        assert given[n]._version == version + (n in form.writes), n


def test_inference_tensors_taken_inside_and_written_ones_handed_on_outside(
    spy: Spy, form: Form
) -> None:
    with torch.inference_mode():
        given = form.pick(case())
        assert spy.takes(**given)
    for n in form.writes:
        mixed = form.pick(case()) | {n: given[n]}
        with pytest.raises(RuntimeError, match=f"{n} must not be an inference tensor"):
            spy.builtin(**mixed)
    assert spy.calls == len(form.writes)


def test_wanted_gradients_handed_on(spy: Spy, form: Form) -> None:
    given = form.pick(case())
    given["weight"] = given["weight"].requires_grad_()
    with pytest.raises(RuntimeError, match="weight must not require a gradient"):
        spy.builtin(**given)
    with torch.no_grad():
        assert spy.takes(**given)


def test_profiled_calls_handed_on(spy: Spy, form: Form) -> None:
    with torch.profiler.profile():
        assert not spy.takes(**form.pick(case()))
