"""Statistics against known lists, and the sampling rule under a virtual clock."""

from __future__ import annotations

import itertools
import math

import pytest

from xllm_kernel.benchmark.sampling import Sampling
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


class VirtualClock:
    """Time passes only where somebody spends it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def spend(self, nanoseconds: int) -> None:
        self.now += nanoseconds


def _measure(clock: VirtualClock, call_ns: int):
    def measure(count: int) -> dict[str, float]:
        clock.spend(count * call_ns)
        return {"wall_us": call_ns / 1e3}

    return measure


@pytest.mark.parametrize("call_ns", [100, 1_000, 999_999, 1_000_000, 50_000_000])
def test_calls_a_sample_last_as_long_as_asked(call_ns: int) -> None:
    clock = VirtualClock()
    count = Sampling().calls(_measure(clock, call_ns), clock)
    assert count * call_ns >= 1_000_000
    assert count == 1 or count * call_ns <= 2_500_000


def test_calls_a_sample_end_even_where_the_clock_stands() -> None:
    assert Sampling().calls(lambda count: {"wall_us": 0.0}, VirtualClock()) >= 1 << 20


@pytest.mark.parametrize("interrupted", [{0}, {0, 1}, {1, 2}, {0, 2}])
def test_interrupted_calls_do_not_pass_for_slow_ones(interrupted: set[int]) -> None:
    clock = VirtualClock()
    honest, calls = _measure(clock, 1_000), itertools.count()

    def measure(count: int) -> dict[str, float]:
        if next(calls) in interrupted:
            clock.spend(70_000_000)
        return honest(count)

    assert Sampling().calls(measure, clock) >= 1000


def test_given_counts_are_exact() -> None:
    clock = VirtualClock()
    rule = Sampling(iterations=7, repeats=3)
    counts = []

    def measure(count: int) -> dict[str, float]:
        counts.append(count)
        clock.spend(10**12)
        return {"wall_us": 1.0, "other_us": 2.0}

    assert rule.calls(measure, clock) == 7
    assert counts == []
    assert rule.take(measure, 7, clock) == {"wall_us": [1.0] * 3, "other_us": [2.0] * 3}
    assert counts == [7, 7, 7]


@pytest.mark.parametrize(
    ("sample_ns", "taken"), [(1_000_000, 51), (10_000_000, 25), (100_000_000, 5), (10**10, 5)]
)
def test_samples_stop_on_the_budget_within_bounds(sample_ns: int, taken: int) -> None:
    clock = VirtualClock()
    samples = Sampling().take(_measure(clock, sample_ns), 1, clock)
    assert len(samples["wall_us"]) == taken
