"""From samples whose truth is known to a row's figures."""

from __future__ import annotations

import random
from typing import Any

import pytest

from xllm_kernel.benchmark import figures
from xllm_kernel.benchmark.conduct import Sample, Taken

ABOUT = {"iterations": 10, "calls_a_replay": 1, "reset_before": None}


def _taken(times: list[float], disturbed: dict[int, str] | None = None) -> Taken:
    why = disturbed or {}
    return Taken(
        {
            number: Sample({"wall_us": time}, {"wall_us": 0.01}, why.get(number))
            for number, time in enumerate(times)
        }
    )


def _noisy(level: float, seed: int, drift: Any = lambda n: 1.0, count: int = 60) -> list[float]:
    rng = random.Random(seed)
    return [level * drift(n) * rng.lognormvariate(0.0, 0.01) for n in range(count)]


def test_figures_have_the_samples_that_count_and_say_what_does_not() -> None:
    taken = _taken([float(n) for n in range(1, 11)], {0: "stolen", 9: "stolen"})
    found = figures.figures(ABOUT, taken, "plateau")
    assert found["wall_us"]["samples"] == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert found["rounds"] == list(range(1, 9))
    assert found["repeats"] == 8
    assert found["dropped"] == {"stolen": 2}
    assert found["empty_callable"]["wall_us"]["median"] == 0.01
    assert found["unstable"] == ["the samples spread by more than a tenth of their median"]
    assert "reset_before" not in found


def test_a_tenth_more_time_is_slower_and_a_tenth_less_faster() -> None:
    base, twin = _taken(_noisy(100.0, 1)), _taken(_noisy(100.0, 2))
    for level, wanted in ((110.0, "SLOWER"), (90.0, "FASTER"), (100.0, "SAME")):
        own = [_taken(_noisy(level, seed)) for seed in (3, 4)]
        found = figures.against(own, [base, twin], "b", 2)
        assert found is not None
        assert found["verdict"] == wanted
        assert found["ratio"]["low"] < level / 100 < found["ratio"]["high"]
        assert (found["baseline"], found["threads"]) == ("b", 2)


def test_a_step_half_way_that_everybody_takes_flips_no_verdict() -> None:
    def step(number: int) -> float:
        return 1.0 if number < 30 else 1.5

    base, twin = _taken(_noisy(100.0, 1, step)), _taken(_noisy(100.0, 2, step))
    for level, wanted in ((105.0, "SLOWER"), (95.0, "FASTER"), (100.0, "SAME")):
        own = [_taken(_noisy(level, seed, step)) for seed in (3, 4)]
        found = figures.against(own, [base, twin], "b", None)
        assert found is not None
        assert found["verdict"] == wanted


def test_only_rounds_that_are_calm_for_all_make_a_ratio() -> None:
    calm = [100.0] * 20
    spoiled = [100.0] * 10 + [900.0] * 10
    why = dict.fromkeys(range(10, 20), "others ran")
    for broken in range(4):
        four = [_taken(spoiled, why) if n == broken else _taken(calm) for n in range(4)]
        found = figures.against(four[:2], four[2:], "b", None)
        assert found is not None
        assert found["ratio"]["middle"] == 1.0


def test_too_few_rounds_in_common_give_no_ratio() -> None:
    first = _taken([1.0] * 12, dict.fromkeys(range(7), "x"))
    second = _taken([1.0] * 12, dict.fromkeys(range(5, 12), "x"))
    assert figures.against([first], [second, first], "b", None) is None
    assert figures.floor(first, second) is None
    assert figures.quickest([first, second]) == 0


def test_a_single_process_has_the_noise_of_its_halves() -> None:
    found = figures.halves(_taken([1.0, 1.1] * 10))
    assert found is not None
    assert found["middle"] == pytest.approx(1.1)
    assert figures.halves(_taken([1.0] * 5)) is None


def test_a_ceiling_is_unknown_where_one_pass_was_always_disturbed() -> None:
    """On a busy machine a slower pass was the only one left: 37 % of it were 2 % of the ceiling."""
    work = {"read_bytes": 1000, "written_bytes": 1000, "operations": 0}
    calm, spoiled = _taken([3.0] * 3), _taken([4.0] * 3, {0: "x", 1: "x", 2: "x"})
    kinds = dict.fromkeys(("copy", "streaming copy"), "memory")
    passes = {"copy": spoiled, "streaming copy": calm}
    assert figures.ceilings(work, 6.0, passes, kinds) is None
    assert figures.ceilings(work, 6.0, {"copy": spoiled}, kinds) is None


def test_a_disturbed_pass_that_was_quick_all_the_same_raises_the_ceiling() -> None:
    work = {"read_bytes": 1000, "written_bytes": 1000, "operations": 0}
    taken = _taken([3.0, 2.0, 4.0], {1: "held up"})
    found = figures.ceilings(work, 6.0, {"copy": taken}, {"copy": "memory"})
    assert found is not None
    assert found["ceilings_us"] == {"copy": 2.0}


def test_a_ceiling_is_the_best_that_was_seen_in_the_same_rounds() -> None:
    work = {"read_bytes": 1000, "written_bytes": 1000, "operations": 0}
    passes = {"copy": _taken([2.0, 4.0, 3.0]), "slow copy": _taken([9.0, 9.0, 9.0])}
    kinds = dict.fromkeys(passes, "memory")
    found = figures.ceilings(work, 6.0, passes, kinds)
    assert found is not None
    assert (found["binding"], found["share"]) == ("copy", pytest.approx(2.0 / 6.0))
    assert figures.ceilings(None, 6.0, passes, kinds) is None
    assert figures.ceilings(work, 6.0, {}, {}) is None
