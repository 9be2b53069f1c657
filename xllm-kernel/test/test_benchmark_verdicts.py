"""Verdicts on known intervals, and on simulated machines that are as noisy as real ones."""

from __future__ import annotations

import math
import random

import pytest

from xllm_kernel.benchmark.conduct import Sample, Taken
from xllm_kernel.benchmark.figures import against
from xllm_kernel.benchmark.statistics import Ratio, Verdict, band, verdict
from xllm_kernel.benchmark.statistics.verdicts import LEAST
from xllm_kernel.benchmark.units import WALL

RUNS = 200


def machine(
    rng: random.Random,
    candidate: float,
    rounds: int = 51,
    sigma: float = 0.01,
    layout: float = 0.005,
    step: float = 1.0,
    slow: float = 0.0,
) -> list[list[float]]:
    """Return times of two processes of the candidate and of two of the baseline, by round.

    Lognormal noise; in 3 % of samples an interruption of at least a tenth, with a heavy tail; a
    random walk and a step half-way that all share; and what each process keeps for itself, by
    where its memory lies, which makes a share of them slow by more than that.
    """
    kept = [math.exp(rng.gauss(0.0, layout)) * speed for speed in (candidate, candidate, 1.0, 1.0)]
    for number in range(4):
        if rng.random() < slow:
            kept[number] *= rng.uniform(1.04, 1.2)
    times: list[list[float]] = [[], [], [], []]
    drift = 0.0
    for number in range(rounds):
        drift += rng.gauss(0.0, 0.005 if sigma else 0.0)
        common = math.exp(drift) * (step if 2 * number >= rounds else 1.0)
        for own, column in zip(kept, times, strict=True):
            time = common * own * rng.lognormvariate(0.0, sigma)
            if sigma and rng.random() < 0.03:
                time *= 1.0 + 0.1 * rng.paretovariate(1.2)
            column.append(time)
    return times


def judged(times: list[list[float]]) -> Verdict:
    own, second, *baseline = (
        Taken({number: Sample({WALL: time}) for number, time in enumerate(one)}) for one in times
    )
    found = against([own, second], baseline, "baseline", None)
    return Verdict.AMBIGUOUS if found is None else Verdict(found["verdict"])


def share(expected: Verdict, candidate: float, seed: int, **changed: float) -> float:
    rng = random.Random(seed)
    got = [judged(machine(rng, candidate, **changed)) for _ in range(RUNS)]
    return got.count(expected) / RUNS


@pytest.mark.parametrize("slow", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.001, 0.01, 0.02])
def test_the_same_code_is_the_same_on_a_noisy_machine(sigma: float, slow: float) -> None:
    assert share(Verdict.SAME, 1.0, seed=1, sigma=sigma, slow=slow) >= 0.95


@pytest.mark.parametrize("slow", [0.0, 0.05])
@pytest.mark.parametrize("sigma", [0.001, 0.01, 0.02])
def test_a_tenth_slower_is_slower_on_a_noisy_machine(sigma: float, slow: float) -> None:
    assert share(Verdict.SLOWER, 1.1, seed=2, sigma=sigma, slow=slow) >= 0.95


@pytest.mark.parametrize("sigma", [0.0, 0.0002])
@pytest.mark.parametrize(
    ("candidate", "expected"),
    [(1.01, Verdict.SLOWER), (1 / 1.01, Verdict.FASTER), (1.0, Verdict.SAME)],
)
def test_one_percent_is_called_on_a_quiet_clock(
    candidate: float, expected: Verdict, sigma: float
) -> None:
    quiet = machine(random.Random(3), candidate, sigma=sigma, layout=0.0)
    assert judged(quiet) is expected


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [(1.0, Verdict.SAME), (1.1, Verdict.SLOWER), (1 / 1.1, Verdict.FASTER)],
)
def test_a_step_half_way_flips_nothing(candidate: float, expected: Verdict) -> None:
    for seed in range(20):
        before = judged(machine(random.Random(seed), candidate, layout=0.0))
        after = judged(machine(random.Random(seed), candidate, layout=0.0, step=1.5))
        assert before is after is expected


def test_a_machine_too_noisy_to_tell_is_ambiguous_and_never_faster() -> None:
    rng = random.Random(5)
    got = {judged(machine(rng, 1.0, rounds=7, sigma=0.3)) for _ in range(RUNS)}
    assert got == {Verdict.AMBIGUOUS}


def test_a_single_round_is_ambiguous_whatever_it_says() -> None:
    assert judged([[5.0], [5.0], [1.0], [1.0]]) is Verdict.AMBIGUOUS
    assert judged([[1.0], [1.0], [1.0], [1.0]]) is Verdict.AMBIGUOUS


@pytest.mark.parametrize(
    ("low", "high", "noise", "expected"),
    [
        # With 2 % of noise, from 3 % on it is another, and within 5 % the same.
        (1.00, 1.04, 0.02, Verdict.SAME),
        (0.96, 1.049, 0.02, Verdict.SAME),
        (1.02, 1.04, 0.02, Verdict.SAME),
        (1.03, 1.04, 0.02, Verdict.SLOWER),
        (1.06, 1.50, 0.02, Verdict.SLOWER),
        (0.60, 0.97, 0.02, Verdict.FASTER),
        (0.60, 0.98, 0.02, Verdict.AMBIGUOUS),
        (1.02, 1.06, 0.02, Verdict.AMBIGUOUS),
        (0.90, 1.10, 0.02, Verdict.AMBIGUOUS),
        (1.50, 3.10, 0.02, Verdict.AMBIGUOUS),
        (0.30, 0.61, 0.02, Verdict.AMBIGUOUS),
        (1.00, 1.01, 0.05, Verdict.AMBIGUOUS),
        (1.07, 1.08, 0.05, Verdict.SLOWER),
    ],
)
def test_verdict_of_an_interval_and_noise(
    low: float, high: float, noise: float, expected: Verdict
) -> None:
    ratio = Ratio((low + high) / 2, low, high)
    assert verdict(ratio, Ratio(1.0, 1.0, 1.0 + noise)) is expected
    assert verdict(ratio, Ratio(1.0, 1.0 / (1.0 + noise), 1.0)) is expected


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.4, 0.9, Verdict.AMBIGUOUS),
        (0.2, 0.49, Verdict.FASTER),
        (0.01, 0.45, Verdict.FASTER),
        (1.1, 2.3, Verdict.AMBIGUOUS),
        (2.1, 40.0, Verdict.SLOWER),
        (0.01, 40.0, Verdict.AMBIGUOUS),
    ],
)
def test_a_wide_interval_tells_only_where_all_of_it_is_far_away(
    low: float, high: float, wanted: Verdict
) -> None:
    noise = Ratio(1.0, 1.0, 1.01)
    assert verdict(Ratio((low * high) ** 0.5, low, high), noise) is wanted


def test_band_of_no_noise_is_the_least_and_both_sides_widen_it() -> None:
    assert band(Ratio(1.0, 1.0, 1.0)) == LEAST
    assert band(Ratio(1.0, 1.0, 1.02)) == pytest.approx(LEAST + 0.02)
    assert band(Ratio(1.0, 1 / 1.02, 1.0)) == pytest.approx(LEAST + 0.02)
    assert band(Ratio(1.0, 0.97, 1.02)) > LEAST + 0.03
