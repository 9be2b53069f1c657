"""What suites say that a call must at least do; values computed by hand."""

from __future__ import annotations

import pytest
import torch
from test_numerics_norm_family import cases, plan_of
from test_numerics_rms_norm import cases as norm_cases
from test_numerics_rms_norm import plan_of as norm_plan

from xllm_kernel.numerics.bound import Arguments, Expectation, Recipe, bind_case
from xllm_kernel.numerics.memory import Form, Layout, place, touched_bytes
from xllm_kernel.numerics.rms_norm_case import norm_work
from xllm_kernel.numerics.suite import Work

# 3 rows of 8 elements, two bytes each: 48 bytes, and 16 of weight. Each element takes 4 operations,
# or 5 with an addition, and each row 4 more.
EXPECTED = {
    "rms_norm_out": Work(48 + 16, 48, 4 * 24 + 12),
    "fused_add_rms_norm": Work(48 + 48 + 16, 48 + 48, 5 * 24 + 12),
    "fused_add_rms_norm_inplace": Work(48 + 48 + 16, 48 + 48, 5 * 24 + 12, in_place=True),
}


@pytest.mark.parametrize("operation", EXPECTED)
def test_prepared_case_states_its_work(operation: str) -> None:
    found = [
        case.prepare(plan_of(operation, lambda *a: None)).work
        for case in cases(operation, "--rows", "3", "--widths", "8", "--dtype", "bfloat16")
        if case.shape == (3, 8)
    ]
    assert found
    assert set(found) == {EXPECTED[operation]}


def test_prepared_case_with_a_fresh_result_states_its_work() -> None:
    found = norm_cases("--rows", "3", "--widths", "8", "--dtype", "bfloat16")
    works = {case.prepare(norm_plan(lambda *a: None)).work for case in found}
    assert works == {Work(48 + 16, 48, 4 * 24 + 12)}


@pytest.mark.parametrize(
    ("layout", "read_bytes"),
    [
        (Layout(), 48),
        (Layout(gap=5), 48),
        (Layout(form=Form.COLUMNS), 48),
        (Layout(form=Form.REPEATED), 16),
    ],
)
def test_touched_bytes_each_place_once_and_no_gaps(layout: Layout, read_bytes: int) -> None:
    tensor = place(torch.ones(3, 8, dtype=torch.bfloat16), "cpu", layout)
    assert touched_bytes(tensor) == read_bytes


@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (0,)])
def test_touched_bytes_of_nothing_none(shape: tuple[int, ...]) -> None:
    assert touched_bytes(torch.ones(shape)) == 0


def test_norm_work_dtypes_are_the_tensors_own() -> None:
    arguments = {"input": torch.ones(3, 8, dtype=torch.bfloat16), "weight": torch.ones(8)}
    assert norm_work(arguments, ("input", "weight"), 48).read_bytes == 48 + 32


def test_norm_work_without_rows_nothing() -> None:
    arguments = {"input": torch.ones(0, 8), "weight": torch.ones(8)}
    assert norm_work(arguments, ("input", "weight"), 0) == Work(0, 0, 0)


def test_bound_case_asks_of_the_arguments_as_they_lie() -> None:
    """The dense tensors that a recipe makes are not what a call reads."""

    def work(arguments: Arguments) -> Work:
        return Work(touched_bytes(arguments["x"]), 0, 0)

    def expect(arguments: Arguments, device: torch.device) -> Expectation:
        return Expectation(None)

    def make(number: int) -> Arguments:
        return {"x": torch.ones(4, 4)}

    plan = plan_of("rms_norm_out", lambda x: None)
    layouts = {"x": Layout(form=Form.REPEATED)}
    assert bind_case(plan, Recipe(make, expect, layouts, work=work)).work == Work(16, 0, 0)
    assert bind_case(plan, Recipe(make, expect, layouts)).work is None
