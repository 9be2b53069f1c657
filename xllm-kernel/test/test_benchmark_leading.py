"""A leader with contenders and ceilings whose times are known: who is compared with whom."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from xllm_kernel.benchmark import leading
from xllm_kernel.benchmark.ceilings.probe import MOST_THREADS, Pass
from xllm_kernel.benchmark.leading import BASELINE, Contender, Leader
from xllm_kernel.benchmark.statistics import machine
from xllm_kernel.benchmark.statistics.disturbance import OTHERS, WAITED, Progress, Reading
from xllm_kernel.benchmark.statistics.plateau import Rule
from xllm_kernel.numerics.suite import Work

WORK = {"read_bytes": 1000, "written_bytes": 1000, "operations": 0}


class _Probe:
    """Copies take 2 us on one thread and 1 us on two, cold ones ten times that."""

    level = "avx2"

    def __init__(self) -> None:
        self.asked: list[tuple[int, bool]] = []

    def passes(self, work: Work, threads: int, *, cold: bool) -> list[Pass]:
        self.asked.append((threads, cold))
        us = 2.0 / threads * (10 if cold else 1)
        return [Pass("copy", "memory", lambda count: us)]


class _Clock:
    def __init__(self) -> None:
        self.at = self.others = 0.0

    def tick(self) -> float:
        self.at += 0.05
        return self.at

    def read(self, own: float) -> Reading:
        return Reading(at=self.at, own=own, busy=own + self.others)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    made = _Clock()
    monkeypatch.setattr(machine, "read", made.read)
    monkeypatch.setattr(machine, "progress", lambda: Progress(0, 0.0))
    monkeypatch.setattr(leading.time, "process_time", lambda: 0.0)
    monkeypatch.setattr(leading.time, "monotonic", made.tick)
    return made


def _led(
    leader: Leader,
    times: dict[Contender, float],
    regime: str = "hot",
    work: dict[str, int] | None = WORK,
    gone: Callable[[Contender, int], bool] = lambda contender, number: False,
    dropped: Mapping[Contender, str] = {},
    noise: float = 0.001,
) -> dict[Contender, dict[str, Any]]:
    about = {"regime": regime, "work": work, "iterations": 1, "calls_a_replay": 1}
    told = {key: {**about, "reset_before": None} for key in times}
    rng, counts = random.Random(3), dict.fromkeys(times, 0)
    course = leader.regime(told)
    try:
        key = next(course)
        while True:
            counts[key] += 1
            event: dict[str, Any] | None = {
                "columns": {"wall_us": times[key] * rng.lognormvariate(0, noise)},
                "empty": {"wall_us": 0.01},
                "dropped": dropped.get(key),
                "pace_us": 50.0,
                "cpu_s": 0.0,
            }
            key = course.send(None if gone(key, counts[key]) else event)
    except StopIteration as end:
        return end.value


def test_a_candidate_is_compared_with_the_baseline_of_as_many_threads(clock: _Clock) -> None:
    times = {}
    for threads, slower in ((1, 1.2), (2, 0.8)):
        times |= dict.fromkeys(Contender("theirs", threads).twice, 10.0 * slower)
        times |= dict.fromkeys(Contender("ours", threads, BASELINE).twice, 10.0)
    found = _led(Leader(Rule(repeats=20)), times)
    assert not [contender for contender in found if contender.second]
    for threads, verdict, ratio in ((1, "SLOWER", 1.2), (2, "FASTER", 0.8)):
        against = found[Contender("theirs", threads)]["against"]
        assert (against["verdict"], against["threads"]) == (verdict, threads)
        assert against["ratio"]["middle"] == pytest.approx(ratio, rel=1e-2)
        mine, own = found[Contender("theirs", threads)], found[Contender("ours", threads, BASELINE)]
        assert own["against"] is None
        assert against["noise_floor"] in (mine["noise_floor"], own["noise_floor"])


@pytest.mark.parametrize("slow", [0, 1, 2, 3])
@pytest.mark.parametrize(("level", "verdict"), [(10.0, "SAME"), (11.0, "SLOWER"), (9.1, "FASTER")])
def test_one_process_that_is_slow_by_itself_flips_no_verdict(
    clock: _Clock, slow: int, level: float, verdict: str
) -> None:
    me, other = Contender("theirs", 1), Contender("ours", 1, BASELINE)
    times = dict.fromkeys(me.twice, level) | dict.fromkeys(other.twice, 10.0)
    times[[*times][slow]] *= 1.15
    found = _led(Leader(Rule(repeats=40)), times)
    assert found[me]["against"]["verdict"] == verdict
    assert found[me]["wall_us"]["median"] == pytest.approx(level, rel=1e-2)
    assert found[other]["wall_us"]["median"] == pytest.approx(10.0, rel=1e-2)


def test_noise_is_what_two_processes_of_the_same_code_differ_by(clock: _Clock) -> None:
    first, second = Contender("mine", 1).twice
    found = _led(Leader(Rule(repeats=20)), {first: 10.0, second: 10.5})
    assert found[first]["noise_floor"]["middle"] == pytest.approx(1.05, rel=1e-2)
    assert found[first]["against"] is None


def test_figures_are_of_one_process_alone(clock: _Clock) -> None:
    """The quicker one's samples, rounds and replays, and why some of its samples do not count."""
    first, second = Contender("mine", 1).twice
    found = _led(Leader(Rule(repeats=20)), {first: 10.5, second: 10.0}, dropped={second: WAITED})
    assert found[first]["wall_us"]["median"] == pytest.approx(10.0, rel=1e-2)
    assert found[first]["unstable"] == [WAITED]


