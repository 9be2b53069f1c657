"""Ratios and their intervals, on samples whose answer is known or worked out another way."""

from __future__ import annotations

import math
import random
from math import comb
from statistics import median as independent_median

import pytest

from xllm_kernel.benchmark.statistics import Ratio, paired, unpaired
from xllm_kernel.benchmark.statistics.ratios import sign_interval, worth


def lognormal(count: int, rng: random.Random, sigma: float = 0.1) -> list[float]:
    return [rng.lognormvariate(0.0, sigma) for _ in range(count)]


def lasting(count: int, rng: random.Random, keep: float) -> list[float]:
    """Noise of which each value keeps a share of the one before."""
    at, taken = rng.gauss(0.0, 0.1), []
    for _ in range(count):
        at = keep * at + math.sqrt(1.0 - keep * keep) * rng.gauss(0.0, 0.1)
        taken.append(math.exp(at))
    return taken


def test_paired_steady_ratio_cancels_what_rounds_share() -> None:
    shared = [1.0, 7.0, 2.0, 100.0, 3.0, 5.0, 4.0]
    got = paired([3.0 * s for s in shared], shared)
    assert (got.middle, got.low, got.high) == (3.0, 3.0, 3.0)


def test_unpaired_steady_samples_give_their_ratio_and_no_width() -> None:
    got = unpaired([6.0] * 8, [2.0] * 6)
    assert (got.middle, got.low, got.high) == (3.0, 3.0, 3.0)


def test_middle_of_an_even_count_is_the_mean_of_the_two_in_the_middle() -> None:
    values = [1.0, 9.0, 2.0, 4.0, 8.0, 3.0, 7.0, 10.0]
    assert paired(values, [1.0] * 8).middle == 5.5
    assert unpaired(values, [2.0] * 6).middle == 2.75


def test_one_round_alone_is_uncertain_by_a_factor_of_ten() -> None:
    for got in (paired([6.0], [2.0]), unpaired([6.0], [2.0] * 50), unpaired([6.0] * 50, [2.0])):
        assert got.middle == 3.0
        assert (got.low, got.high) == pytest.approx((0.3, 30.0))


def test_two_rounds_give_students_interval_of_one_degree() -> None:
    got = paired([1.01, 1.0 / 1.01], [1.0, 1.0])
    # Logarithms +-l deviate by sqrt(2) * l, and their mean by l; a median may by 1.2 times that.
    half = 12.706 * 1.2 * math.log(1.01)
    assert (math.log(got.low), math.log(got.high)) == pytest.approx((-half, half), rel=0.001)


@pytest.mark.parametrize("form", [paired, unpaired])
@pytest.mark.parametrize(
    ("numerator", "denominator", "seen"),
    [
        ([], [], "none"),
        ([0.0], [1.0], "0.0"),
        ([1.0], [-1.0], "-1.0"),
        ([math.nan], [1.0], "nan"),
        ([1.0], [math.inf], "inf"),
    ],
)
def test_a_ratio_of_impossible_times_raises(form, numerator, denominator, seen) -> None:
    with pytest.raises(ValueError, match=f"got {seen}"):
        form(numerator, denominator)


def test_paired_of_unequal_counts_raises() -> None:
    with pytest.raises(ValueError, match="got 2 and 3"):
        paired([1.0] * 2, [1.0] * 3)


@pytest.mark.parametrize("form", [paired, unpaired])
def test_the_same_samples_give_the_same_interval(form) -> None:
    rng = random.Random(3)
    first, second = lognormal(20, rng), lognormal(20, rng)
    assert form(first, second, 5) == form(first, second, 5)


@pytest.mark.parametrize("form", [paired, unpaired])
def test_one_wild_sample_moves_neither_figure_nor_interval(form) -> None:
    assert form([2.0] * 20 + [1000.0], [1.0] * 21) == Ratio(2.0, 2.0, 2.0)


