"""Rounds of samples under a virtual clock: turns, windows, and contenders that go away."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from xllm_kernel.benchmark.conduct import Conducted, Sample, Taken, conduct
from xllm_kernel.benchmark.statistics.disturbance import BEHIND, OTHERS, Reading
from xllm_kernel.benchmark.statistics.plateau import Rule, Stop

WALL = "wall_us"


class Machine:
    """A clock that samples move, and what others do meanwhile."""

    def __init__(self) -> None:
        self.at = self.busy = 0.0
        self.reads = 0

    def read(self) -> Reading:
        self.reads += 1
        return Reading(at=self.at, busy=self.busy, own=0.0, stolen=0.0)


def _conducted(
    rule: Rule,
    machine: Machine,
    give: Callable[[str, int], Sample | None],
    contenders: tuple[str, ...] = ("a", "b", "c"),
) -> tuple[Conducted[str], list[str]]:
    turns: list[str] = []
    counts: Counter[str] = Counter()
    course = conduct(contenders, _times, rule, machine.read, lambda: machine.at, random.Random(1))
    try:
        key = next(course)
        while True:
            turns.append(key)
            sample = give(key, counts[key])
            counts[key] += 1
            key = course.send(sample)
    except StopIteration as end:
        return end.value, turns


def _times(samples: Mapping[str, Sample]) -> list[float]:
    return [sample.columns[WALL] for sample in samples.values()]


def _exactly(count: int) -> Rule:
    return Rule(repeats=count)


def test_every_round_has_every_contender_once_in_an_order_of_its_own() -> None:
    machine = Machine()
    (taken, stopped), turns = _conducted(_exactly(40), machine, lambda key, n: Sample({WALL: 1.0}))
    rounds = [tuple(turns[i : i + 3]) for i in range(0, len(turns), 3)]
    assert len(rounds) == 40
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert len(set(rounds)) == 6
    assert stopped is Stop.EXACT
    assert all(one.rounds() == list(range(40)) for one in taken.values())


def test_a_contender_that_goes_away_leaves_its_samples_and_the_rest_go_on() -> None:
    def give(key: str, number: int) -> Sample | None:
        return None if key == "b" and number == 2 else Sample({WALL: float(number)})

    (taken, _), turns = _conducted(_exactly(6), Machine(), give)
    assert taken["b"].rounds() == [0, 1]
    assert taken["a"].rounds() == taken["c"].rounds() == list(range(6))
    assert turns.count("b") == 3


@pytest.mark.parametrize("rule", [Rule(repeats=40), Rule(budget_s=9.0)])
def test_those_who_take_part_for_others_do_not_go_on_without_them(rule: Rule) -> None:
    """All windows are calm; a reader that says otherwise would hide what happens here."""
    machine = Machine()

    def give(key: str, number: int) -> Sample | None:
        machine.at += 0.1
        return Sample({WALL: 1.0}) if key == "ceiling" or number < 2 else None

    def times(samples: Mapping[str, Sample]) -> list[float]:
        return [sample.columns[WALL] for key, sample in samples.items() if key != "ceiling"]

    turns: list[str] = []
    course = conduct(
        ("a", "b", "ceiling"), times, rule, machine.read, lambda: machine.at, random.Random(1)
    )
    key = next(course)
    with pytest.raises(StopIteration) as end:
        while True:
            turns.append(key)
            key = course.send(give(key, turns.count(key) - 1))
    taken, stopped = end.value.value
    assert stopped is Stop.BUDGET
    assert taken["a"].rounds() == taken["b"].rounds() == [0, 1]
    assert len(turns) == 9


def test_nobody_left_ends_the_rounds() -> None:
    (taken, stopped), turns = _conducted(_exactly(6), Machine(), lambda key, n: None)
    assert (stopped, len(turns)) == (Stop.BUDGET, 3)
    assert all(not one.samples for one in taken.values())


def test_a_disturbed_window_is_dropped_whole_and_counted() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.02
        if machine.at < 1.0:
            machine.busy += 0.015  # somebody else runs for three quarters of the first second
        return Sample({WALL: 1.0})

    (taken, _), _ = _conducted(Rule(budget_s=3.0), machine, give)
    one = taken["a"]
    assert one.dropped().keys() == {OTHERS}
    assert min(one.rounds()) >= 16  # 1 s of three samples of 20 ms a round
    assert len(one.rounds()) + sum(one.dropped().values()) == len(one.samples)
    assert one.disturbances() == []


def test_the_machine_is_read_at_the_ends_of_windows_alone() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.001
        return Sample({WALL: 1.0 + number % 2})

    (taken, _), _ = _conducted(Rule(budget_s=5.0), machine, give)
    assert len(taken["a"].samples) > 1000
    assert machine.reads <= 2 + 5.0 / 0.5


def test_asked_for_samples_all_count_and_say_what_disturbed_them() -> None:
    give = lambda key, n: Sample({WALL: 1.0}, disturbed="switched off" if n == 1 else None)  # noqa: E731
    (taken, _), _ = _conducted(_exactly(5), Machine(), give)
    assert taken["a"].rounds() == [0, 1, 2, 3, 4]
    assert taken["a"].disturbances() == ["switched off"]
    assert taken["a"].dropped() == {}


def test_samples_beside_a_slow_processor_do_not_count() -> None:
    """A neighbour on the core, in every other spell of six samples, slows whatever runs by 60 %."""
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        slow = 1.6 if number % 12 < 6 else 1.0
        return Sample({WALL: slow}, pace=50.0 * slow)

    (taken, _), _ = _conducted(Rule(budget_s=3.0), machine, give)
    for one in taken.values():
        rounds = one.rounds()
        assert set(one.values(WALL, rounds)) == {1.0}
        assert one.dropped() == {BEHIND: len(one.samples) - len(rounds)}
        assert 0.4 < len(rounds) / len(one.samples) < 0.6


def test_the_noise_that_ends_the_rounds_is_of_those_beside_no_slow_processor() -> None:
    """Without the slow ones there is none, so that a plateau is there long before time is up."""
    machine, rng = Machine(), random.Random(1)

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        slow = 1.0 + rng.random() if number % 3 == 0 else 1.0
        return Sample({WALL: slow}, pace=50.0 if slow == 1.0 else 100.0)

    (taken, stopped), _ = _conducted(Rule(budget_s=60.0), machine, give)
    assert stopped is Stop.PLATEAU
    assert len(taken["a"].samples) < 100


def test_the_code_being_slow_beside_a_quick_processor_counts() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        return Sample({WALL: 1.6 if number % 2 else 1.0}, pace=50.0)

    (taken, _), _ = _conducted(Rule(budget_s=3.0), machine, give)
    assert taken["a"].dropped() == {}
    assert set(taken["a"].values(WALL, taken["a"].rounds())) == {1.0, 1.6}


def test_each_process_has_a_pace_of_its_own() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        return Sample({WALL: 1.0}, pace=90.0 if key == "a" else 50.0)

    (taken, _), _ = _conducted(Rule(budget_s=3.0), machine, give)
    assert [one.dropped() for one in taken.values()] == [{}] * 3


def test_asked_for_samples_count_whatever_the_processors_pace() -> None:
    give = lambda key, n: Sample({WALL: 1.0}, pace=50.0 * (1 + n % 2))  # noqa: E731
    (taken, _), _ = _conducted(_exactly(6), Machine(), give)
    assert taken["a"].rounds() == list(range(6))
    assert taken["a"].disturbances() == []


def test_rounds_go_on_until_their_noise_is_small() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        return Sample({WALL: 1.0})

    (taken, stopped), _ = _conducted(Rule(budget_s=60.0), machine, give)
    assert stopped is Stop.PLATEAU
    assert 11 <= len(taken["a"].rounds()) <= 40


def test_a_machine_that_is_never_calm_ends_the_rounds_at_twice_the_budget() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample:
        machine.at += 0.01
        machine.busy += 0.01
        return Sample({WALL: 1.0})

    (taken, stopped), _ = _conducted(Rule(budget_s=3.0), machine, give)
    assert stopped is Stop.BUDGET
    assert 6.0 <= machine.at <= 7.0
    assert taken["a"].disturbances() == [OTHERS]


def test_noise_is_counted_anew_where_a_contender_goes_away() -> None:
    machine = Machine()

    def give(key: str, number: int) -> Sample | None:
        machine.at += 0.05
        return None if key == "b" and number == 5 else Sample({WALL: 1.0})

    (taken, stopped), _ = _conducted(Rule(budget_s=60.0), machine, give)
    assert stopped is Stop.PLATEAU
    assert len(taken["b"].rounds()) == 5
    assert len(taken["a"].rounds()) >= 11 + 6


@pytest.mark.parametrize(("calm", "count"), [(4, 20), (5, 5)])
def test_where_too_few_samples_are_calm_all_count_and_say_so(calm: int, count: int) -> None:
    samples = {
        n: Sample({WALL: 1.0}, disturbed=None if n < calm else "others ran") for n in range(20)
    }
    taken = Taken(samples)
    assert len(taken.rounds()) == count
    assert taken.disturbances() == (["others ran"] if calm == 4 else [])
    assert taken.dropped() == ({} if calm == 4 else {"others ran": 15})