def test_a_second_process_that_is_gone_leaves_the_first_its_figures(clock: _Clock) -> None:
    first, second = Contender("mine", 1).twice
    found = _led(
        Leader(Rule(repeats=20)), {first: 10.0, second: 5.0}, gone=lambda key, n: key.second
    )
    assert found[first]["wall_us"]["median"] == pytest.approx(10.0, rel=1e-2)
    assert found[first]["noise_floor"]["middle"] == pytest.approx(1.0, rel=1e-2)


def test_both_processes_share_a_budget(clock: _Clock) -> None:
    """A round takes 0.05 s of the clock, whoever gives samples in it."""
    one, other = Contender("mine", 1), Contender("theirs", 1)
    rule = Rule(budget_s=1.0, fewest=1)
    alone, twice, two = (
        _led(Leader(rule), dict.fromkeys(who, 10.0), noise=0.3)[one]
        for who in ([one], one.twice, [*one.twice, *other.twice])
    )
    assert {found["stopped"] for found in (alone, twice, two)} == {"budget"}
    assert abs(alone["repeats"] - twice["repeats"]) <= 1  # what is due at a window's end
    assert two["repeats"] > 1.5 * alone["repeats"]


@pytest.mark.parametrize("second", [False, True])
def test_what_disturbed_the_baseline_makes_what_is_compared_with_it_unstable(
    clock: _Clock, second: bool
) -> None:
    me, other = Contender("theirs", 1), Contender("theirs", 2)
    times = {me: 12.0, other: 12.0}
    for threads in (1, 2):
        times |= dict.fromkeys(Contender("ours", threads, BASELINE).twice, 10.0)
    disturbed = Contender("ours", 1, BASELINE, second)
    found = _led(Leader(Rule(repeats=20)), times, dropped={disturbed: WAITED})
    assert found[me]["unstable"] == [f"the baseline: {WAITED}"]
    assert found[other]["unstable"] == []


def test_of_a_single_process_the_noise_is_that_of_the_halves(clock: _Clock) -> None:
    me = Contender("mine", None)
    found = _led(Leader(Rule(repeats=20)), {me: 10.0})[me]
    assert found["against"] is None
    assert found["noise_floor"]["middle"] == pytest.approx(1.0, abs=1e-2)


def test_ceilings_are_those_of_the_contenders_own_threads_and_regime(clock: _Clock) -> None:
    probe = _Probe()
    one, two = Contender("a", 1), Contender("a", 2)
    found = _led(Leader(Rule(repeats=6), probe), {one: 4.0, two: 4.0})
    assert found[one]["roofline"]["share"] == pytest.approx(0.5, rel=1e-2)
    assert found[two]["roofline"]["share"] == pytest.approx(0.25, rel=1e-2)
    cold = _led(Leader(Rule(repeats=6), probe), {one: 40.0}, regime="cold")
    assert cold[one]["roofline"]["share"] == pytest.approx(0.5, rel=1e-2)
    assert probe.asked == [(1, False), (2, False), (1, True)]


