"""The C++ solutions of rms_norm_out and the fused additions: bits, verdicts, fakes, writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import need_native
from simd_family import DTYPES, FORMS, INPLACE, INSIDE, OUT, OUTSIDE, Form, case, random, same_bits
from torch._subclasses.fake_tensor import FakeTensorMode

import xllm_kernel
from xllm_kernel.domain import Domain
from xllm_kernel.errors import DomainError
from xllm_kernel.registry import KernelRegistry

need_native()

Ops = dict[str, Callable[..., Any]]


@pytest.fixture
def ops(fresh: KernelRegistry) -> Ops:
    plans = xllm_kernel.initialize(device="cpu")
    for name, plan in plans.items():
        assert plan.spec.name == f"cpu.simd.{name}"
    return {name: plan.function for name, plan in plans.items()}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


def _domain(form: Form) -> Domain:
    domain = KernelRegistry.get().prepared(form.operation).spec.domain
    assert domain is not None
    return domain


def _overload(form: Form) -> Any:
    return getattr(torch.ops.xllm_kernel, f"simd_{form.operation}").default


def test_plan_functions_are_the_operators_themselves(ops: Ops, form: Form) -> None:
    overload = _overload(form)
    # The builtin, where there is one, has the operator behind it.
    assert getattr(ops[form.operation], "__self__", ops[form.operation]) is overload
    written = [a.name for a in overload._schema.arguments if a.alias_info is not None]
    assert tuple(written) == form.writes
    plan = KernelRegistry.get().prepared(form.operation)
    assert plan.spec.contract.mutates == form.writes
    assert plan.spec.priority == 10


def test_profiler_counts_the_calls_in_the_packages_own_namespace(ops: Ops, form: Form) -> None:
    given = form.pick(case())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(5):
            ops[form.operation](**given)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts[f"xllm_kernel::simd_{form.operation}"] == 5


@pytest.mark.parametrize("name", INSIDE)
def test_out_has_the_bits_of_the_fresh_form(ops: Ops, name: str) -> None:
    given = INSIDE[name]()
    before = given["input"].clone(), given["weight"].clone()
    assert ops["rms_norm_out"](**OUT.pick(given)) is None
    wanted = ops["rms_norm"](given["input"].contiguous(), given["weight"], given["eps"])
    assert same_bits(given["output"], wanted)
    assert same_bits(given["input"], before[0])
    assert same_bits(given["weight"], before[1])


@pytest.mark.parametrize("name", INSIDE)
def test_fused_has_the_bits_of_a_rounded_sum_and_its_norm(ops: Ops, name: str) -> None:
    given = FORMS["fused_add_rms_norm"].pick(INSIDE[name]())
    before = {k: v.clone() for k, v in given.items() if k != "eps"}
    norm, total = ops["fused_add_rms_norm"](**given)
    wanted = (given["input"].float() + given["residual"].float()).to(given["input"].dtype)
    assert same_bits(total, wanted)
    assert same_bits(norm, ops["rms_norm"](total, given["weight"], given["eps"]))
    for output in (norm, total):
        assert output.is_contiguous()
    assert norm.numel() == 0 or norm.data_ptr() != total.data_ptr()
    assert all(same_bits(given[k], before[k]) for k in before)


@pytest.mark.parametrize("name", INSIDE)
def test_inplace_has_the_bits_of_the_fresh_form(ops: Ops, name: str) -> None:
    given = INPLACE.pick(INSIDE[name]())
    weight = given["weight"].clone()
    norm, total = ops["fused_add_rms_norm"](**given)
    assert ops["fused_add_rms_norm_inplace"](**given) is None
    assert same_bits(given["input"], norm)
    assert same_bits(given["residual"], total)
    assert same_bits(given["weight"], weight)


@pytest.mark.parametrize("dtype", DTYPES)
def test_residual_zero_gives_the_norm_of_the_input(ops: Ops, dtype: torch.dtype) -> None:
    x, w = random(9, 777, dtype=dtype, seed=1), random(777, dtype=dtype, seed=2)
    norm, total = ops["fused_add_rms_norm"](x, torch.zeros_like(x), w, 1e-6)
    assert same_bits(total, x)
    assert same_bits(norm, ops["rms_norm"](x, w, 1e-6))


def test_gaps_between_rows_stay_untouched(ops: Ops, form: Form) -> None:
    buffers = {name: torch.full((5, 60), 7.0) for name in ("input", "residual", "output")}
    for n, buffer in enumerate(buffers.values()):
        buffer[:, 8:48] = random(5, 40, seed=n)
    given = case((5, 40), **{name: buffer[:, 8:48] for name, buffer in buffers.items()})
    ops[form.operation](**form.pick(given))
    for buffer in buffers.values():
        assert bool((buffer[:, :8] == 7).all())
        assert bool((buffer[:, 48:] == 7).all())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nonfinite_stays_in_its_row(ops: Ops, value: float) -> None:
    x, r, w = random(4, 70, seed=1), random(4, 70, seed=2), torch.ones(70)
    clean, _ = ops["fused_add_rms_norm"](x, r, w, 1e-6)
    r[2, 9] = value
    norm, total = ops["fused_add_rms_norm"](x, r, w, 1e-6)
    assert same_bits(norm[[0, 1, 3]], clean[[0, 1, 3]])
    assert bool(norm[2, 9].isnan())
    if math.isnan(value):
        assert bool(norm[2].isnan().all())
    else:
        assert total[2, 9].item() == value
        assert int(norm[2].count_nonzero()) == 1


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_thread_counts_same_bits(ops: Ops, count: int) -> None:
    before = torch.get_num_threads()
    given = [case((600, 513), torch.bfloat16) for _ in range(2)]
    try:
        torch.set_num_threads(1)
        ops["fused_add_rms_norm_inplace"](**INPLACE.pick(given[0]))
        torch.set_num_threads(count)
        ops["fused_add_rms_norm_inplace"](**INPLACE.pick(given[1]))
    finally:
        torch.set_num_threads(before)
    for name in INPLACE.writes:
        assert same_bits(given[0][name], given[1][name])


def test_row_same_bits_alone_and_in_every_batch(ops: Ops, form: Form) -> None:
    def rows_of(given: dict[str, Any], *places: int) -> list[torch.Tensor]:
        made = ops[form.operation](**form.pick(given))
        return [
            t[place] for t in (*(made or ()), *(given[n] for n in form.writes)) for place in places
        ]

    row = case((1, 65), torch.bfloat16)
    like = {name: row[name].clone() for name in ("input", "residual")}
    alone = rows_of(row, 0)
    before = torch.get_num_threads()
    try:
        for batch in (2, 255, 256, 257, 1000):
            places = (0, batch // 2, batch - 1)
            for count in (1, 2, 4, 8):
                torch.set_num_threads(count)
                given = case((batch, 65), torch.bfloat16, weight=row["weight"])
                for name, values in like.items():
                    given[name][list(places)] = values
                for at, mine in enumerate(rows_of(given, *places)):
                    assert same_bits(mine, alone[at // 3]), (batch, count, at)
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------- verdicts

_OUTSIDE = [(operation, name) for operation, cases in OUTSIDE.items() for name in cases]


@pytest.mark.parametrize(("operation", "name"), _OUTSIDE)
def test_domain_bridge_and_fake_refuse_in_one_voice(ops: Ops, operation: str, name: str) -> None:
    form = FORMS[operation]
    clause, make = OUTSIDE[operation][name]
    given = form.pick(make())
    tensors = {k: v for k, v in given.items() if isinstance(v, torch.Tensor)}
    before = {k: v.clone() for k, v in tensors.items()}
    with pytest.raises(DomainError) as wanted:
        _domain(form).check(form.name, **given)
    assert wanted.value.clause == clause
    assert str(wanted.value).startswith(f"{operation} [cpu.simd.{operation}]: ")
    with pytest.raises(RuntimeError) as bridge:
        ops[operation](**given)
    assert str(bridge.value) == str(wanted.value)
    with FakeTensorMode() as mode, pytest.raises(DomainError) as fake:
        fakes = {k: mode.from_tensor(v) for k, v in tensors.items()}
        ops[operation](**(given | fakes))
    assert fake.value.clause == clause
    assert str(fake.value) == str(wanted.value)
    for key, tensor in tensors.items():
        assert tensor.is_meta or torch.equal(tensor.nan_to_num(), before[key].nan_to_num())


@pytest.mark.parametrize("name", INSIDE)
def test_domain_and_fake_accept_what_the_bridge_accepts(ops: Ops, form: Form, name: str) -> None:
    given = form.pick(INSIDE[name]())
    _domain(form).check(form.name, **given)
    with FakeTensorMode() as mode:
        fakes = {
            k: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for k, v in given.items()
        }
        fake = ops[form.operation](**fakes)
    real = ops[form.operation](**given)
    if real is None:
        assert fake is None
        return
    for mine, other in zip(real, fake, strict=True):
        assert (mine.shape, mine.dtype, mine.stride()) == (other.shape, other.dtype, other.stride())


def test_neighbours_in_one_memory_are_apart(ops: Ops) -> None:
    memory = random(36)
    x, r, w = memory[:12].view(3, 4), memory[12:24].view(3, 4), memory[24:28]
    wanted = ops["fused_add_rms_norm"](x.clone(), r.clone(), w.clone(), 1e-6)
    ops["fused_add_rms_norm_inplace"](x, r, w, 1e-6)
    assert same_bits(x, wanted[0])
    assert same_bits(r, wanted[1])
    ops["rms_norm_out"](memory[:12].view(3, 4), r, w, 1e-6)
    assert same_bits(x, ops["rms_norm"](r, w, 1e-6))


@pytest.mark.parametrize("leaf", [True, False])
def test_gradient_needed_refused_and_nothing_written(ops: Ops, form: Form, leaf: bool) -> None:
    for name in form.arguments[:-1]:
        given = form.pick(case())
        before = {k: v.clone() for k, v in given.items() if k != "eps"}
        given[name].requires_grad_()
        if not leaf:
            given[name] = given[name] * 1
        wanted = f"{name} must not require a gradient .*no_grad.*clause {name}.gradient"
        with pytest.raises(RuntimeError, match=wanted):
            ops[form.operation](**given)
        fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
        with fake_mode as mode, pytest.raises(RuntimeError, match=wanted):
            ops[form.operation](
                **{k: mode.from_tensor(v) if k != "eps" else v for k, v in given.items()}
            )
        assert all(same_bits(given[k].detach(), v) for k, v in before.items())


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradient_off_parameters_fine(ops: Ops, form: Form, mode: Any) -> None:
    with mode():
        given = form.pick(case())
        given["weight"] = torch.nn.Parameter(given["weight"])
        ops[form.operation](**given)


@pytest.mark.parametrize("name", ["dense", "bfloat16", "row slice", "no rows"])
def test_opcheck_finds_nothing(ops: Ops, form: Form, name: str) -> None:
    arguments = tuple(form.pick(INSIDE[name]()).values())
    result = torch.library.opcheck(_overload(form), arguments)
    assert set(result.values()) == {"SUCCESS"}
    assert len(result) == 4


def test_writes_are_counted_so_that_a_backward_pass_notices(ops: Ops, form: Form) -> None:
    given = form.pick(case())
    versions = {k: v._version for k, v in given.items() if k != "eps"}
    ops[form.operation](**given)
    for name, version in versions.items():
        assert given[name]._version == version + (name in form.writes), name
    for name in form.writes:
        given = form.pick(case())
        factor = torch.ones(40, requires_grad=True)
        product = given[name] * factor
        ops[form.operation](**given)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


def test_inference_tensors_are_written_in_inference_mode_only(ops: Ops, form: Form) -> None:
    if not form.writes:
        return
    for name in form.writes:
        with torch.inference_mode():
            made = form.pick(case())[name]
        given = form.pick(case()) | {name: made}
        before = {k: v.clone() for k, v in given.items() if k != "eps"}
        wanted = rf"\]: {name} must not be an inference tensor .*\(clause {name}\.inference\)$"
        with pytest.raises(RuntimeError, match=wanted):
            ops[form.operation](**given)
        assert all(same_bits(given[k], v) for k, v in before.items())
        with torch.inference_mode():
            ops[form.operation](**given)
        assert not same_bits(given[name], before[name])


def test_compiled_calls_have_the_same_bits(ops: Ops, form: Form) -> None:
    eager, traced = form.pick(case((9, 65))), form.pick(case((9, 65)))
    op = ops[form.operation]

    def step(*arguments: Any) -> Any:
        return op(*arguments)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    one, other = step(*eager.values()), compiled(*traced.values())
    for name in form.writes:
        assert same_bits(eager[name], traced[name])
    for mine, theirs in zip(one or (), other or (), strict=True):
        assert same_bits(mine, theirs)


def test_levels_same_bits(ops: Ops, run_python: Callable[..., Any]) -> None:
    code = (
        "import hashlib, torch, xllm_kernel\n"
        "op = xllm_kernel.initialize(device='cpu')['fused_add_rms_norm_inplace'].function\n"
        "print(torch.ops.xllm_kernel.simd_level())\n"
        "for dtype in (torch.float32, torch.float16, torch.bfloat16):\n"
        "    g = torch.Generator().manual_seed(1)\n"
        "    x, r = (torch.randn(9, 777, generator=g).to(dtype) for _ in range(2))\n"
        "    op(x, r, torch.randn(777, generator=g).to(dtype), 1e-6)\n"
        "    both = torch.stack([x, r]).view(torch.uint8).flatten().tolist()\n"
        "    print(hashlib.sha256(bytes(both)).hexdigest())\n"
    )
    from xllm_kernel._build import simd

    printed = {}
    for level in simd.MANIFEST["levels"]:
        done = run_python("-c", code, env={"XLLM_KERNEL_SIMD_LEVEL": level})
        if "processor or operating system lacks" in done.stderr:
            continue  # this machine cannot say anything about that level
        name, *digests = done.stdout.splitlines()
        assert name == level
        printed[level] = digests
    assert "scalar" in printed
    assert all(digests == printed["scalar"] for digests in printed.values())
