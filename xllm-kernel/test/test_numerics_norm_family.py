"""The suites of rms_norm_out and the fused additions: honest kernels pass, planted faults fail."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_numerics_rms_norm import honest, native

from xllm_kernel.numerics import (
    fused_add_rms_norm,
    fused_add_rms_norm_inplace,
    rms_norm,
    rms_norm_out,
)
from xllm_kernel.numerics import rms_norm_reference as oracle
from xllm_kernel.numerics.rms_norm_family import FamilyCase, FamilySuite
from xllm_kernel.ops.fused_add_rms_norm import OPERATION as FUSED
from xllm_kernel.ops.fused_add_rms_norm_inplace import OPERATION as INPLACE
from xllm_kernel.ops.rms_norm_out import OPERATION as OUT
from xllm_kernel.registry import KernelSpec, PreparedKernel

Kernel = Callable[..., Any]
SUITES: dict[str, tuple[FamilySuite, Any]] = {
    "rms_norm_out": (rms_norm_out.SUITE, OUT),
    "fused_add_rms_norm": (fused_add_rms_norm.SUITE, FUSED),
    "fused_add_rms_norm_inplace": (fused_add_rms_norm_inplace.SUITE, INPLACE),
}
DTYPES = ["bfloat16", "float16", "float32"]


def cases(operation: str, *options: str) -> list[FamilyCase]:
    suite = SUITES[operation][0]
    parser = argparse.ArgumentParser()
    suite.add_arguments(parser)
    return suite.cases(parser.parse_args(options))


def plan_of(operation: str, kernel: Kernel) -> PreparedKernel:
    contract = SUITES[operation][1].contract
    spec = KernelSpec(f"cpu.test.{operation}", contract, "cpu", ("eager",), "", "test")
    return PreparedKernel(spec, kernel, 1, ())


def judge(operation: str, kernel: Kernel, *options: str) -> list[dict[str, Any]]:
    """Judge every case twice: the reset in between must make the second verdict the first."""
    verdicts = []
    for case in cases(operation, *options):
        prepared = case.prepare(plan_of(operation, kernel))
        twice = []
        for _ in range(2):
            if prepared.reset is not None:
                prepared.reset.function()
            twice.append(prepared.validate(prepared.function))
        assert twice[0] == twice[1]
        verdicts.append(twice[0])
    return verdicts


def judge_few(operation: str, kernel: Kernel, dtype: str = "bfloat16") -> dict[str, Any]:
    (verdict,) = judge(operation, kernel, "--rows", "16", "--widths", "512", "--dtypes", dtype)
    return verdict


# ---- honest kernels -------------------------------------------------------------------------


def out(output, x, w, eps):
    output.copy_(honest(x, w, eps))


def fused(x, r, w, eps):
    total = (x.float() + r.float()).to(x.dtype)
    return honest(total, w, eps), total


def fused_native(x, r, w, eps):
    total = x + r
    return native(total, w, eps), total


def inplace(x, r, w, eps):
    r.add_(x)
    x.copy_(honest(r, w, eps))


HONEST = [
    ("rms_norm_out", out),
    ("fused_add_rms_norm", fused),
    ("fused_add_rms_norm", fused_native),
    ("fused_add_rms_norm_inplace", inplace),
]


@pytest.mark.parametrize(("operation", "kernel"), HONEST)
def test_honest_kernels_pass_at_odd_sizes(operation: str, kernel: Kernel) -> None:
    sizes = ("--rows", "1", "16", "--widths", "1", "7", "65", "513", "--dtypes", *DTYPES)
    verdicts = judge(operation, kernel, *sizes)
    assert len(verdicts) == 2 * 4 * 3
    assert {v["status"] for v in verdicts} == {"passed"}, [v["reason"] for v in verdicts]
    assert all(v["checks"][c] == "passed" for v in verdicts for c in v["checks"])


@pytest.mark.parametrize(("operation", "kernel"), HONEST)
def test_no_rows_pass(operation: str, kernel: Kernel) -> None:
    (verdict,) = judge(operation, kernel, "--rows", "0", "--widths", "8", "--dtypes", "float32")
    assert verdict["status"] == "passed", verdict["reason"]


def test_written_arguments_are_judged_under_their_names() -> None:
    paths = [o["path"] for o in judge_few("fused_add_rms_norm_inplace", inplace)["outputs"]]
    assert paths == ["argument 'input'", "argument 'residual'"]
    assert [o["path"] for o in judge_few("rms_norm_out", out)["outputs"]] == ["argument 'output'"]
    assert [o["path"] for o in judge_few("fused_add_rms_norm", fused)["outputs"]] == [
        "output[0]",
        "output[1]",
    ]


# ---- planted faults -------------------------------------------------------------------------


def norm_reads_unrounded_sum(x, r, w, eps):
    total = x.float() + r.float()
    return honest(total, w.float(), eps).to(x.dtype), total.to(x.dtype)


def sum_truncated(x, r, w, eps):
    kept = {torch.bfloat16: 16, torch.float16: 13}[x.dtype]
    total = ((x.float() + r.float()).view(torch.int32) >> kept) << kept
    total = total.view(torch.float32).to(x.dtype)
    return honest(total, w, eps), total


def sum_in_float32(x, r, w, eps):
    norm, total = fused(x, r, w, eps)
    return norm, x.float() + r.float() if x.dtype is not torch.float32 else total.double()


def sum_one_step_off(x, r, w, eps):
    norm, total = fused(x, r, w, eps)
    total.view(torch.int16)[3, 5] += 1
    return norm, total


def outputs_swapped(x, r, w, eps):
    return tuple(reversed(fused(x, r, w, eps)))


def residual_ignored(x, r, w, eps):
    return honest(x, w, eps), fused(x, r, w, eps)[1]


def sum_is_the_residual(x, r, w, eps):
    norm, total = fused(x, r, w, eps)
    return norm, r.copy_(total)


def list_for_tuple(x, r, w, eps):
    return list(fused(x, r, w, eps))


def norm_alone(x, r, w, eps):
    return fused(x, r, w, eps)[0]


def weight_scribbled_on(x, r, w, eps):
    result = fused(x, r, w, eps)
    w[0] += 1
    return result


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (norm_reads_unrounded_sum, "values"),
        (sum_truncated, "values"),
        (sum_one_step_off, "values"),
        (sum_in_float32, "dtype"),
        (outputs_swapped, "values"),
        (residual_ignored, "values"),
        (sum_is_the_residual, "mutation"),
        (list_for_tuple, "structure"),
        (norm_alone, "structure"),
    ],
)
def test_fault_of_the_fresh_form_fails(fault: Kernel, check: str, dtype: str) -> None:
    (case,) = cases("fused_add_rms_norm", "--rows", "16", "--widths", "512", "--dtypes", dtype)
    prepared = case.prepare(plan_of("fused_add_rms_norm", fault))
    verdict = prepared.validate(prepared.function)
    assert (verdict["status"], verdict["check"]) == ("failed", check), verdict["reason"]


def test_the_rounding_plan_is_told_at_every_size_of_the_default_matrix_at_few_rows() -> None:
    verdicts = judge("fused_add_rms_norm", norm_reads_unrounded_sum, "--rows", "1", "16")
    assert len(verdicts) == 12
    assert {(v["status"], v["check"]) for v in verdicts} == {("failed", "values")}
    assert all("output[0]" in v["reason"] for v in verdicts)


def residual_not_updated(x, r, w, eps):
    x.copy_(honest((x.float() + r.float()).to(x.dtype), w, eps))


def input_not_overwritten(x, r, w, eps):
    r.add_(x)


def roles_swapped(x, r, w, eps):
    x.add_(r)
    r.copy_(honest(x, w, eps))


def weight_written_too(x, r, w, eps):
    inplace(x, r, w, eps)
    w[-1] *= 2


def returns_the_norm(x, r, w, eps):
    inplace(x, r, w, eps)
    return x


def unrounded_in_place(x, r, w, eps):
    norm, total = norm_reads_unrounded_sum(x, r, w, eps)
    x.copy_(norm)
    r.copy_(total)


def last_row_forgotten(x, r, w, eps):
    inplace(x[:-1], r[:-1], w, eps)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("fault", "failed"),
    [
        (residual_not_updated, {"values", "mutation"}),
        (input_not_overwritten, {"values", "mutation"}),
        (roles_swapped, {"values"}),
        (weight_written_too, {"mutation"}),
        (returns_the_norm, {"structure", "aliasing"}),
        (unrounded_in_place, {"values"}),
        (last_row_forgotten, {"values"}),
    ],
)
def test_fault_of_the_inplace_form_fails(fault: Kernel, failed: set[str], dtype: str) -> None:
    (case,) = cases(
        "fused_add_rms_norm_inplace", "--rows", "16", "--widths", "512", "--dtypes", dtype
    )
    prepared = case.prepare(plan_of("fused_add_rms_norm_inplace", fault))
    verdict = prepared.validate(prepared.function)
    assert {c for c, word in verdict["checks"].items() if word == "failed"} == failed


def output_left_alone(output, x, w, eps):
    pass


def output_added_to(output, x, w, eps):
    output.add_(honest(x, w, eps))


def output_and_input_written(output, x, w, eps):
    out(output, x, w, eps)
    x.zero_()


def output_returned(output, x, w, eps):
    out(output, x, w, eps)
    return output


def last_column_left(output, x, w, eps):
    output[:, :-1] = honest(x, w, eps)[:, :-1]


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (output_left_alone, "nonfinite"),
        (output_added_to, "nonfinite"),
        (last_column_left, "nonfinite"),
        (output_and_input_written, "mutation"),
        (output_returned, "structure"),
    ],
)
def test_fault_of_the_out_form_fails(fault: Kernel, check: str) -> None:
    (case,) = cases("rms_norm_out", "--rows", "16", "--widths", "512", "--dtypes", "float16")
    prepared = case.prepare(plan_of("rms_norm_out", fault))
    verdict = prepared.validate(prepared.function)
    assert (verdict["status"], verdict["check"]) == ("failed", check), verdict["reason"]


# ---- the suites' own conduct ----------------------------------------------------------------


@pytest.mark.parametrize("operation", SUITES)
def test_default_matrix_has_the_documented_cases(operation: str) -> None:
    found = cases(operation)
    assert len(found) == 2 * 4 * 3
    assert found[0].case_id == f"{operation}/bfloat16/1x512/seed5309"
    assert found[-1].case_id == f"{operation}/float16/4096x6144/seed5309"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", SUITES)
def test_timed_rows_are_a_seeds_draw_of_many_values(operation: str, dtype: str) -> None:
    (case,) = cases(operation, "--rows", "128", "--widths", "512", "--dtypes", dtype)
    assert case.parameters["seed"] == 5309
    for name, rows in case.make(0).items():
        assert rows.equal(case.make(0)[name])
        if name != "weight":
            assert len(rows.unique()) > 1000, name
            assert bool((rows.amax(-1) > rows.amin(-1)).all()), name


def test_input_and_weight_are_the_same_data_in_every_suite() -> None:
    options = ("--rows", "2", "--widths", "8", "--dtypes", "float16")
    parser = argparse.ArgumentParser()
    rms_norm.SUITE.add_arguments(parser)
    plain = rms_norm.SUITE.cases(parser.parse_args(options))[0].make(0)
    for operation in SUITES:
        made = cases(operation, *options)[0].make(0)
        assert made["input"].equal(plain["input"])
        assert made["weight"].equal(plain["weight"])


@pytest.mark.parametrize("operation", SUITES)
def test_reset_restores_what_the_contract_mutates_byte_for_byte(operation: str) -> None:
    seen: list[tuple[torch.Tensor, ...]] = []
    held: list[tuple[torch.Tensor, ...]] = []

    def kernel(*arguments: Any) -> None:
        held[:] = [arguments[:-1]]
        seen.append(tuple(a.clone() for a in arguments[:-1]))
        for tensor in arguments[: 1 if operation == "rms_norm_out" else 2]:
            tensor.fill_(3.0)

    (case,) = cases(operation, "--rows", "2", "--widths", "8", "--dtypes", "float16")
    prepared = case.prepare(plan_of(operation, kernel))
    if operation == "fused_add_rms_norm":
        assert prepared.reset is None
        return
    assert prepared.reset is not None
    assert prepared.reset.every_call == (operation != "rms_norm_out")
    for _ in range(3):
        prepared.function()
        prepared.reset.function()
    for once in (*seen, *held):
        for tensor, first in zip(once, seen[0], strict=True):
            assert tensor.view(torch.int16).equal(first.view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rounded_sum_is_the_correctly_rounded_exact_sum(dtype: torch.dtype) -> None:
    """Checked with exact rational arithmetic: no value of the dtype is nearer."""
    from fractions import Fraction

    generator = torch.Generator().manual_seed(7)
    exponents = torch.randint(-12, 12, (2, 400), generator=generator)
    a, b = (torch.randn(2, 400, generator=generator) * 2.0**exponents).to(dtype)
    total = oracle.rounded_sum(a, b)
    kind = torch.int32 if dtype is torch.float32 else torch.int16
    below, above = ((total.view(kind) + s).view(dtype) for s in (-1, 1))
    for i in range(400):
        exact = Fraction(a[i].item()) + Fraction(b[i].item())
        mine = abs(Fraction(total[i].item()) - exact)
        for other in (below, above):
            if math.isfinite(other[i].item()):
                assert mine <= abs(Fraction(other[i].item()) - exact)
