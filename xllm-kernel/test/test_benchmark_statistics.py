"""Statistics against known lists."""

from __future__ import annotations

import math

import pytest

from xllm_kernel.benchmark.statistics import median, nearest_rank, summarize


@pytest.mark.parametrize(
    ("values", "middle", "p90", "least", "deviation"),
    [
        ([7.0], 7.0, 7.0, 7.0, 0.0),
        ([3.0, 1.0], 2.0, 3.0, 1.0, 1.0),
        ([5.0, 1.0, 3.0], 3.0, 5.0, 1.0, 2.0),
        ([float(i) for i in range(1, 11)], 5.5, 9.0, 1.0, 2.5),
        ([float(i) for i in range(1, 12)], 6.0, 10.0, 1.0, 3.0),
        ([1.0] * 9 + [1000.0], 1.0, 1.0, 1.0, 0.0),
    ],
)
def test_summary_of_known_samples_is_exact(
    values: list[float], middle: float, p90: float, least: float, deviation: float
) -> None:
    result = summarize(values)
    assert result["median"] == middle
    assert result["p90"] == p90
    assert result["minimum"] == least
    assert result["median_absolute_deviation"] == deviation
    assert result["samples"] == values


def test_order_statistics_do_not_depend_on_the_order() -> None:
    assert median([9.0, 1.0, 5.0]) == median([5.0, 9.0, 1.0]) == 5.0
    assert nearest_rank([9.0, 1.0, 5.0], 0.2) == 1.0
    assert nearest_rank([9.0, 1.0, 5.0], 0.5) == 5.0
    assert nearest_rank([9.0, 1.0, 5.0], 1.0) == 9.0


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [math.inf], [-1.0]])
def test_summary_of_impossible_samples_raises(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="sample"):
        summarize(samples)


def test_summary_marks_a_figure_that_moves_around() -> None:
    assert not summarize([10.0, 10.5, 9.5])["unstable"]
    assert summarize([10.0, 12.0, 8.0])["unstable"]


def test_summary_of_many_samples_is_exact() -> None:
    result = summarize([float(i) for i in range(100_001, 0, -1)])
    assert (result["median"], result["p90"], result["minimum"]) == (50_001.0, 90_001.0, 1.0)
    assert result["median_absolute_deviation"] == 25_000.0


class VirtualClock:
    """Time passes only where somebody spends it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def spend(self, nanoseconds: int) -> None:
        self.now += nanoseconds
