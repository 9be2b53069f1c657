"""Input regimes: which run, under which names; honest kernels pass; each finds what it is for."""

from __future__ import annotations

import argparse
import functools
from collections import Counter
from collections.abc import Callable

import pytest
import test_numerics_norm_family as family
import test_numerics_rms_norm as norm
import torch
from test_numerics_rms_norm import Kernel, honest, native, normalise, plan_of

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import activations, regimes
from xllm_kernel.numerics.arguments import parse
from xllm_kernel.numerics.memory import Form, Layout, place, write
from xllm_kernel.numerics.rms_norm_case import FamilyCase
from xllm_kernel.numerics.rms_norm_family import FamilySuite
from xllm_kernel.numerics.rms_norm_inputs import split
from xllm_kernel.numerics.storage import ArgumentGuard
from xllm_kernel.numerics.suite import PreparedCase

NAMES = [*(regime.name for regime in regimes.REGIMES), "activations"]
FEW = ("--rows", "1", "16", "--widths", "512")


def cases(suite: FamilySuite, *options: str, kind: str = "numerics") -> list[FamilyCase]:
    parser = argparse.ArgumentParser()
    parser.set_defaults(kind=kind)
    suite.add_arguments(parser)
    return suite.cases(parser.parse_args(options))


# ---- which run ------------------------------------------------------------------------------


def test_default_run_is_the_matrix_and_then_every_regime_in_order() -> None:
    found = cases(norm.SUITE)
    matrix = [case.case_id for case in cases(norm.SUITE, "--regimes", "none")]
    assert len(matrix) == 24
    assert [case.case_id for case in found[:24]] == matrix
    seen = list(dict.fromkeys(case.parameters["regime"] for case in found[24:]))
    assert seen == NAMES
    assert "rms_norm/bfloat16/3x513/seed5309/outlier" in {case.case_id for case in found}
    assert "rms_norm/float32/4x576/seed5309/eps1e-12/eps" in {case.case_id for case in found}
    assert {case.parameters["dtype"] for case in found[24:]} == {"bfloat16", "float16", "float32"}
    assert max(Counter(case.case_id for case in found).values()) == 1


def test_benchmark_times_none_and_has_no_such_option() -> None:
    assert len(cases(norm.SUITE, kind="benchmark")) == 24
    with pytest.raises(SystemExit):
        cases(norm.SUITE, "--regimes", "all", kind="benchmark")


@pytest.mark.parametrize("command", ["numerics", "benchmark"])
def test_commands_say_which_they_are(command: str) -> None:
    request = parse(command, ["--implementation", "cpu.torch.rms_norm"])
    names = {case.parameters.get("regime") for case in request.suite.cases(request.options)}
    assert names == ({None, *NAMES} if command == "numerics" else {None})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--rows", "2"), set()),
        (("--widths", "8"), set()),
        (("--eps", "1e-6"), set()),
        (("--dtypes", "float16"), set(NAMES)),
        (("--seed", "1"), set(NAMES)),
        (("--regimes", "none"), set()),
        (("--regimes", "zeros", "large"), {"zeros", "large"}),
        ((*FEW, "--regimes", "all"), set(NAMES)),
    ],
)
def test_options_choose_regimes(options: tuple[str, ...], wanted: set[str]) -> None:
    found = cases(norm.SUITE, *options)
    assert {case.parameters.get("regime") for case in found} - {None} == wanted


@pytest.mark.parametrize(
    ("options", "wanted"),
    [((), set()), (("--regimes", "zeros"), {"zeros"}), (("--mode", "eager"), set(NAMES))],
)
def test_other_modes_have_regimes_where_asked(options: tuple[str, ...], wanted: set[str]) -> None:
    mode = () if "--mode" in options else ("--mode", "compile")
    request = parse("numerics", ["--implementation", "cpu.torch.rms_norm", *mode, *options])
    found = request.suite.cases(request.options)
    assert {case.parameters.get("regime") for case in found} - {None} == wanted


def test_none_and_all_stand_alone() -> None:
    with pytest.raises(ConfigurationError, match="--regimes: none and all stand alone"):
        cases(norm.SUITE, "--regimes", "zeros", "none")


