"""The benchmark command: only what passes is timed, and only what still passes is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import affine
import affine.suite
import pytest
import torch
from numerics_world import World

from xllm_kernel.benchmark.__main__ import main as benchmark
from xllm_kernel.benchmark.past import store
from xllm_kernel.benchmark.report import microseconds
from xllm_kernel.numerics.render import NOTHING
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.registry import OpContract


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the samples that the platform was asked for."""
    counts: list[int] = []
    honest = CpuPlatform.measure

    def measure(self: Any, captured: Any, iterations: int, clock: Any) -> Any:
        counts.append(iterations)
        return honest(self, captured, iterations, clock)

    monkeypatch.setattr(CpuPlatform, "measure", measure)
    return counts


def test_passing_case_has_statistics_raw_samples_and_an_empty_callable(world: World) -> None:
    outcome = world.run("benchmark", "--iterations", "3", "--repeats", "7")
    (row,) = outcome.rows
    timings = row["timings"]["regimes"]["hot"]
    assert (outcome.code, timings["iterations"], timings["repeats"]) == (0, 3, 7)
    for statistics in (timings["wall_us"], timings["empty_callable"]["wall_us"]):
        assert len(statistics["samples"]) == 7
        assert statistics["minimum"] == min(statistics["samples"])
        assert statistics["minimum"] <= statistics["median"] <= statistics["p90"]
    assert set(row["validation"]) == {"function", "captured", "after_timing", "fresh_data"}
    assert outcome.report["settings"]["regimes"] == ["hot"]
    assert outcome.report["evidence"] == "cpu"


