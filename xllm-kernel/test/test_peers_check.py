"""The comparison's check of outputs: wrong ones of every kind are told from inaccurate ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import need
from side_modules import load_bench

need("torch")
torch = pytest.importorskip("torch")

check = load_bench("peers.check")
rows = load_bench("peers.rows")
operation = load_bench("peers.operation")

X = torch.tensor([[1.0, -2.0, 0.0], [0.5, 3.0, 8.0]])
STEP = torch.finfo(torch.float32).eps


def verdict(*results: torch.Tensor) -> dict:
    return check.judge(results, X, (2.0 * X.double(),))


def changed(place: tuple[int, int], value: float) -> torch.Tensor:
    result = 2.0 * X
    result[place] = value
    return result


def test_a_right_result_passes_and_says_how_far_off_it_is() -> None:
    exact = verdict(2.0 * X)
    assert (exact["status"], exact["max_error_steps"], exact["rows"]) == ("passed", 0.0, "all")
    assert verdict(changed((0, 0), 2.0 * (1 + STEP)))["max_error_steps"] == 1.0


@pytest.mark.parametrize(("steps", "status"), [(2, "passed"), (3, "failed")])
def test_two_steps_pass_and_three_fail(steps: int, status: str) -> None:
    assert verdict(changed((0, 0), 2.0 * (1 + steps * STEP)))["status"] == status


@pytest.mark.parametrize(("units", "status"), [(1, "passed"), (2, "passed"), (3, "failed")])
def test_below_the_smallest_normal_number_errors_are_of_its_steps(units: int, status: str) -> None:
    """A rounding there is off by half of 2^-24 in float16, whatever that is of the value."""
    exact = torch.tensor([[3 * 2.0**-24, 1.0]], dtype=torch.float64)
    got = torch.tensor([[(3 + units) * 2.0**-24, 1.0]], dtype=torch.float16)
    found = check.judge((got,), got, (exact,))
    assert (found["status"], found["max_error_steps"]) == (status, float(units))


@pytest.mark.parametrize(
    ("result", "seen"),
    [
        (torch.full_like(X, torch.nan), "inf"),
        (2.0001 * X, "steps"),
        (torch.cat([2.0 * X[:1], X[1:]]), "steps"),
        (changed((0, 2), 1e-30), "inf"),
        (changed((1, 2), torch.inf), "inf"),
        (changed((0, 2), torch.nan), "inf"),
    ],
    ids=["nothing written", "inaccurate", "half written", "not zero", "infinite", "NaN for zero"],
)
def test_a_wrong_result_fails(result: torch.Tensor, seen: str) -> None:
    found = verdict(result)
    assert found["status"] == "failed"
    assert found["reason"].startswith("wrong: ")
    assert seen in found["reason"]


@pytest.mark.parametrize(
    ("results", "seen"),
    [
        ((), "must give 1 outputs, gave 0"),
        ((2.0 * X, X), "must give 1 outputs, gave 2"),
        ((2.0 * X[:1],), "shape must be [2, 3], got [1, 3]"),
        ((2.0 * X.double(),), "dtype must be torch.float32, got torch.float64"),
    ],
)
def test_outputs_of_another_structure_fail(results: tuple, seen: str) -> None:
    assert verdict(*results) == {"status": "failed", "reason": f"wrong: {seen}"}


def large(change: Callable[[torch.Tensor], object]) -> dict:
    """Judge 4100 rows that repeat a block of 67, after a change."""
    block = torch.arange(1.0, 68.0).repeat_interleave(512).view(67, 512)
    result = block.repeat(62, 1)[:4100].clone()
    change(result)
    return check.judge((result,), result, (block.double(),))


def test_of_a_large_output_the_first_block_the_last_and_every_16th_row_are_judged() -> None:
    assert large(lambda result: None)["status"] == "passed"
    assert large(lambda result: None)["rows"] == "320: the first 67, the last, every 16th"
    for row in (0, 16, 66, 4096, 4099):
        assert large(lambda result, row=row: result[row].zero_())["status"] == "failed"
    assert large(lambda result: result[67].zero_())["status"] == "passed"


@pytest.mark.parametrize(
    ("count", "width"), [(10, 1 << 18), (200, 6144), (512, 6144), (4096, 6144)]
)
def test_every_row_of_the_block_is_judged_in_every_large_output(count: int, width: int) -> None:
    seen = {row % rows.BLOCK_ROWS for row in rows.judged(count, width)}
    assert seen == set(range(min(count, rows.BLOCK_ROWS)))


def test_a_large_output_whose_rows_lie_elsewhere_fails() -> None:
    assert large(lambda result: result.copy_(result.roll(1, 0)))["status"] == "failed"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_have_many_values_and_none_is_constant(dtype: str) -> None:
    made = rows.Repeated(operation.Dimensions(dtype, 300, 512), 0).tensor
    assert made.shape == (300, 512)
    assert made.dtype == getattr(torch, dtype)
    assert len(made.unique()) > 1000
    assert all(len(row.unique()) > 100 for row in made)
    assert made.abs().min() >= 2.0**-4
    assert made.abs().max() <= 4.0


def test_rows_repeat_a_block_to_the_last_row() -> None:
    made = rows.Repeated(operation.Dimensions("bfloat16", 150, 64), 0)
    assert all(torch.equal(made.tensor[row], made.block[row % 67]) for row in range(150))


def test_rows_that_were_written_to_come_back() -> None:
    made = rows.Repeated(operation.Dimensions("bfloat16", 150, 64), 0)
    before = made.tensor.clone()
    made.tensor.zero_()
    made.restore()
    assert torch.equal(made.tensor, before)


def test_other_data_are_others_in_every_row_and_0_brings_the_first_back() -> None:
    made = rows.Repeated(operation.Dimensions("bfloat16", 150, 64), 0)
    before = made.tensor.clone()
    address = made.tensor.data_ptr()
    made.renew(1)
    assert not (made.tensor == before).all(1).any()
    made.renew(0)
    assert torch.equal(made.tensor, before)
    assert made.tensor.data_ptr() == address


def test_streams_differ_and_one_is_the_same_everywhere() -> None:
    sizes = operation.Dimensions("float16", 5, 64)
    first, again, other = (rows.Repeated(sizes, stream).tensor for stream in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("shape", [(1, 512), (3, 33), (300, 6144)])
def test_tensors_begin_a_page_for_everybody(shape: tuple[int, int]) -> None:
    made = rows.page_aligned(operation.Dimensions("bfloat16", *shape))
    assert made.data_ptr() % 4096 == 0
    assert made.is_contiguous()
    assert made.shape == shape
