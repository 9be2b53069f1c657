"""The public functions of rms_norm_out and the fused additions, over their torch solutions."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from simd_family import DTYPES, FORMS, INPLACE, INSIDE, OUT, OUTSIDE, Form, case, random

import xllm_kernel
from xllm_kernel import ops
from xllm_kernel.errors import ConfigurationError, DomainError
from xllm_kernel.registry import KernelRegistry

# Steps of float32 that root, inverse and two products may cost beyond the output's own rounding.
_FLOAT32_STEPS = 8.0


@pytest.fixture
def bound(fresh: KernelRegistry) -> dict[str, Any]:
    chosen = dict.fromkeys(FORMS, "torch")
    plans = xllm_kernel.initialize(device="cpu", overrides=chosen)
    for name in FORMS:
        assert plans[name].spec.name == f"cpu.torch.{name}"
    return dict(plans)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def _expect_norm(norm: torch.Tensor, values: torch.Tensor, weight: torch.Tensor) -> None:
    """Compare with the formula in float64 from the exact bits: one rounding is half a step."""
    exact = values.double()
    eps = torch.tensor(1e-6, dtype=torch.float32).double()
    wanted = exact / (exact.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()
    steps = _FLOAT32_STEPS if norm.dtype is torch.float32 else 0.51
    info = torch.finfo(norm.dtype)
    allowed = steps * info.eps * wanted.abs() + info.smallest_normal
    assert bool(((norm.double() - wanted).abs() <= allowed).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 3, 129), (16, 512)])
def test_values_by_definition(bound, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    given = case(shape, dtype)
    total = (given["input"].float() + given["residual"].float()).to(dtype)
    assert ops.rms_norm_out(**OUT.pick(given)) is None
    _expect_norm(given["output"], given["input"], given["weight"])
    norm, carried = ops.fused_add_rms_norm(**FORMS["fused_add_rms_norm"].pick(given))
    assert torch.equal(carried, total)
    _expect_norm(norm, total, given["weight"])
    assert ops.fused_add_rms_norm_inplace(**INPLACE.pick(given)) is None
    assert torch.equal(given["residual"], total)
    assert torch.equal(given["input"], norm)


@pytest.mark.parametrize("name", INSIDE)
def test_views_as_their_dense_copies_and_nothing_else_written(bound, form: Form, name: str) -> None:
    given = form.pick(INSIDE[name]())
    dense = {
        k: v.clone(memory_format=torch.contiguous_format) if isinstance(v, torch.Tensor) else v
        for k, v in given.items()
    }
    before = {k: v.clone() for k, v in given.items() if k != "eps"}
    one, other = bound[form.operation].function(**given), bound[form.operation].function(**dense)
    pairs = list(zip(one or (), other or (), strict=True))
    pairs += [(given[k], dense[k]) for k in form.writes]
    for mine, theirs in pairs:
        torch.testing.assert_close(mine, theirs, rtol=2**-7, atol=2**-10)
    for mine, _ in pairs[: len(one or ())]:
        assert mine.is_contiguous()
    for k in before:
        if k not in form.writes:
            assert torch.equal(given[k], before[k])


_TORCH_OUTSIDE = [
    (operation, name)
    for operation, cases in OUTSIDE.items()
    for name, (clause, _) in cases.items()
    # PyTorch's operators read any strides; only what is written must be dense.
    if not (clause.endswith(".stride") and clause.partition(".")[0] not in FORMS[operation].writes)
]


@pytest.mark.parametrize(("operation", "name"), _TORCH_OUTSIDE)
def test_arguments_outside_the_domain_name_the_clause(bound, operation: str, name: str) -> None:
    form = FORMS[operation]
    clause, make = OUTSIDE[operation][name]
    given = form.pick(make())
    before = {k: v.clone() for k, v in given.items() if isinstance(v, torch.Tensor)}
    with pytest.raises(DomainError, match=rf"^{operation} \[cpu\.torch\.{operation}\]: ") as caught:
        bound[operation].function(**given)
    assert caught.value.clause == clause
    for k, v in before.items():
        assert v.is_meta or torch.equal(given[k].nan_to_num(), v.nan_to_num())


@pytest.mark.parametrize("form", [OUT, INPLACE], ids=lambda form: form.operation)
def test_gradient_needed_refused_where_arguments_are_written(bound, form: Form) -> None:
    for name in form.arguments[:-1]:
        given = form.pick(case())
        before = {k: v.clone() for k, v in given.items() if k != "eps"}
        given[name].requires_grad_()
        with pytest.raises(DomainError, match=f"clause {name}.gradient"):
            bound[form.operation].function(**given)
        for k, v in before.items():
            assert torch.equal(given[k].nan_to_num(), v.nan_to_num())


@pytest.mark.parametrize("form", [OUT, INPLACE], ids=lambda form: form.operation)
def test_inference_tensors_are_written_in_inference_mode_only(bound, form: Form) -> None:
    for name in form.writes:
        with torch.inference_mode():
            made = form.pick(case())[name]
        given = form.pick(case()) | {name: made}
        before = {k: v.clone() for k, v in given.items() if k != "eps"}
        with pytest.raises(DomainError, match=rf"\(clause {name}\.inference\)$"):
            bound[form.operation].function(**given)
        for k, v in before.items():
            assert torch.equal(given[k].nan_to_num(), v.nan_to_num())


def test_fresh_form_has_pytorchs_gradient(bound) -> None:
    x, r, w = (t.requires_grad_() for t in (random(3, 8), random(3, 8, seed=1), random(8, seed=2)))
    norm, total = ops.fused_add_rms_norm(x, r, w, 1e-6)
    (norm.sum() + total.sum()).backward()
    assert x.grad is not None
    assert torch.equal(x.grad, r.grad)


def test_before_initialize_says_what_to_call(fresh: KernelRegistry, form: Form) -> None:
    with pytest.raises(ConfigurationError, match=rf"{form.operation}: .*initialize\(device="):
        getattr(ops, form.operation)(**form.pick(case()))
    with pytest.raises(ConfigurationError, match=r"xllm_kernel\.initialize"):
        getattr(xllm_kernel, f"prepare_{form.operation}")()


def test_the_operators_stay_functions_after_initialisation(bound) -> None:
    for name in FORMS:
        assert isinstance(getattr(ops, name), types.FunctionType)
        assert getattr(xllm_kernel, f"prepare_{name}")() is bound[name]


def test_on_an_npu_the_new_operations_are_absent_and_say_so(
    fresh: KernelRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    double = types.ModuleType("torch_npu")
    double.npu_rms_norm = lambda *a, **k: (a[0], None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_npu", double)
    assert set(xllm_kernel.initialize(device="npu")) == {"rms_norm"}
    with pytest.raises(ConfigurationError, match=r"fused_add_rms_norm.*cpu"):
        xllm_kernel.prepare_fused_add_rms_norm()
