"""When rounds stop, under a virtual clock: on a plateau, on the budget, on exact counts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from xllm_kernel.benchmark.statistics.plateau import Plateau, Rule, Stop

Draw = Callable[[int], list[float]]


def stopped(rule: Rule, draw: Draw, round_s: float = 0.001) -> tuple[int, Stop]:
    """Take rounds until the rule says why it needs no more."""
    plateau, now = Plateau(), 0.0
    while True:
        why = rule.stop(plateau, now)
        if why is not None:
            return plateau.rounds, why
        plateau.add(draw(plateau.rounds))
        now += round_s


def noisy(seed: int, sigma: float, contenders: int = 1) -> Draw:
    rng = random.Random(seed)
    return lambda _number: [rng.lognormvariate(0.0, sigma) for _ in range(contenders)]


def walking(seed: int) -> Draw:
    rng, at = random.Random(seed), [0.0]

    def draw(_number: int) -> list[float]:
        at[0] += rng.gauss(0.0, 0.01)
        return [math.exp(at[0])]

    return draw


def steady(_number: int) -> list[float]:
    return [1.0]


def test_steady_rounds_stop_at_the_fewest() -> None:
    assert stopped(Rule(fewest=11), steady) == (11, Stop.PLATEAU)


def test_too_few_rounds_to_know_the_noise_go_on() -> None:
    assert stopped(Rule(fewest=1), steady) == (6, Stop.PLATEAU)


def test_small_noise_stops_when_the_median_is_known_well_enough() -> None:
    # The median of n deviates by 1.253 * 0.01 / sqrt(n); 1.96 times that is 0.2 % at n = 150.
    taken = [stopped(Rule(budget_s=10.0), noisy(seed, 0.01)) for seed in range(20)]
    assert {why for _, why in taken} == {Stop.PLATEAU}
    counts = sorted(count for count, _ in taken)
    assert 75 <= counts[10] <= 220


def test_independent_noise_that_still_falls_is_no_plateau() -> None:
    taken = [stopped(Rule(budget_s=0.4), noisy(seed, 0.2)) for seed in range(50)]
    assert [why for _, why in taken].count(Stop.BUDGET) >= 40


def test_noise_that_lasts_is_a_plateau_long_before_the_budget() -> None:
    taken = [stopped(Rule(budget_s=10.0), walking(seed)) for seed in range(20)]
    assert {why for _, why in taken} == {Stop.PLATEAU}
    assert max(count for count, _ in taken) < 5000


def test_the_noisiest_contender_decides() -> None:
    noise = noisy(1, 0.2)
    alone = stopped(Rule(budget_s=0.2), lambda number: [1.0])
    assert alone == (11, Stop.PLATEAU)
    count, _ = stopped(Rule(budget_s=0.2), lambda number: [1.0, *noise(number)])
    assert count >= 48


@pytest.mark.parametrize(
    ("round_s", "expected"), [(0.001, 100), (0.01, 11), (0.05, 5), (1000.0, 5)]
)
def test_a_spent_budget_stops_but_never_before_the_fewest(round_s: float, expected: int) -> None:
    rule = Rule(budget_s=0.1, fewest=5)
    count, why = stopped(rule, lambda number: [1.0 + number % 2], round_s)
    assert why is Stop.BUDGET
    assert count in (expected, expected - 1)


def test_the_most_rounds_are_never_exceeded() -> None:
    rule = Rule(budget_s=1e9, fewest=5, most=20)
    assert stopped(rule, noisy(1, 0.5)) == (20, Stop.BUDGET)


@pytest.mark.parametrize("repeats", [1, 3, 500])
def test_given_counts_are_exact_whatever_noise_and_budget_say(repeats: int) -> None:
    rule = Rule(repeats=repeats, budget_s=0.0, fewest=11, most=100)
    assert stopped(rule, steady) == (repeats, Stop.EXACT)
    assert stopped(rule, noisy(1, 0.5)) == (repeats, Stop.EXACT)


def test_the_noise_is_that_of_the_median_by_the_quartiles() -> None:
    plateau = Plateau()
    for number, value in enumerate([1.3, 1.0, 1.2, 0.9, 1.1], 1):
        plateau.add([value])
        assert (plateau.rounds, plateau.noise) == (number, math.inf)
    plateau.add([0.8])
    assert plateau.noise == pytest.approx(1.96 * 1.253 * (1.2 - 0.9) / 1.349 / 6**0.5 / 1.05)
    assert not plateau.settled


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0]])
def test_a_round_of_other_contenders_raises(values: list[float]) -> None:
    plateau = Plateau()
    plateau.add([1.0, 2.0])
    with pytest.raises(ValueError, match=f"2 contenders .* got {len(values)}"):
        plateau.add(values)
    with pytest.raises(ValueError, match="got 0"):
        Plateau().add([])


@pytest.mark.parametrize(
    "counts", [{"repeats": 0}, {"fewest": 0}, {"fewest": 9, "most": 8}, {"fewest": 1, "most": 0}]
)
def test_a_rule_no_run_can_meet_raises(counts: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="needs"):
        Rule(**counts)
