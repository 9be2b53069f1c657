"""Ratios of medians and their intervals, on samples whose answer is known."""

from __future__ import annotations

import random

import pytest
from side_modules import load_bench

ratios = load_bench("peers.ratios")


def test_steady_samples_give_their_ratio_and_no_width() -> None:
    got = ratios.ratio([6.0] * 8, [2.0] * 5, enough=5)
    assert (got.middle, got.low, got.high) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [([], []), ([], [1.0] * 9), ([1.0] * 9, []), ([1.0] * 4, [1.0] * 9)],
)
def test_too_few_samples_give_no_ratio(numerator: list[float], denominator: list[float]) -> None:
    assert ratios.ratio(numerator, denominator, enough=5) is None


@pytest.mark.parametrize(
    ("samples", "enough", "expected"),
    [([], 0, None), ([], 3, None), ([1.0, 2.0], 3, None), ([4.0, 1.0, 2.0], 3, 2.0)],
)
def test_a_figure_needs_enough_samples(
    samples: list[float], enough: int, expected: float | None
) -> None:
    assert ratios.figure(samples, enough) == expected


def test_the_same_samples_give_the_same_interval() -> None:
    rng = random.Random(3)
    first = [rng.uniform(1, 2) for _ in range(20)]
    second = [rng.uniform(1, 2) for _ in range(20)]
    assert ratios.ratio(first, second, 5) == ratios.ratio(first, second, 5)


def test_one_wild_sample_moves_neither_figure_nor_interval_far() -> None:
    got = ratios.ratio([2.0] * 20 + [1000.0], [1.0] * 21, enough=5)
    assert (got.middle, got.low, got.high) == (2.0, 2.0, 2.0)


def test_the_interval_of_two_values_is_the_binomial_one() -> None:
    # A median of five draws is the rare value where three are: with chance 0.058 for one in five
    # values and 0.010 for one in seven of seven draws. The interval leaves out 0.025 at its end.
    inside = ratios.ratio([1.0] * 4 + [9.0], [1.0] * 5, enough=5)
    outside = ratios.ratio([1.0] * 6 + [9.0], [1.0] * 7, enough=5)
    assert (inside.low, inside.middle, inside.high) == (1.0, 1.0, 9.0)
    assert (outside.low, outside.middle, outside.high) == (1.0, 1.0, 1.0)


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says() -> None:
    rng = random.Random(11)
    held, width = 0, 0.0
    for seed in range(100):
        top = [3.0 * rng.lognormvariate(0.0, 0.1) for _ in range(25)]
        bottom = [rng.lognormvariate(0.0, 0.1) for _ in range(25)]
        got = ratios.ratio(top, bottom, 7, seed)
        held += got.low <= 3.0 <= got.high
        width += (got.high - got.low) / 100
    # 95 of 100 ratios, give or take three standard deviations of 2.2; for medians the interval is
    # known to be a little wide. Its width: a median of 25 has a standard deviation of 1.25 * 0.1 /
    # 5, the ratio of two 1.41 times that, and four of these around 3.0 make 0.42.
    assert held >= 88
    assert 0.3 < width < 0.6
