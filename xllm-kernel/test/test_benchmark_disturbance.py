"""What disturbs a window or a block, and what the kernel's files say, from fixture folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from xllm_kernel.benchmark.statistics import machine
from xllm_kernel.benchmark.statistics.disturbance import (
    OTHERS,
    SLOWED,
    STOLEN,
    SWITCHED_OFF,
    THROTTLED,
    WAITED,
    Progress,
    Reading,
    disturbance,
    interruption,
    slowest_pace,
)

STAT = "cpu  100 20 3 5000 600 7 8 90 11 2\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def window(span: float, busy: float, own: float, stolen: float) -> str | None:
    return disturbance(
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
        (0.5, 1.0, 0.5, 0.0, OTHERS),
        (0.5, 0.65, 0.5, 0.0, OTHERS),
        (0.5, 0.5, 0.5, 0.1, STOLEN),
        (0.5, 0.5, 0.5, 0.02, None),
        (10.0, 10.0, 10.0, 0.5, STOLEN),
        (10.0, 11.0, 10.0, 0.0, None),
    ],
)
def test_a_window_is_disturbed_by_others_and_not_by_what_is_measured(
    span: float, busy: float, own: float, stolen: float, expected: str | None
) -> None:
    assert window(span, busy, own, stolen) == expected


@pytest.mark.parametrize(
    ("paces", "mostly"),
    [
        ([50.0], 50.0),
        ([50.0, 51.0, 49.0, 80.0, 50.0, 85.0, 82.0, 84.0], 50.0),  # a neighbour half of the time
        ([40.0] * 2 + [50.0] * 18, 50.0),  # quick at first, and never again
        ([50.0] + [80.0] * 19, 80.0),  # a neighbour nearly always: nothing better is known
    ],
)
def test_a_pace_may_exceed_what_it_mostly_is_by_15_per_cent(
    paces: list[float], mostly: float
) -> None:
    assert slowest_pace(paces) == pytest.approx(1.15 * mostly, rel=0.02)


def test_pace_is_the_microseconds_of_work_that_stays_the_same() -> None:
    reads = iter([1_000, 51_000, 60_000, 140_000])
    assert [machine.pace(lambda: next(reads)) for _ in range(2)] == [50.0, 80.0]
    quickest = min(machine.pace() for _ in range(50))
    assert 1.0 < quickest < 5_000.0


def test_a_throttled_window_says_so_first() -> None:
    before = Reading(at=0.0, own=0.0, busy=0.0, stolen=0.0, throttles=4)
    after = Reading(at=1.0, own=0.0, busy=9.0, stolen=9.0, throttles=5)
    assert disturbance(before, after) == THROTTLED


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(0.4, 0.4, SLOWED), (0.4, 0.6, None), (0.6, 0.4, None), (1.0, 1.0, None), (None, 0.4, None)],
)
def test_a_window_is_slow_where_both_its_ends_are(
    first: float | None, last: float | None, expected: str | None
) -> None:
    before = Reading(at=0.0, own=0.0, frequency=first)
    assert disturbance(before, Reading(at=1.0, own=1.0, frequency=last)) == expected


@pytest.mark.parametrize("known", ["busy", "stolen", "throttles"])
def test_what_one_reading_lacks_is_no_disturbance(known: str) -> None:
    bare = Reading(at=0.0, own=0.0)
    full = Reading(at=1.0, own=0.0, **{known: 100})
    assert disturbance(bare, full) is None
    assert disturbance(bare, bare) is None


@pytest.mark.parametrize(
    ("span", "switches", "waited", "expected"),
    [
        (0.001, 0, 0.0, None),
        (0.001, 0, 0.00009, None),
        (0.001, 0, 0.0002, WAITED),
        (0.001, 1, 0.0, SWITCHED_OFF),
        (0.001, 1, 0.5, SWITCHED_OFF),
        (0.25, 3, 0.004, None),
        (0.25, 3, 0.006, WAITED),
        (0.25, 0, 0.006, WAITED),
    ],
)
def test_a_short_block_bears_no_switch_and_a_long_one_little_waiting(
    span: float, switches: int, waited: float, expected: str | None
) -> None:
    before = Progress(switches=5, waited=3.0)
    after = Progress(switches=5 + switches, waited=3.0 + waited)
    assert interruption(before, after, span) == expected


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_reading_holds_what_proc_and_sys_say_of_the_processors_in_use(tmp_path: Path) -> None:
    proc = write(tmp_path / "proc", {"stat": STAT})
    processors = write(
        tmp_path / "cpu",
        {
            "cpu0/thermal_throttle/core_throttle_count": "3\n",
            "cpu0/thermal_throttle/package_throttle_count": "4\n",
            "cpu0/cpufreq/scaling_cur_freq": "3000000\n",
            "cpu0/cpufreq/cpuinfo_max_freq": "4000000\n",
            "cpu1/thermal_throttle/core_throttle_count": "10\n",
            "cpu1/cpufreq/scaling_cur_freq": "1000000\n",
            "cpu1/cpufreq/cpuinfo_max_freq": "4000000\n",
            "cpu2/thermal_throttle/core_throttle_count": "100\n",
        },
    )
    got = machine.read(own=5.5, cpus=[0, 1], proc=proc, processors=processors)
    # Ticks of this system, a hundred a second on all that Python runs on.
    assert (got.own, got.busy, got.stolen) == (5.5, 1.38, 0.9)
    assert (got.throttles, got.frequency) == (17, 0.25)
    assert machine.read(5.5, [0], proc, processors).frequency == 0.75


def test_a_system_that_says_nothing_gives_a_bare_reading(tmp_path: Path) -> None:
    got = machine.read(own=1.0, proc=tmp_path, processors=tmp_path)
    assert got == Reading(at=got.at, own=1.0)
    assert machine.waited_seconds(tmp_path / "task") == 0.0


def test_a_driver_that_does_not_know_gives_no_frequency(tmp_path: Path) -> None:
    files = {"cpu0/cpufreq/scaling_cur_freq": "<unknown>\n", "cpu0/cpufreq/cpuinfo_max_freq": "1"}
    assert machine.frequency(write(tmp_path, files), [0]) is None


def test_own_time_is_that_of_this_process_where_none_is_given() -> None:
    before, after = machine.read(), machine.read()
    assert 0.0 < before.own <= after.own
    assert before.at <= after.at


def test_waiting_is_that_of_all_threads_but_those_that_ended(tmp_path: Path) -> None:
    task = tmp_path / "self" / "task"
    write(task, {"1/schedstat": "100 2000000000 3\n", "2/schedstat": "0 500000000 1\n"})
    (task / "ended").mkdir()
    assert machine.progress(tmp_path).waited == 2.5


def test_processor_times_are_the_busy_and_the_stolen_columns() -> None:
    assert machine.processor_times(STAT.splitlines()[0], 100) == (1.38, 0.9)


@pytest.mark.parametrize("line", ["", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"])
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
