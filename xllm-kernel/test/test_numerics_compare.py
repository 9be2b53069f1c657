"""The verdict: every check fails what it must, in order, and names it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from xllm_kernel.numerics.compare import CHECKS, Expected, judge
from xllm_kernel.numerics.storage import ArgumentGuard
from xllm_kernel.numerics.tolerance import Earned

T, H = 6, 128
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
EARNED = Earned(factor=1.5, worst=0.5, rms=0.29, draws=1)


def _reference(rows: int = T) -> torch.Tensor:
    return torch.randn(rows, H, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def _expected(dtype: torch.dtype = torch.float32, **changes: Any) -> Expected:
    facts: dict[str, Any] = {
        "reference": _reference(),
        "dtype": dtype,
        "device": torch.device("cpu"),
        "earned": EARNED,
        "strides": (H, 1),
    }
    return Expected(**{**facts, **changes})


def _judge(result: object, expected: object | None = None) -> dict[str, Any]:
    want = _expected() if expected is None else expected
    return judge(lambda: result, want, ArgumentGuard({}))


def _good() -> torch.Tensor:
    return _reference().float()


def test_judge_the_reference_rounded_once_passes_every_check() -> None:
    verdict = _judge(_good())
    assert verdict["status"] == "passed"
    assert verdict["checks"] == dict.fromkeys(CHECKS, "passed")
    assert verdict["outputs"][0]["max_error_ulp"] <= 0.5


@pytest.mark.parametrize(
    ("result", "check"),
    [
        (None, "structure"),
        (1.0, "structure"),
        ((_good(),), "structure"),
        ({"output": _good()}, "structure"),
        (_good().to_sparse(), "structure"),
        (torch.nn.Parameter(_good()), "structure"),
        (_good()[:1], "shape"),
        (_good()[:0], "shape"),
        (_good()[:, :, None], "shape"),
        (_good()[0, 0], "shape"),
        (_good().bfloat16(), "dtype"),
        (_good().double(), "dtype"),
        (_good().t().contiguous().t(), "layout"),
        (_good().to("meta"), "layout"),
    ],
)
def test_judge_wrong_form_fails_before_values_are_compared(result: object, check: str) -> None:
    verdict = _judge(result)
    assert (verdict["status"], verdict["check"]) == ("failed", check)
    assert verdict["checks"]["values"] == "not_run"
    assert verdict["outputs"] == []


@pytest.mark.parametrize(
    ("result", "path"),
    [
        ((_good(), _good()), "output"),
        ({"a": _good()}, "output"),
        ({"a": _good(), "b": (_good(), _good()), "c": _good()}, "output"),
        ({"a": _good(), "b": [_good(), _good()]}, "output['b']"),
        ({"a": _good(), "b": (_good(),)}, "output['b']"),
        ({"a": _good(), "b": (_good(), None)}, "output['b'][1]"),
    ],
)
def test_judge_wrong_nesting_fails_and_names_the_place(result: object, path: str) -> None:
    expected = {"a": _expected(), "b": (_expected(), _expected())}
    assert _judge({"b": (_good(), _good()), "a": _good()}, expected)["status"] == "passed"
    verdict = _judge(result, expected)
    assert verdict["check"] == "structure"
    assert verdict["reason"].startswith(f"{path} must be")


def test_judge_swapped_outputs_fail() -> None:
    other = _expected(reference=_reference().flip(0))
    verdict = _judge({"a": other.reference.float(), "b": _good()}, {"a": _expected(), "b": other})
    assert verdict["check"] == "values"


def _zero_a_row(good: torch.Tensor) -> None:
    good[4] = 0.0


def _two_ulp(good: torch.Tensor) -> None:
    good.view(torch.int32)[3, 17] += 2


@pytest.mark.parametrize(
    ("damage", "index"),
    [
        (_zero_a_row, [4]),
        (_two_ulp, [3, 17]),
        (lambda y: y.mul_(1.02), []),
        (lambda y: y.fill_(1.0), []),
        (lambda y: y.copy_(y.roll(1, 0).clone()), []),
        (lambda y: y.copy_(y.roll(1, 1).clone()), []),
    ],
)
def test_judge_local_or_scale_damage_fails(
    damage: Callable[[torch.Tensor], object], index: list[int]
) -> None:
    result = _good()
    damage(result)
    verdict = _judge(result)
    assert (verdict["status"], verdict["check"]) == ("failed", "values")
    worst = verdict["outputs"][0]["worst"]
    assert worst["index"][: len(index)] == index
    assert worst["actual"] == float(result[tuple(worst["index"])])
    assert worst["reference"] == float(_reference()[tuple(worst["index"])])
    assert str(worst["index"]) in verdict["reason"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_judge_one_row_of_4096_zeroed_fails(dtype: torch.dtype) -> None:
    reference = _reference(4096)
    result = reference.to(dtype)
    result[4095] = 0.0
    verdict = _judge(result, _expected(dtype, reference=reference))
    assert verdict["outputs"][0]["worst"]["index"][0] == 4095
    assert verdict["status"] == "failed"


@pytest.mark.parametrize(
    ("dtype", "factor"), [(torch.float32, 1.02), (torch.float16, 1.02), (torch.bfloat16, 1.05)]
)
def test_judge_what_correlates_perfectly_fails(dtype: torch.dtype, factor: float) -> None:
    want = _expected(dtype)
    for wrong in (want.reference * factor, want.reference.mean().expand(T, H)):
        assert _judge(wrong.to(dtype).contiguous(), want)["check"] == "values"


@pytest.mark.parametrize("dtype", DTYPES)
def test_judge_at_every_magnitude_one_rounding_passes_and_three_ulp_fail(
    dtype: torch.dtype,
) -> None:
    kind = torch.int32 if dtype is torch.float32 else torch.int16
    for power in range(-20, 21):
        reference = _reference() * 2.0**power
        result = reference.to(dtype)
        if not bool(result.isfinite().all()):
            assert (dtype, power > 10) == (torch.float16, True)
            continue
        want = _expected(dtype, reference=reference)
        assert _judge(result, want)["status"] == "passed", power
        result.view(kind)[2, 9] += 3
        assert _judge(result, want)["check"] == "values", power


def test_judge_grants_no_quota_of_wrong_elements() -> None:
    reference = _reference(60)
    assert reference.numel() == 7680
    for value in (math.nan, 0.0):
        result = reference.float()
        result[59, 127] = value
        assert _judge(result, _expected(reference=reference))["status"] == "failed"


@pytest.mark.parametrize("dtype", DTYPES)
def test_judge_rounding_passes_and_truncation_fails(dtype: torch.dtype) -> None:
    reference = torch.rand(64, 512, dtype=torch.float64) + 1.0
    kind = torch.int32 if dtype == torch.float32 else torch.int16
    rounded = reference.to(dtype)
    truncated = torch.where(
        rounded.double() > reference, (rounded.view(kind) - 1).view(dtype), rounded
    )
    want = _expected(dtype, reference=reference, strides=None)
    assert _judge(rounded, want)["status"] == "passed"
    assert _judge(truncated, want)["check"] == "values"


def test_judge_error_everywhere_within_the_worst_limit_fails_by_its_root_mean_square() -> None:
    earned = Earned(factor=1.5, worst=3.0, rms=0.5, draws=1)
    result = _good()
    result.view(torch.int32).add_(2)
    verdict = _judge(result, _expected(earned=earned))
    assert verdict["check"] == "values"
    assert "root mean square" in verdict["reason"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_judge_one_nonfinite_value_among_finite_ones_fails(value: float) -> None:
    result = _good()
    result[2, 5] = value
    verdict = _judge(result)
    assert verdict["check"] == "nonfinite"
    assert verdict["reason"].startswith("output[2, 5] must be")
    assert verdict["checks"]["values"] == "not_run"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_judge_a_dropped_or_changed_nonfinite_value_fails(value: float) -> None:
    reference = _reference()
    reference[1, 1] = value
    want = _expected(reference=reference)
    assert _judge(reference.float(), want)["status"] == "passed"
    for other in (0.0, math.nan, math.inf, -math.inf):
        if other == value or (math.isnan(other) and math.isnan(value)):
            continue
        result = reference.float()
        result[1, 1] = other
        assert _judge(result, want)["check"] == "nonfinite"


@pytest.mark.parametrize(
    ("exact", "result", "check"),
    [
        (65519.9, 65504.0, None),
        (65519.9, math.inf, None),
        (131040.0, math.inf, None),
        (131040.0, 65504.0, "values"),
        (-131040.0, math.inf, "values"),
        (65000.0, math.inf, "nonfinite"),
    ],
)
def test_judge_overflow_is_a_rounding_only_at_the_threshold(
    exact: float, result: float, check: str | None
) -> None:
    reference = _reference()
    reference[0, 0] = exact
    actual = reference.half()
    actual[0, 0] = result
    verdict = _judge(actual, _expected(torch.float16, reference=reference))
    assert verdict["check"] == check


def test_judge_undefined_rows_do_not_count_but_their_neighbours_do() -> None:
    checked = torch.ones(T, 1, dtype=torch.bool)
    checked[2] = False
    want = _expected(checked=checked)
    result = _good()
    result[2] = math.nan
    verdict = _judge(result, want)
    assert verdict["status"] == "passed"
    assert verdict["outputs"][0]["checked_elements"] == (T - 1) * H
    result[3, 0] = math.nan
    assert _judge(result, want)["check"] == "nonfinite"


def _of_inference(tensor: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return tensor.clone()


@pytest.mark.parametrize(
    ("dress", "what"),
    [
        (lambda t: torch._neg_view(-t), "a pending negation"),
        (lambda t: t.requires_grad_(True), "requires_grad"),
        (_of_inference, "the mark of inference mode"),
    ],
)
def test_judge_a_result_that_is_more_than_its_memory_fails(
    dress: Callable[[torch.Tensor], torch.Tensor], what: str
) -> None:
    verdict = _judge(dress(_good()))
    assert verdict["check"] == "structure"
    assert verdict["reason"] == f"output must be a plain tensor, got one with {what}"


def test_judge_names_the_least_slice_of_what_is_too_far_off() -> None:
    result = _good()
    result[2, 1] += 1.0
    result[4, 5] = 7.0
    verdict = _judge(result)
    assert verdict["outputs"][0]["failing"] == {"elements": 2, "slice": "2:5, 1:6"}
    assert verdict["reason"].endswith("(2 such elements, all in [2:5, 1:6])")
    assert "failing" not in _judge(_good())["outputs"][0]


def test_judge_a_case_without_a_defined_element_is_vacuous() -> None:
    want = _expected(checked=torch.zeros(T, 1, dtype=torch.bool))
    verdict = _judge(_good(), want)
    assert verdict["status"] == "failed"
    assert "vacuous" in verdict["reason"]


def test_judge_disagreeing_oracles_judge_nobody() -> None:
    verdict = _judge(_good(), _expected(earned=Earned(1.5, worst=1000.0, rms=500.0, draws=1)))
    assert verdict["status"] == "failed"
    assert "one of the two is wrong" in verdict["reason"]


def test_judge_empty_output_of_the_right_form_passes() -> None:
    want = _expected(reference=torch.empty(0, H, dtype=torch.float64))
    assert _judge(torch.empty(0, H), want)["status"] == "passed"


def _with_argument(function: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
    argument = _good()
    guard = ArgumentGuard({"values": argument})
    return judge(lambda: function(argument), _expected(), guard)


def test_judge_a_mutated_argument_fails_though_the_result_is_right() -> None:
    def mutate(argument: torch.Tensor) -> torch.Tensor:
        result = argument.clone()
        argument[5, 3] += 1
        return result

    verdict = _with_argument(mutate)
    assert verdict["check"] == "mutation"
    assert verdict["checks"]["values"] == "passed"
    assert "argument 'values' was written to" in verdict["reason"]


def test_guard_sees_a_write_into_the_gap_between_strided_rows() -> None:
    storage = torch.zeros(4, 16)
    guard = ArgumentGuard({"view": storage[:, :8]})
    assert guard.mutation() is None
    storage[1, 12] = -0.0
    assert guard.mutation() is None
    assert "argument 'view'" in str(guard.stray())
    assert "in a gap between rows" in str(guard.stray())


def test_guard_lets_declared_arguments_be_written() -> None:
    argument = torch.zeros(4)
    guard = ArgumentGuard({"buffer": argument}, mutates=("buffer",))
    argument += 1
    assert guard.mutation() is None


@pytest.mark.parametrize("take", [lambda a: a, lambda a: a[:], lambda a: a.view(T, H)])
def test_judge_an_output_that_is_an_argument_fails(
    take: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    verdict = _with_argument(take)
    assert verdict["check"] == "aliasing"
    assert "shares storage with argument 'values'" in verdict["reason"]
    assert all(_with_argument(take)["check"] == "aliasing" for _ in range(100))


def test_judge_outputs_in_one_storage_fail() -> None:
    both = torch.stack([_good(), _good()])
    verdict = _judge((both[0], both[1]), (_expected(), _expected()))
    assert verdict["check"] == "aliasing"
    assert verdict["reason"] == "output[1] shares storage with output[0]"


def test_judge_calls_the_function_exactly_once() -> None:
    calls = []
    judge(lambda: calls.append(1) or _good(), _expected(), ArgumentGuard({}))
    assert calls == [1]