def test_contenders_that_do_not_say_have_the_default_threads_ceiling(clock: _Clock) -> None:
    probe, me = _Probe(), Contender("a", None)
    _led(Leader(Rule(repeats=6), probe, default_threads=2), {me: 4.0})
    assert probe.asked == [(2, False)]


def test_more_threads_than_the_probe_has_leave_the_figures_without_a_ceiling(
    clock: _Clock,
) -> None:
    probe, few, many = _Probe(), Contender("a", MOST_THREADS), Contender("a", MOST_THREADS + 1)
    found = _led(Leader(Rule(repeats=6), probe), {few: 4.0, many: 4.0})
    assert probe.asked == [(MOST_THREADS, False)]
    assert found[few]["roofline"] is not None
    assert found[many]["roofline"] is None
    assert found[many]["wall_us"]["median"] == pytest.approx(4.0, rel=1e-2)


def test_work_that_nobody_states_has_no_ceiling(clock: _Clock) -> None:
    probe, me = _Probe(), Contender("a", 1)
    assert _led(Leader(Rule(repeats=6), probe), {me: 4.0}, work=None)[me]["roofline"] is None
    assert probe.asked == []


def test_a_contender_that_is_gone_before_its_first_sample_has_no_figures(clock: _Clock) -> None:
    here, gone = Contender("here", 1), Contender("gone", 1)
    found = _led(
        Leader(Rule(repeats=6)), {here: 4.0, gone: 4.0}, gone=lambda key, number: key is gone
    )
    assert list(found) == [here]
    assert found[here]["repeats"] == 6


def test_what_others_do_meanwhile_marks_the_row(clock: _Clock) -> None:
    me = Contender("mine", None)
    honest = clock.read

    def read(own: float) -> Reading:
        clock.others = clock.at
        return honest(own)

    machine.read = read  # the fixture puts it back
    assert _led(Leader(Rule(repeats=20)), {me: 10.0})[me]["unstable"] == [OTHERS]


@pytest.mark.parametrize("wait_s", [0.0, 1.0])
def test_a_ceiling_whose_threads_always_waited_is_none(clock: _Clock, wait_s: float) -> None:
    class Waiting(_Probe):
        def passes(self, work: Work, threads: int, *, cold: bool) -> list[Pass]:
            waited = itertools.count()
            found = super().passes(work, threads, cold=cold)
            return [replace(one, waited=lambda: next(waited) * wait_s) for one in found]

    me = Contender("mine", 1)
    found = _led(Leader(Rule(repeats=8), Waiting()), {me: 4.0})
    assert (found[me]["roofline"] is None) == (wait_s > 0)


@pytest.mark.parametrize("rule", [Rule(repeats=30), Rule(budget_s=5.0)])
@pytest.mark.parametrize("baseline", [False, True])
def test_when_all_contenders_die_their_ceilings_do_not_go_on(
    clock: _Clock, rule: Rule, baseline: bool
) -> None:
    times = dict.fromkeys(Contender("mine", 1).twice, 3.0)
    if baseline:
        times |= dict.fromkeys(Contender("ours", 1, BASELINE).twice, 3.0)
    found = _led(Leader(rule, _Probe()), times, gone=lambda contender, number: number > 4)
    assert all(len(figures["wall_us"]["samples"]) == 4 for figures in found.values())


def test_first_processes_of_two_baselines_alone_go_on(clock: _Clock) -> None:
    mine = [pair for n in (1, 2) for pair in Contender("ours", n, BASELINE).twice]
    found = _led(
        Leader(Rule(repeats=30), _Probe()),
        {key: 3.3 if key.second else 3.0 for key in mine},
        gone=lambda contender, number: contender.second and number > 4,
    )
    assert [len(found[key]["wall_us"]["samples"]) for key in mine if not key.second] == [30, 30]