def test_a_baseline_that_is_not_there_is_refused_with_the_names(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.forget()
    from xllm_kernel.benchmark.__main__ import main

    assert main(["--implementation", "cpu.plain.affine", "--baseline", "plain"]) == 2
    told = "--baseline: must be one of cpu.plain.affine, cpu.other.affine"
    assert told in capsys.readouterr().err


def test_automatic_counts_stay_within_their_bounds(world: World) -> None:
    world.forget()
    from xllm_kernel.benchmark.__main__ import main

    assert main(["--implementation", "cpu.plain.affine", "--threads", "1"]) == 0


@pytest.mark.parametrize(
    "fault",
    [
        lambda v, s: affine.honest(v, s * 1.01),
        lambda v, s: affine.honest(v, s)["scaled"],
        lambda v, s: affine.honest(v.zero_(), s),
        lambda v, s: {**affine.honest(v, s), "parts": (v,)},
    ],
)
def test_failing_case_is_never_timed(world: World, measured: list[int], fault: Any) -> None:
    world.plant(fault)
    outcome = world.run("benchmark", "--sizes", "8", "16")
    assert outcome.code == 1
    assert measured == []
    assert [row["timings"] for row in outcome.rows] == [None, None]
    assert "FAILED  0 of 2 cases passed" in outcome.markdown


def test_only_the_passing_cases_are_timed(world: World, measured: list[int]) -> None:
    world.plant(lambda v, s: affine.honest(v, s if len(v) != 16 else -s))
    outcome = world.run(
        "benchmark", "--sizes", "8", "16", "2000", "--iterations", "4", "--repeats", "2"
    )
    assert outcome.code == 1
    # Two samples of one case, each with one that warms up and the empty callable; then other data.
    assert measured[:6] == [1, 4, 4] * 2
    assert [row["timings"] is not None for row in outcome.rows] == [True, False, False]


@pytest.mark.parametrize(
    ("good_calls", "stage"),
    [
        (0, "validate function"),
        (10, "validate captured"),
        (30, "validate after_timing"),
        (12 + 5 * (10 + 2) + 1, "timing"),
    ],
)
def test_candidate_that_goes_wrong_loses_its_figures_and_the_row_says_when(
    world: World, good_calls: int, stage: str
) -> None:
    calls = []

    def drifting(values: Any, scale: float) -> Any:
        calls.append(1)
        return affine.honest(values, scale if len(calls) <= good_calls else scale * 1.01)

    world.plant(drifting)
    outcome = world.run("benchmark", "--warmup", "10", "--iterations", "10", "--repeats", "5")
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (1, "failed", stage)
    assert row["timings"] is None


def test_candidate_that_is_wrong_on_the_last_data_alone_loses_its_figures(world: World) -> None:
    last = torch.randn(8, generator=torch.Generator().manual_seed(1 + 1))

    def behave(values: torch.Tensor, scale: float) -> Any:
        return affine.honest(values, scale * 1.01 if torch.equal(values, last) else scale)

    world.plant(behave)
    (row,) = world.run("benchmark").rows
    assert (row["status"], row["stage"]) == ("failed", "validate fresh_data")
    assert row["timings"] is None


def test_input_written_to_while_timing_is_noticed(world: World) -> None:
    calls = []

    def scribble(values: Any, scale: float) -> Any:
        calls.append(1)
        result = affine.honest(values, scale)
        if len(calls) == 30:
            values[3] += 1
        return result

    world.plant(scribble)
    outcome = world.run("benchmark", "--iterations", "10", "--repeats", "5")
    (row,) = outcome.rows
    assert (row["stage"], row["timings"]) == ("validate after_timing", None)
    assert row["validation"]["after_timing"]["checks"]["mutation"] == "failed"


def test_candidate_that_raises_while_timed_crashes_the_row(world: World) -> None:
    calls = []

    def tired(values: Any, scale: float) -> Any:
        calls.append(1)
        if len(calls) == 30:
            raise ValueError("tired")
        return affine.honest(values, scale)

    world.plant(tired)
    outcome = world.run("benchmark", "--iterations", "10", "--repeats", "5")
    assert (outcome.code, outcome.rows[0]["stage"]) == (4, "timing")
    assert outcome.rows[0]["timings"] is None


def test_operator_that_mutates_is_refused(
    world: World, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    from xllm_kernel.catalog import Operation

    contract = OpContract("affine", mutates=("values",))
    monkeypatch.setattr(affine, "CONTRACT", contract)
    monkeypatch.setattr(affine, "OPERATION", Operation(contract, affine.OPERATION.backends))
    prepare = affine.suite.Case.prepare
    monkeypatch.setattr(
        affine.suite.Case, "prepare", lambda case, plan: replace(prepare(case, plan), reset=None)
    )
    outcome = world.run("benchmark")
    assert (outcome.code, outcome.report["status"]) == (3, "not_run")
    assert "mutates values" in outcome.report["reason"]
    assert measured == []
    assert world.run("numerics").code == 0


def test_spike_during_warm_up_is_in_no_figure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    now_ns = 0  # moved by calls, and by a little whenever it is read

    def clock() -> int:
        nonlocal now_ns
        now_ns += 500
        return now_ns

    def slow_start(values: Any, scale: float) -> Any:
        nonlocal now_ns
        calls.append(1)
        now_ns += 70_000_000 if len(calls) <= 3 else 2_000
        return affine.honest(values, scale)

    honest = CpuPlatform.measure

    def measure(self: Any, captured: Any, iterations: int, _clock: Any) -> Any:
        return honest(self, captured, iterations, clock)

    monkeypatch.setattr(CpuPlatform, "measure", measure)
    world.plant(slow_start)
    (row,) = world.run("benchmark", "--warmup", "5", "--iterations", "2", "--repeats", "9").rows
    assert row["timings"]["regimes"]["hot"]["wall_us"]["samples"] == [2.25] * 9


def test_a_run_is_stored_beside_earlier_ones(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "past"
    for _ in range(2):
        assert world.run("benchmark", "--store", str(folder)).code == 0
    reports = [path for path in folder.glob("*.json") if path.name != "index.json"]
    assert len(reports) == 2
    assert (folder / "index.json").is_file()


def test_a_run_that_can_no_longer_be_stored_is_no_success(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(document: object, folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "add", full)
    assert world.run("benchmark", "--store", str(tmp_path / "past")).code == 3
    assert "--store: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--regimes", "hot", "hot"), "--regimes: each must be named once"),
        (("--baseline", "cpu.nobody.affine"), "--baseline: must be one of cpu.plain.affine"),
        (("--baseline", "cpu.torch.rms_norm"), "--baseline: must be one of cpu.plain.affine"),
        (("--cpus", "0", "0"), "--cpus: each must be named once"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_loaded(
    world: World,
    measured: list[int],
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    said: str,
) -> None:
    assert benchmark(["--implementation", "cpu.plain.affine", *options]) == 2
    assert said in capsys.readouterr().err
    assert measured == []


def test_a_store_that_cannot_be_made_is_refused_before_anything_is_timed(
    world: World, measured: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    argv = ["--implementation", "cpu.plain.affine", "--store", str(tmp_path / "file" / "store")]
    assert benchmark(argv) == 2
    assert measured == []
    assert "--store: must be a folder" in capsys.readouterr().err


def test_a_store_that_nothing_can_be_added_to_is_refused_before_anything_is_timed(
    world: World,
    measured: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def without_links(self: Path, target: str) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", without_links)
    assert benchmark(["--implementation", "cpu.plain.affine", "--store", str(tmp_path)]) == 2
    assert measured == []
    assert "--store: must be a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("option", ["--iterations", "--repeats"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "99999999999999999999"])
def test_counts_must_be_positive(world: World, option: str, value: str) -> None:
    with pytest.raises(SystemExit) as raised:
        world.run("benchmark", option, value)
    assert raised.value.code == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0004, "0.000"),
        (9.99, "9.990"),
        (10, "10.00"),
        (99.94, "99.94"),
        (100.0, "100.0"),
        (12345.67, "12345.7"),
        (None, NOTHING),
        ("nan", NOTHING),
    ],
)
def test_microseconds_are_shown_with_about_four_digits(value: object, shown: str) -> None:
    assert microseconds(value) == shown