def test_seed_and_dtypes_are_for_regimes_too() -> None:
    one, other = (
        cases(norm.SUITE, "--dtypes", "float16", "--seed", seed, "--regimes", "outlier")[-1]
        for seed in ("1", "2")
    )
    assert one.case_id == "rms_norm/float16/4x576/seed1/outlier"
    assert not one.make(0)["input"].equal(other.make(0)["input"])
    assert not one.make(0)["input"].equal(one.make(1)["input"])
    assert one.make(0)["input"].equal(one.make(0)["input"])


# ---- honest kernels -------------------------------------------------------------------------

HONEST: dict[str, Kernel] = {
    "rms_norm_out": family.out,
    "fused_add_rms_norm": lambda x, r, w, eps: family.fused(x.contiguous(), r, w, eps),
    "fused_add_rms_norm_inplace": family.inplace,
}


@functools.cache
def prepared(regime: str) -> tuple[list[tuple[FamilyCase, PreparedCase]], list[Kernel]]:
    """Prepare the cases of a regime once for all kernels; the matrix's for ``normal``."""
    held: list[Kernel] = []
    plan = plan_of(lambda *arguments: held[0](*arguments))
    found = cases(norm.SUITE, *FEW, "--regimes", "none" if regime == "normal" else regime)
    chosen = [c for c in found if c.parameters.get("regime", "normal") == regime]
    inside = [case for case in chosen if case.unsupported_reason(plan) is None]
    return [(case, case.prepare(plan)) for case in inside], held


def failures(kernel: Kernel, regime: str) -> list[str]:
    """Return the cases in which a kernel fails, or raises."""
    found, held = prepared(regime)
    held[:] = [kernel]
    failed = []
    for case, made in found:
        try:
            verdict = made.validate(made.function)
        except (RuntimeError, ZeroDivisionError):
            verdict = {"status": "failed"}
        if verdict["status"] != "passed":
            failed.append(f"{case.case_id}: {verdict.get('reason')}")
    return failed


@pytest.mark.parametrize("regime", NAMES)
def test_honest_kernels_pass(regime: str) -> None:
    assert failures(native, regime) == []
    assert failures(lambda x, w, eps: honest(x.contiguous(), w, eps), regime) == []


@pytest.mark.parametrize("operation", list(family.SUITES))
def test_honest_relatives_pass_every_regime(operation: str) -> None:
    plan = family.plan_of(operation, HONEST[operation])
    covered = set()
    for case in cases(
        family.SUITES[operation][0], *FEW[:2], "--dtypes", "float16", "--regimes", "all"
    ):
        # Written rows that are one memory, or of no width, are outside of every domain.
        repeated = any(
            layout.form is Form.REPEATED and name in plan.spec.contract.mutates
            for name, layout in case.layouts.items()
        )
        if "regime" not in case.parameters or repeated or case.shape[-1] == 0:
            continue
        made = case.prepare(plan)
        if made.reset is not None:
            made.reset.function()
        verdict = made.validate(made.function)
        assert verdict["status"] == "passed", (case.case_id, verdict["reason"])
        covered.add(case.parameters["regime"])
    assert covered >= set(NAMES) - {"expanded"}


NULL: dict[str, Kernel] = {
    "zeros": lambda x, w, eps: torch.zeros(x.shape, dtype=x.dtype),
    "unwritten": lambda x, w, eps: torch.full(x.shape, torch.nan, dtype=x.dtype),
    "input": lambda x, w, eps: x.clone(memory_format=torch.contiguous_format),
    "weight": lambda x, w, eps: w.to(x.dtype).expand(x.shape).contiguous(),
}


@pytest.mark.parametrize("regime", NAMES)
@pytest.mark.parametrize("null", NULL)
def test_no_case_lets_a_kernel_pass_that_computes_nothing(null: str, regime: str) -> None:
    failed = {line.partition(":")[0] for line in failures(NULL[null], regime)}
    assert failed >= {case.case_id for case, _ in prepared(regime)[0] if 0 not in case.shape}


