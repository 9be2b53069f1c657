"""ULP, error summaries and earned tolerances, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from xllm_kernel.numerics.tolerance import Earned, ErrorSummary, earn, summarize
from xllm_kernel.numerics.ulp import FORMATS, format_of, spacing, ulp_error

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def _neighbour(value: torch.Tensor) -> torch.Tensor:
    """Return the next larger value of the same dtype."""
    kind = torch.int32 if value.dtype == torch.float32 else torch.int16
    return (value.view(kind) + 1).view(value.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spacing_is_the_distance_to_the_next_value(dtype: torch.dtype) -> None:
    low, high = FORMATS[str(dtype)[6:]].smallest_exponent, FORMATS[str(dtype)[6:]].overflow_exponent
    powers = torch.tensor([2.0**e for e in range(low, high)], dtype=torch.float64)
    for factor in (1.0, 1.25, 1.5):
        values = (powers * factor).to(dtype)
        gap = _neighbour(values).double() - values.double()
        finite = gap.isfinite() & (values > 0)
        assert spacing(values.double(), format_of(dtype))[finite].equal(gap[finite])


@pytest.mark.parametrize("dtype", DTYPES)
def test_largest_is_the_formats_largest_finite_value(dtype: torch.dtype) -> None:
    assert format_of(dtype).largest == torch.finfo(dtype).max


def test_format_of_an_integer_raises() -> None:
    with pytest.raises(TypeError, match="got int64"):
        format_of(torch.int64)


def test_ulp_error_of_zero_reference_counts_smallest_subnormals() -> None:
    actual, zero = torch.tensor([2.0**-24]).double(), torch.zeros(1).double()
    assert ulp_error(actual, zero, 0.0, FORMATS["float16"]).item() == 1.0
    assert ulp_error(actual, zero, 1.0, FORMATS["float16"]).item() == 2.0**-14


def test_ulp_error_grades_overflow_like_any_rounding() -> None:
    half = FORMATS["float16"]
    reference = torch.tensor([65519.0, 65521.0, 1e6, -1e6, 65000.0]).double()
    actual = torch.tensor([math.inf, 65504.0, math.inf, -math.inf, math.inf]).double()
    errors = ulp_error(actual, reference, 0.0, half)
    assert errors.tolist() == [17 / 32, 17 / 32, 0.0, 0.0, 536 / 32]


def test_summary_takes_nan_where_a_number_belongs_as_infinitely_wrong() -> None:
    summary = ErrorSummary()
    summary.add(torch.tensor([0.5, 0.25]).double(), 0)
    summary.add(torch.tensor([0.0, math.nan]).double(), 2)
    assert (summary.worst, summary.index) == (math.inf, 3)


def test_summary_of_chunks_finds_the_worst_element_and_the_exact_mean() -> None:
    reference = torch.ones(300, 999, dtype=torch.float64)
    actual = torch.ones(300, 999)
    actual[217, 998] += 3 * 2.0**-23
    summary = summarize(actual, reference, 0.0)
    assert summary.worst == 3.0
    assert summary.index == 217 * 999 + 998
    assert summary.count == 300 * 999
    assert summary.rms == math.sqrt(9 / (300 * 999))


def test_summary_leaves_undefined_elements_out() -> None:
    reference = torch.ones(4, 8, dtype=torch.float64)
    actual = torch.ones(4, 8)
    actual[2] = math.nan
    mask = torch.tensor([[True], [True], [False], [True]])
    summary = summarize(actual, reference, 0.0, mask)
    assert (summary.worst, summary.count) == (0.0, 24)


@pytest.mark.parametrize("shape", [(), (0,), (0, 7), (7, 0), (2, 3, 5)])
def test_summary_of_any_shape_counts_its_elements(shape: tuple[int, ...]) -> None:
    values = torch.ones(shape)
    assert summarize(values, values.double(), 0.0).count == values.numel()


def test_earned_never_falls_below_one_rounding() -> None:
    earned = earn(1.5, [ErrorSummary(worst=0.1, index=0, count=1, sum_of_squares=0.01)])
    assert (earned.limit, earned.rms_limit) == (0.75, 0.375)


def test_earned_takes_the_worst_draw() -> None:
    own = ErrorSummary(worst=0.6, index=0, count=2, sum_of_squares=0.5)
    redrawn = torch.tensor([[0.0, 2.0], [1.5, 1.5]]).double()
    earned = earn(1.5, [own], redrawn)
    assert (earned.worst, earned.draws) == (2.0, 3)
    assert earned.rms == pytest.approx(1.5)


@pytest.mark.parametrize(("worst", "good"), [(0.5, True), (64.0, True), (65.0, False)])
def test_earned_is_trustworthy_only_near_the_reference(worst: float, good: bool) -> None:
    assert Earned(1.5, worst, 0.3, 1).trustworthy is good
    assert not Earned(1.5, math.nan, 0.3, 1).trustworthy
