"""Torch registration: new Python kernels, existing schemas, fakes, repetition, lifetime."""

from __future__ import annotations

import functools
import gc
import itertools

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from xllm_kernel import custom_ops
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.errors import ArtifactError, ConfigurationError, DomainError

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name no other test used: Torch operators live as long as the process."""
    return f"test_op_{next(_numbers)}"


def _double(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return x * factor


def _fake_double(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return torch.empty_like(x)


def test_register_a_python_kernel_runs_real_and_fake(name: str) -> None:
    op = register_custom_op(
        name, _double, mutates_args=(), dispatch_key="CPU", fake_impl=_fake_double
    )
    x = torch.arange(3.0)
    assert torch.equal(op(x), x * 2)
    assert torch.equal(op(x, factor=3.0), x * 3)
    assert op is getattr(torch.ops.xllm_kernel, name).default
    with FakeTensorMode() as mode:
        given = mode.from_tensor(x)
        fakes = [op(given), op(given, 3.0), op(x=given, factor=3.0), op(given, factor=3.0)]
    assert [fake.shape for fake in fakes] == [(3,)] * 4
    torch.library.opcheck(op, (x,))


def test_register_survives_collection(name: str) -> None:
    register_custom_op(name, _double, mutates_args=(), dispatch_key="CPU")
    gc.collect()
    assert torch.equal(getattr(torch.ops.xllm_kernel, name)(torch.ones(2)), torch.full((2,), 2.0))


def test_register_twice_reuses_the_first(name: str) -> None:
    arguments = {"mutates_args": (), "dispatch_key": "CPU", "fake_impl": _fake_double}
    first = register_custom_op(name, _double, **arguments)
    assert register_custom_op(name, _double, **arguments) is first
    assert len(custom_ops._registered[name].libraries) == 2


def test_register_another_kernel_or_fake_under_a_name_is_refused(name: str) -> None:
    def other(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x

    register_custom_op(name, _double, mutates_args=(), dispatch_key="CPU", fake_impl=_fake_double)
    with pytest.raises(ConfigurationError, match=r"its kernel is .*_double, got another one"):
        register_custom_op(name, other, mutates_args=(), dispatch_key="CPU")
    with pytest.raises(ConfigurationError, match="its fake is"):
        register_custom_op(name, fake_impl=other)


def test_register_a_fake_for_an_existing_schema(name: str) -> None:
    library = torch.library.Library("xllm_kernel", "FRAGMENT")
    library.define(f"{name}(Tensor x, float factor=2.0) -> Tensor")
    library.impl(name, _double, "CPU")
    op = register_custom_op(name, fake_impl=_fake_double)
    with FakeTensorMode() as mode:
        assert op(mode.from_tensor(torch.ones(4))).shape == (4,)
    assert register_custom_op(name, fake_impl=_fake_double) is op
    with pytest.raises(ConfigurationError, match="exists already"):
        register_custom_op(name, _double, mutates_args=(), dispatch_key="CPU")


def test_register_without_any_schema_names_the_bridge(name: str) -> None:
    with pytest.raises(ArtifactError, match=r"a loaded library must define.*load_library"):
        register_custom_op(name, fake_impl=_fake_double)


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (_double, {"mutates_args": ()}, "needs dispatch_key too"),
        (_double, {"dispatch_key": "CPU"}, "needs mutates_args too"),
        (_double, {}, "needs mutates_args, dispatch_key too"),
        (None, {"dispatch_key": "CPU"}, "dispatch_key must not be given"),
        (None, {"mutates_args": ()}, "mutates_args must not be given"),
    ],
)
def test_register_incompletely_is_refused(name, function, given, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        register_custom_op(name, function, **given)
    assert name not in custom_ops._registered


def _lacks_default(x: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


def _other_default(x: torch.Tensor, factor: float = 3.0) -> torch.Tensor:
    return torch.empty_like(x)


def _other_name(y: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    return torch.empty_like(y)


@pytest.mark.parametrize("fake", [_lacks_default, _other_default, _other_name])
def test_register_a_fake_with_another_signature_is_refused(name: str, fake) -> None:
    with pytest.raises(ConfigurationError, match=r"schema's parameters \(x, factor=2\.0\)"):
        register_custom_op(name, _double, mutates_args=(), dispatch_key="CPU", fake_impl=fake)


def test_register_with_a_wrong_dispatch_key_propagates_and_leaves_no_schema(name: str) -> None:
    with pytest.raises(RuntimeError, match="NoSuchKey"):
        register_custom_op(name, _double, mutates_args=(), dispatch_key="NoSuchKey")
    register_custom_op(name, _double, mutates_args=(), dispatch_key="CPU")


@pytest.mark.parametrize(
    "changed", [{"dispatch_key": "Meta"}, {"mutates_args": ("x",)}], ids=["key", "mutates"]
)
def test_register_a_kernel_again_otherwise_is_refused(name: str, changed) -> None:
    given = {"mutates_args": (), "dispatch_key": "CPU"}
    register_custom_op(name, _double, **given)
    with pytest.raises(ConfigurationError, match="repeat it unchanged"):
        register_custom_op(name, _double, **(given | changed))


@pytest.mark.parametrize("kernel", [functools.partial(_double, factor=3.0), abs], ids=str)
def test_register_something_without_annotations_is_refused(name: str, kernel) -> None:
    with pytest.raises(ConfigurationError, match="a plain function is needed"):
        register_custom_op(name, kernel, mutates_args=(), dispatch_key="CPU")


def test_derivatives_wanted_of_an_operator_without_any_refused_by_name(name: str) -> None:
    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    op = register_custom_op(
        name,
        kernel,
        mutates_args=(),
        dispatch_key="CPU",
        no_derivatives="test [cpu.test]",
    )
    x, y = torch.arange(3.0), torch.ones(3)
    assert torch.equal(op(x, y), x)
    wanted = {
        r"^test \[cpu.test\]: y must not require a gradient .* \(clause y\.gradient\)$": (
            lambda: torch.func.grad(lambda a: op(x, a).sum())(y),
            lambda: op(x, y.clone().requires_grad_()),
        ),
        r"^test \[cpu.test\]: x must not carry a tangent, .* \(clause x\.tangent\)$": (
            lambda: torch.func.jvp(lambda a: op(a, y), (x,), (x,)),
            lambda: torch.no_grad()(torch.func.jvp)(lambda a: op(a, y), (x,), (x,)),
        ),
    }
    for message, calls in wanted.items():
        for call in calls:
            with pytest.raises(DomainError, match=message):
                call()
    with torch.no_grad():
        assert not op(x, y.clone().requires_grad_()).requires_grad
    assert torch.equal(torch.func.grad(lambda a: (a * op(x, y)).sum())(y), x)