def test_width_zero_is_outside_of_every_domain_by_its_clause() -> None:
    (case,) = (c for c in cases(norm.SUITE, "--dtypes", "float16") if c.shape == (3, 0))
    assert "input.width" in str(case.unsupported_reason(plan_of(native)))
    without = family.plan_of("rms_norm_out", family.out)
    assert str(case.unsupported_reason(without)).startswith("input.width: ")


# ---- what each is for -----------------------------------------------------------------------


def scaled(scale: Callable[[torch.Tensor], torch.Tensor], eps_scaled: bool = True) -> Kernel:
    """Normalise rows divided by something first, as a guard against overflow would be written."""

    def kernel(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
        by = scale(x.double())
        rest = eps / by.square() if eps_scaled else eps
        values = x.double() / by
        root = (values.square().mean(-1, keepdim=True) + rest).sqrt()
        return (values / root * w.double()).to(x.dtype)

    return kernel


def total_in_half(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    total = x.float().square().sum(-1, keepdim=True)
    total = total.where(total <= 65504.0, torch.inf)
    return (x.float() * torch.rsqrt(total / x.shape[-1] + eps) * w.float()).to(x.dtype)


def flushing(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return honest(x.where(x.float().abs() >= 2.0**-126, 0.0), w, eps)


def flushing_results(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    y = honest(x, w, eps)
    return y.where(~(y.float().abs() < 2.0**-126), 0.0)


def sign_by_division(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    bits = x.contiguous().view(torch.int32 if x.dtype is torch.float32 else torch.int16)
    sign = torch.where(bits == 0, 0.0, x.float() / x.float().abs())
    return (sign * normalise(x, eps).abs() * w.float()).to(x.dtype)


def dense_whatever_the_strides(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return honest(x.as_strided(x.shape, torch.empty(x.shape).stride()), w, eps)


def first_stride_for_every_row(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    rows = x.numel() // x.shape[-1]
    step = x.stride(0) if x.dim() > 1 else x.shape[-1]
    return honest(x.as_strided((rows, x.shape[-1]), (step, 1)), w, eps).view(x.shape)


def aligned_address(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    back = x.data_ptr() % 16 // x.element_size()
    return honest(x.as_strided(x.shape, x.stride(), x.storage_offset() - back), w, eps)


def rows_of_the_first_dimension(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    rows = x.reshape(-1, x.shape[-1])
    y = torch.zeros(rows.shape, dtype=x.dtype)
    y[: x.shape[0]] = honest(rows[: x.shape[0]], w, eps)
    return y.view(x.shape)


def tail_left_out(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    whole = max(1, x.shape[-1] // 8 * 8)
    mean = x[..., :whole].float().square().sum(-1, keepdim=True) / x.shape[-1]
    return (x.float() * torch.rsqrt(mean + eps) * w.float()).to(x.dtype)


def rows_counted_by_division(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    rows = x.shape[0]
    return honest(x.reshape(rows, x.numel() // rows), w, eps) if x.dim() == 2 else honest(x, w, eps)


def rows_apart(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    y = honest(x, w, eps)
    if x.dim() == 2 and len(x) > 1 and x.stride(0) == 0:
        y[1:] = 0.0
    return y


def _nan_free_input(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return honest(x.nan_to_num(), w, eps)


def _nan_free_result(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    return honest(x, w, eps).nan_to_num()


FINDS: dict[str, list[Kernel]] = {
    "large": [total_in_half, lambda x, w, eps: honest(x.clamp(-4096, 4096), w, eps)],
    "small": [flushing, flushing_results],
    "constant": [scaled(lambda v: v.amax(-1, keepdim=True) - v.amin(-1, keepdim=True))],
    "alternating": [scaled(lambda v: v.mean(-1, keepdim=True).abs())],
    "outlier": [scaled(lambda v: v.abs().amax(-1, keepdim=True), eps_scaled=False)],
    "zeros": [scaled(lambda v: v.abs().amax(-1, keepdim=True))],
    "signed_zeros": [sign_by_division],
    "eps": [
        lambda x, w, eps: honest(x, w, 0.0),
        lambda x, w, eps: honest(x, w, 1e-5),
        lambda x, w, eps: honest(x, w, max(eps, 1e-5)),
        lambda x, w, eps: honest(x, w, torch.tensor(eps, dtype=x.dtype).item()),
    ],
    "nonfinite": [_nan_free_input, _nan_free_result],
    "empty": [rows_counted_by_division],
    "widths": [tail_left_out],
    "dimensions": [rows_of_the_first_dimension],
    "strided": [dense_whatever_the_strides, first_stride_for_every_row],
    "transposed": [dense_whatever_the_strides],
    "expanded": [dense_whatever_the_strides, rows_apart],
    "misaligned": [aligned_address],
    "activations": [lambda x, w, eps: honest(x.clamp(-4096, 4096), w, eps)],
}


def test_every_regime_is_there_for_something() -> None:
    assert list(FINDS) == NAMES


@pytest.mark.parametrize(
    ("regime", "number"), [(name, n) for name, found in FINDS.items() for n in range(len(found))]
)
def test_regime_finds_what_the_default_matrix_does_not(regime: str, number: int) -> None:
    fault = FINDS[regime][number]
    assert failures(fault, "normal") == []
    assert failures(fault, regime) != []


# ---- parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sum_of_the_parts_is_of_the_regimes_kind(dtype: torch.dtype) -> None:
    rows = torch.tensor([[3.0, -0.0, 0.0, torch.inf, torch.nan, -torch.inf, 1e-3, 65504.0]])
    first, second = split(rows.double(), 2, dtype)
    total = first.double() + second.double()
    assert total.isnan().equal(rows.isnan())
    assert total.isinf().equal(rows.isinf())
    assert torch.signbit(total[0, :3]).tolist() == [False, True, False]
    finite = rows.isfinite()
    assert torch.allclose(total[finite], rows[finite].double(), rtol=2.0**-7)
    for part in (first, second):
        assert 0 < int((~part.isfinite()).sum()) < 3
        assert part.dtype is dtype


def test_layouts_have_the_strides_that_they_name() -> None:
    assert Layout(gap=7).strides((3, 5)) == (12, 1)
    assert Layout(gap=1, block_gap=4).strides((2, 3, 5)) == (22, 6, 1)
    assert Layout(form=Form.COLUMNS).strides((2, 3, 5)) == (15, 1, 3)
    assert Layout(form=Form.REPEATED).strides((2, 3, 5)) == (0, 0, 1)
    assert Layout(form=Form.COLUMNS).strides((5,)) == Layout().strides((5,)) == (1,)
    assert Layout().strides((2, 0, 5)) == torch.empty(2, 0, 5).stride()


@pytest.mark.parametrize("form", Form)
def test_placed_tensors_lie_so_and_are_watched(form: Form) -> None:
    values = torch.arange(12.0).view(3, 4)
    if form is Form.REPEATED:
        values = values[:1].expand(3, 4)
    layout = Layout(offset=2, form=form)
    placed = place(values, "cpu", layout)
    assert placed.equal(values)
    assert placed.stride() == layout.strides((3, 4))
    write(placed, values + 1)
    assert placed.equal(values + 1)
    guard = ArgumentGuard({"x": placed})
    assert (guard.mutation(), guard.stray()) == (None, None)
    placed[0, 1] = -1.0
    assert "'x' was written to" in str(guard.mutation())
    assert guard.stray() is None


def test_activations_are_a_models_and_say_so() -> None:
    import json

    found = activations.excerpts()
    names = ["layers.01.ffn_norm", "layers.03.attn_norm", "layers.10.ffn_norm"]
    names += ["layers.12.attn_norm", "layers.29.ffn_norm", "output_norm"]
    assert [e.name for e in found] == names
    data = activations.PATH.read_bytes()
    facts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    assert facts["license"].startswith("Apache-2.0")
    assert len(data) < 200 * 1024
    largest = 0.0
    for excerpt in found:
        tensors = excerpt.load()
        total = tensors["addend"] + tensors["residual"]
        assert total.shape == excerpt.shape == (4, 576)
        assert tensors["weight"].shape == (576,)
        largest = max(largest, float(total.abs().max()))
    assert largest > 20000.0