def naive(first: list[float], second: list[float] | None, rng: random.Random) -> list[float]:
    """Draw whole samples again; median of each, or the ratio of two, in ascending order."""

    def redrawn(values: list[float]) -> float:
        return independent_median(rng.choices(values, k=len(values)))

    below = [1.0] if second is None else second
    return sorted(redrawn(first) / redrawn(below) for _ in range(4000))


@pytest.mark.parametrize("count", [30, 31])
@pytest.mark.parametrize("two", [False, True])
def test_interval_equals_that_of_whole_samples_drawn_again(count: int, two: bool) -> None:
    # Thirty different values and many ties among few; 30 is too few to look for lasting noise.
    for draw in (lambda rng: rng.lognormvariate(0.0, 0.1), lambda rng: rng.choice([1.0, 1.5, 2.0])):
        rng = random.Random(count)
        first, second = ([draw(rng) for _ in range(count)] for _ in range(2))
        got = unpaired(first, second) if two else paired(first, [1.0] * count)
        drawn = naive(first, second if two else None, rng)
        # 1000 draws place their 2.5 % quantile between 1 % and 4.5 % of the naive ones, or, by
        # round, further out where the sign test's interval is wider.
        for end, inner, outer in ((got.low, 0.045, 0.01), (got.high, 0.955, 0.99)):
            bounds = sorted(drawn[int(share * len(drawn))] for share in (inner, outer))
            if not two:
                sign = sign_interval(sorted(first))[inner > 0.5]
                bounds = sorted([*bounds, sign])
            assert bounds[0] <= end <= bounds[-1]


def test_sign_interval_holds_95_percent_by_binomial_counts_and_little_more() -> None:
    for count in range(6, 200):
        low, high = sign_interval(list(range(1, count + 1)))
        below = sum(comb(count, heads) for heads in range(low)) / 2**count
        assert low + high == count + 1
        assert 2 * below <= 0.05
        # One rank further in would not hold it, or hardly.
        assert 2 * (below + comb(count, low) / 2**count) > 0.048


def coverage(form, count: int, make) -> float:
    rng, runs = random.Random(count), 200
    held = 0
    for _ in range(runs):
        got = form(make(count, rng), [1.0] * count if form is paired else make(count, rng))
        held += got.low <= 1.0 <= got.high
    return held / runs


@pytest.mark.parametrize("form", [paired, unpaired])
@pytest.mark.parametrize("count", [2, 5, 7, 13, 50])
def test_interval_holds_the_true_ratio_as_often_as_it_says(form, count: int) -> None:
    # 95 % of 200 runs, less two standard deviations of 1.5 %; the plain bootstrap's 87.5 % of
    # seven values would be below.
    assert coverage(form, count, lognormal) >= 0.92


def test_interval_of_many_is_not_wider_than_it_must() -> None:
    rng = random.Random(2)
    got = paired(lognormal(1001, rng), [1.0] * 1001)
    # The median of n deviates by 1.253 * 0.1 / sqrt(n); four of these make 0.0158.
    assert 0.012 < got.high - got.low < 0.021


@pytest.mark.parametrize("form", [paired, unpaired])
def test_interval_holds_the_true_ratio_where_noise_lasts(form) -> None:
    # Half a dozen rounds long: as if independent, 300 values would hold it in 63 % of runs;
    # 87 % less two standard deviations of 2.4 % are asked for.
    assert coverage(form, 300, lambda count, rng: lasting(count, rng, 0.8)) >= 0.82


@pytest.mark.parametrize(("keep", "share"), [(0.0, 1.0), (0.5, 1 / 2.3), (0.9, 1 / 13.3)])
def test_lasting_noise_is_worth_fewer_values(keep: float, share: float) -> None:
    # Signs of normal noise correlate by 2 / pi * asin(keep ** lag); summed over all lags on both
    # sides, n values are worth n / 2.3 at 0.5 and n / 13.3 at 0.9.
    got = worth(lasting(20_000, random.Random(4), keep)) / 20_000
    assert 0.7 * share <= got <= 1.3 * share


def test_equal_values_are_worth_all_of_them() -> None:
    assert worth([2.0] * 100) == 100
