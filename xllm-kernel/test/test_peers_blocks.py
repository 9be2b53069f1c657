"""Which blocks of the comparison count, on a virtual machine; what the kernel's counters mean."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from side_modules import load_bench

blocks = load_bench("peers.blocks")
machine = load_bench("peers.machine")

Block, Reading, Rule = blocks.Block, blocks.Reading, blocks.Rule

RULE = Rule(wanted=10, enough=3, budget_s=20.0, window_s=0.5)


class World:
    """A machine whose time passes only in blocks; others take a share of a processor."""

    def __init__(
        self,
        lengths: dict[str, float],
        others: Callable[[float], float] = lambda _at: 0.0,
        spoiled: Sequence[str] = (),
    ) -> None:
        self.lengths, self.others, self.spoiled = lengths, others, spoiled
        self.at = self.busy = self.own = self.stolen = 0.0
        self.order: list[str] = []

    def take(self, name: str) -> object:
        length = self.lengths[name]
        self.busy += length * (1.0 + self.others(self.at))
        self.own += length
        self.at += length
        self.order.append(name)
        return Block(length * 1e6, 1, blocks.SWITCHED_OFF if name in self.spoiled else None)

    def read(self) -> object:
        return Reading(at=self.at, busy=self.busy, own=self.own, stolen=self.stolen)

    def run(self, rule: object = RULE) -> dict[str, list[object]]:
        return blocks.interleave(list(self.lengths), self.take, self.read, rule, random.Random(1))


def window(span: float, busy: float, own: float, stolen: float) -> str | None:
    return blocks.disturbance(
        Reading(at=3.0, busy=50.0, own=7.0, stolen=2.0),
        Reading(at=3.0 + span, busy=50.0 + busy, own=7.0 + own, stolen=2.0 + stolen),
    )


@pytest.mark.parametrize(
    ("span", "busy", "own", "stolen", "expected"),
    [
        (0.5, 0.0, 0.0, 0.0, None),
        (0.5, 1.0, 1.0, 0.0, None),
        (0.5, 0.52, 0.5, 0.0, None),
        (0.5, 0.47, 0.5, 0.0, None),
        (0.5, 1.0, 0.5, 0.0, blocks.OTHERS),
        (0.5, 0.65, 0.5, 0.0, blocks.OTHERS),
        (0.5, 0.5, 0.5, 0.1, blocks.STOLEN),
        (0.5, 0.5, 0.5, 0.02, None),
        (10.0, 10.0, 10.0, 0.5, blocks.STOLEN),
        (10.0, 11.0, 10.0, 0.0, None),
    ],
)
def test_a_window_is_disturbed_by_others_and_not_by_this_process(
    span: float, busy: float, own: float, stolen: float, expected: str | None
) -> None:
    assert window(span, busy, own, stolen) == expected


@pytest.mark.parametrize(
    ("span", "switches", "waited", "expected"),
    [
        (0.001, 0, 0.0, None),
        (0.001, 0, 0.00009, None),
        (0.001, 0, 0.0002, blocks.WAITED),
        (0.001, 1, 0.0, blocks.SWITCHED_OFF),
        (0.001, 1, 0.5, blocks.SWITCHED_OFF),
        (0.25, 3, 0.004, None),
        (0.25, 3, 0.006, blocks.WAITED),
        (0.25, 0, 0.006, blocks.WAITED),
    ],
)
def test_a_short_block_bears_no_switch_and_a_long_one_little_waiting(
    span: float, switches: int, waited: float, expected: str | None
) -> None:
    before = blocks.Progress(switches=5, waited=3.0)
    after = blocks.Progress(switches=5 + switches, waited=3.0 + waited)
    assert blocks.interruption(before, after, span) == expected


def test_waiting_is_that_of_all_threads_but_those_that_ended(tmp_path: Path) -> None:
    for name, text in {"1": "100 2000000000 3\n", "2": "0 500000000 1\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "schedstat").write_text(text)
    (tmp_path / "ended").mkdir()
    assert machine.waited_seconds(tmp_path) == 2.5


def test_a_quiet_machine_gives_what_is_wanted_and_no_more_windows() -> None:
    world = World({"a": 0.01, "b": 0.02, "c": 0.03})
    taken = world.run()
    assert {name: len(got) for name, got in taken.items()} == dict.fromkeys("abc", 18)
    assert all(blocks.kept(got) == [world.lengths[n] * 1e6] * 18 for n, got in taken.items())
    assert world.at < RULE.budget_s


def test_rounds_hold_every_contender_once_in_an_order_of_their_own() -> None:
    world = World({"a": 0.01, "b": 0.01, "c": 0.01})
    world.run()
    rounds = [tuple(world.order[i : i + 3]) for i in range(0, len(world.order), 3)]
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert len(set(rounds)) > 3


def test_a_round_longer_than_a_window_is_a_window() -> None:
    world = World({"slow": 2.0, "fast": 0.001})
    taken = world.run()
    assert len(taken["slow"]) == len(taken["fast"]) == 10
    assert blocks.drops(taken["slow"]) == {}


def test_a_busy_spell_costs_its_own_windows_only() -> None:
    world = World({"a": 0.125}, others=lambda at: 1.0 if 0.5 <= at < 1.0 else 0.0)
    taken = world.run()["a"]
    assert [block.dropped for block in taken] == [None] * 4 + [blocks.OTHERS] * 4 + [None] * 8


def test_a_machine_that_is_never_quiet_gives_no_block_and_ends() -> None:
    world = World({"a": 0.1, "b": 0.1}, others=lambda _at: 1.0)
    taken = world.run()
    assert RULE.budget_s <= world.at <= RULE.budget_s + 1.0
    for got in taken.values():
        assert got
        assert blocks.kept(got) == []
        assert blocks.drops(got) == {blocks.OTHERS: len(got)}


def test_one_contender_that_is_always_switched_off_keeps_its_reason_and_ends() -> None:
    world = World({"a": 0.1, "b": 0.1}, others=lambda _at: 1.0, spoiled=["b"])
    taken = world.run()
    assert blocks.drops(taken["a"]) == {blocks.OTHERS: len(taken["a"])}
    assert blocks.drops(taken["b"]) == {blocks.SWITCHED_OFF: len(taken["b"])}


@pytest.mark.parametrize("lengths", [{}, {"a": 0.1}])
def test_no_contender_or_no_time_gives_no_blocks(lengths: dict[str, float]) -> None:
    rule = RULE if not lengths else Rule(wanted=10, enough=3, budget_s=0.0, window_s=0.5)
    assert World(lengths).run(rule) == {name: [] for name in lengths}
    assert blocks.kept([]) == []
    assert blocks.drops([]) == {}


def test_processor_times_are_the_busy_and_the_stolen_columns() -> None:
    line = "cpu  100 20 3 5000 600 7 8 90 11 2\n"
    assert machine.processor_times(line, 100) == (1.38, 0.9)


@pytest.mark.parametrize("line", ["cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"])
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="first line"):
        machine.processor_times(line, 100)


@pytest.mark.parametrize(("naps_awake", "settled"), [(0, True), (3, True), (10**9, False)])
def test_settling_waits_for_threads_that_spin_and_gives_up(
    monkeypatch: pytest.MonkeyPatch, naps_awake: int, settled: bool
) -> None:
    used, naps = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal used, naps
        used += seconds if naps < naps_awake else 0.0
        naps += 1

    monkeypatch.setattr(machine.time, "sleep", sleep)
    monkeypatch.setattr(machine.time, "process_time", lambda: used)
    assert machine.settle() is settled
    assert naps == min(naps_awake + 1, machine._LONGEST_PAUSES)
