"""The roofline's arithmetic: units, the ceiling that binds, figures that cannot be."""

from __future__ import annotations

import math

import pytest

from xllm_kernel.benchmark.ceilings.roofline import TOLERANCE, roofline
from xllm_kernel.numerics.suite import Work

KINDS = {"copy": "memory", "streaming copy": "memory", "fma": "compute", "dot": "compute"}


def test_roofline_a_billion_bytes_in_a_millisecond_1000_gb_per_s() -> None:
    found = roofline(Work(600_000_000, 400_000_000, 0), 1000.0, {"copy": 500.0}, KINDS)
    assert found is not None
    assert (found["gb_per_s"], found["gflop_per_s"]) == (1000.0, 0.0)


def test_roofline_two_billion_operations_in_a_millisecond_2_tflops() -> None:
    found = roofline(Work(0, 0, 2_000_000_000), 1000.0, {"fma": 500.0}, KINDS)
    assert found is not None
    assert (found["gb_per_s"], found["gflop_per_s"]) == (0.0, 2000.0)


@pytest.mark.parametrize(
    ("ceilings", "binding", "share"),
    [
        ({"copy": 60.0, "streaming copy": 50.0, "fma": 10.0}, "streaming copy", 0.5),
        ({"streaming copy": 60.0, "copy": 50.0, "fma": 10.0}, "copy", 0.5),
        ({"copy": 20.0, "streaming copy": 30.0, "fma": 25.0}, "fma", 0.25),
        ({"copy": 20.0, "fma": 80.0, "dot": 40.0}, "dot", 0.4),
        ({"fma": 75.0}, "fma", 0.75),
        ({"copy": 75.0}, "copy", 0.75),
    ],
)
def test_roofline_binding_is_the_slower_of_the_quickest(
    ceilings: dict[str, float], binding: str, share: float
) -> None:
    found = roofline(Work(1, 1, 1), 100.0, ceilings, KINDS)
    assert found is not None
    assert (found["binding"], found["share"]) == (binding, share)
    assert found["ceilings_us"] == ceilings


@pytest.mark.parametrize(
    ("median", "impossible"),
    [
        (100.0, False),
        (99.0, False),
        (100.0 / (1 + TOLERANCE) + 0.01, False),
        (100.0 / (1 + TOLERANCE) - 0.01, True),
        (1.0, True),
    ],
)
def test_roofline_figure_above_its_ceiling_by_more_than_noise_impossible(
    median: float, impossible: bool
) -> None:
    found = roofline(Work(1, 1, 1), median, {"copy": 100.0, "streaming copy": 120.0}, KINDS)
    assert found is not None
    assert found["impossible"] is impossible


def test_roofline_quicker_than_another_kind_of_pass_possible() -> None:
    """Only the ceiling that binds can be beaten: the quicker kind is no limit."""
    found = roofline(Work(1, 1, 1), 50.0, {"copy": 50.0, "fma": 1.0}, KINDS)
    assert found is not None
    assert not found["impossible"]


def test_roofline_without_ceilings_none() -> None:
    assert roofline(Work(1, 1, 1), 1.0, {}, KINDS) is None


@pytest.mark.parametrize("time", [0.0, -1.0, math.nan])
def test_roofline_time_that_is_none_refused(time: float) -> None:
    with pytest.raises(ValueError, match="the median must be above 0 us"):
        roofline(Work(1, 1, 1), time, {"copy": 1.0}, KINDS)
    with pytest.raises(ValueError, match="copy must be above 0 us"):
        roofline(Work(1, 1, 1), 1.0, {"copy": time}, KINDS)


@pytest.mark.parametrize("field", ["read_bytes", "written_bytes", "operations"])
def test_work_below_zero_refused(field: str) -> None:
    with pytest.raises(ValueError, match=rf"Work\.{field} must be at least 0, got -1"):
        Work(**{"read_bytes": 0, "written_bytes": 0, "operations": 0, field: -1})


def test_work_of_unknown_arithmetic_refused() -> None:
    with pytest.raises(ValueError, match="must be 'fma' or 'dot', got 'int8'"):
        Work(1, 1, 1, arithmetic="int8")  # type: ignore[arg-type]
