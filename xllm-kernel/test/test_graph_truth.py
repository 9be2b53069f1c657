"""Implementations that only replays show to be wrong, in a recorded graph and compiled.

Each is right when called, and right in the first replay: without further replays it would pass.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import planted_graph_faults as planted
import pytest
import recorded_graph
import torch
from numerics_world import World

from xllm_kernel.numerics import graph_truth
from xllm_kernel.platforms.cpu import CpuPlatform

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("torch.compile needs a C++ compiler", allow_module_level=True)

INPUTS, TWO = "after the inputs changed", "with two graphs alive"
GONE, STREAM = "after the inputs' Python objects were gone", "on another stream"
ALLOCATED = "after unrelated allocations"
BOTH = ("graph", "compile")
FIRST_REPLAYS = ["function", "other_data", "captured"]


@contextmanager
def _aside() -> Iterator[None]:
    planted.device.aside = True
    yield
    planted.device.aside = False


def _release(self: CpuPlatform) -> None:
    planted.device.released = True
    planted.device.strangers.clear()


def _full(*arguments: Any, **options: Any) -> torch.Tensor:
    made = _FULL(*arguments, **options)
    if planted.device.released:
        planted.device.strangers.append(made)
    return made


_FULL = torch.full


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world with both modes: the recorded graph, and PyTorch's compiler as it is."""
    compile_ = CpuPlatform.capture
    recorded_graph.install(monkeypatch)
    record = CpuPlatform.capture

    def capture(self: CpuPlatform, function: Any, mode: str, **options: Any) -> Any:
        return (compile_ if mode == "compile" else record)(self, function, mode, **options)

    monkeypatch.setattr(CpuPlatform, "capture", capture)
    monkeypatch.setattr(CpuPlatform, "release_memory", _release)
    monkeypatch.setattr(torch, "full", _full)
    monkeypatch.setattr(planted, "device", planted.Device())
    yield World(tmp_path, monkeypatch)
    torch.compiler.reset()


def _run(world: World, mode: str, *options: str) -> Any:
    return world.run("numerics", "--mode", mode, "--warmup", "1", *options)


@pytest.mark.parametrize("mode", BOTH)
def test_honest_implementation_passes_every_step(world: World, mode: str) -> None:
    world.plant(planted.on_device(torch.mul))
    outcome = _run(world, mode)
    (row,) = outcome.rows
    assert (outcome.code, row["reason"]) == (0, None)
    truth = [name for name in row["validation"] if name.startswith("graph_")]
    left_out = row["metadata"]["graph_truth_left_out"]
    assert {name.removeprefix("graph_") for name in truth} | set(left_out) == set(graph_truth.STEPS)
    assert set(left_out) == {"other_stream"} | ({"objects_gone"} if mode == "compile" else set())
    assert all(row["validation"][name]["status"] == "passed" for name in truth)


@pytest.mark.parametrize(
    ("mode", "fault", "said"),
    [
        *((mode, planted.input_frozen, f"replay 2 {INPUTS}: ") for mode in BOTH),
        *((mode, planted.host_scalar_frozen, f"replay 2 {INPUTS}: ") for mode in BOTH),
        *((mode, planted.captured_result_repeated, f"replay 2 {INPUTS}: ") for mode in BOTH),
        ("graph", planted.last_call_alone_written, f"replay 2 {INPUTS}: call 1 of 64: "),
        ("graph", planted.one_memory_for_all_calls, f"replay 2 {INPUTS}: two calls of the graph "),
        ("graph", planted.eager_when_captured, f"replay 2 {INPUTS}: call 1 of 64: "),
        *((mode, planted.output_memory_shared, f"replay 3 {TWO}: ") for mode in BOTH),
        *((mode, planted.pointer_dangling, f"replay 3 {TWO}: ") for mode in BOTH),
        ("graph", planted.buffer_dies_with_an_object, f"of the second graph {GONE}: "),
        ("graph", planted.memory_given_back, f"of the second graph {GONE}: "),
        ("compile", planted.memory_given_back, f"replay 5 {ALLOCATED}: "),
        ("graph", planted.memory_of_others_written, f"{GONE}: a replay wrote to memory that"),
        ("compile", planted.memory_of_others_written, f"{ALLOCATED}: a replay wrote to memory"),
    ],
)
def test_fault_found_by_its_step_alone(
    world: World, mode: str, fault: Callable[[], planted.Behaviour], said: str
) -> None:
    world.plant(fault())
    outcome = _run(world, mode)
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (1, "failed", "graph truth"), row
    assert said in row["reason"]
    assert outcome.report["reason"].startswith("affine/8/scale3.0: graph truth: ")
    earlier = [row["validation"][name]["status"] for name in FIRST_REPLAYS]
    assert earlier == ["passed"] * 3


@pytest.mark.parametrize(
    ("mode", "fault", "said"),
    [
        ("graph", planted.raises_when_captured, "RuntimeError: cannot be captured"),
        ("compile", planted.raises_when_captured, "cannot be captured"),
        ("compile", planted.eager_when_captured, "torch.compiler.disable"),
    ],
)
def test_capture_that_fails_ends_the_run(
    world: World, mode: str, fault: Callable[[], planted.Behaviour], said: str
) -> None:
    world.plant(fault())
    outcome = _run(world, mode, "--sizes", "8", "9")
    assert (outcome.code, outcome.rows[0]["stage"]) == (4, "capture")
    assert said in outcome.rows[0]["reason"]
    assert outcome.rows[1]["status"] == "not_run"


def test_stream_of_the_capture_taken_for_the_replays_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuPlatform, "other_stream", lambda self: _aside())
    world.plant(planted.stream_fixed())
    (row,) = _run(world, "graph").rows
    assert (row["stage"], row["reason"].startswith(f"replay 5 {STREAM}: ")) == ("graph truth", True)
    world.plant(planted.on_device(torch.mul))
    outcome = _run(world, "graph")
    assert (outcome.code, outcome.rows[0]["metadata"]["graph_truth_left_out"]) == (0, {})


def test_replay_that_raises_later_ends_the_run(world: World) -> None:
    def kernel(values: torch.Tensor, scale: float) -> torch.Tensor:
        if planted.device.released:
            raise RuntimeError("device lost")
        return values * scale

    world.plant(planted.on_device(kernel))
    outcome = _run(world, "graph", "--sizes", "8", "9")
    first, second = outcome.rows
    assert (outcome.code, first["stage"], second["status"]) == (4, "replay", "not_run")
    assert first["reason"] == f"graph truth, {GONE}: RuntimeError: device lost"
    assert "device lost" in first["traceback"]


def test_suite_that_raises_is_not_the_implementations_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import affine.suite

    honest = affine.suite.Case._make

    def make(self: Any, number: int) -> Any:
        return honest(self, number) if number != 2 else honest(self, "no number")

    monkeypatch.setattr(affine.suite.Case, "_make", make)
    (row,) = (outcome := _run(world, "graph")).rows
    assert (outcome.code, row["status"], row["stage"]) == (3, "error", "graph truth")
    assert row["reason"].startswith(f"{INPUTS}: TypeError: ")


def test_case_without_other_data_goes_through_the_other_steps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import affine.suite

    honest = affine.suite.Case.prepare
    monkeypatch.setattr(
        affine.suite.Case, "prepare", lambda self, plan: replace(honest(self, plan), refresh=None)
    )
    (row,) = _run(world, "graph").rows
    left_out = row["metadata"]["graph_truth_left_out"]
    assert (row["status"], set(left_out)) == ("passed", {"inputs_changed", "other_stream"})
    # The same data in both: their results are equal, and only the memory tells.
    world.plant(planted.output_memory_shared())
    (row,) = _run(world, "graph").rows
    assert row["reason"] == f"{TWO}: an output of one shares storage with an output of the other"
    assert row["validation"]["graph_two_alive"]["status"] == "failed"
    world.plant(planted.last_call_alone_written())
    (row,) = _run(world, "graph").rows
    assert (row["stage"], "two graphs" in str(row["reason"])) == ("graph truth", True)


@pytest.mark.parametrize("which", [0, 31, 63])
def test_call_that_goes_wrong_in_a_later_replay_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    def damage(outputs: list[Any], replays: int) -> None:
        if replays > 1:
            outputs[which]["scaled"][2] += 1

    recorded_graph.install(monkeypatch, damage)
    (row,) = _run(world, "graph").rows
    assert row["reason"].startswith(
        f"replay 2 {INPUTS}: call {which + 1} of 64: output['scaled'][2"
    )


@pytest.mark.parametrize(
    ("limit", "left_out"),
    [
        ("graph_truth.MOST_ELEMENTS_OF_TWO", {"two_alive", "objects_gone", "other_stream"}),
        ("case_run._MOST_ELEMENTS", {"every_step"}),
    ],
)
def test_case_too_large_says_what_was_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: str, left_out: set[str]
) -> None:
    monkeypatch.setattr(f"xllm_kernel.numerics.{limit}", 7)
    (row,) = _run(world, "graph").rows
    assert row["status"] == "passed"
    assert set(row["metadata"]["graph_truth_left_out"]) == left_out
    assert any("elements" in why for why in row["metadata"]["graph_truth_left_out"].values())


def test_eager_mode_has_no_graphs(world: World) -> None:
    (row,) = _run(world, "eager").rows
    assert "graph_truth_left_out" not in row["metadata"]
    assert not [name for name in row["validation"] if name.startswith("graph_")]


def test_timed_replays_follow_the_cases_own_data(world: World) -> None:
    seen: list[torch.Tensor] = []

    def kernel(values: torch.Tensor, scale: float) -> torch.Tensor:
        seen.append(values.clone())
        return values * scale

    world.plant(planted.on_device(kernel))
    counts = ("--iterations", "30", "--repeats", "10")
    outcome = world.run("benchmark", "--mode", "graph", "--warmup", "1", *counts)
    assert outcome.code == 0
    own = [values for values in seen if torch.equal(values, seen[0])]
    assert len(own) >= 30 * 10 * recorded_graph.CALLS
    others = {tuple(values.tolist()) for values in seen if not torch.equal(values, seen[0])}
    assert len(others) >= 2  # graph truth's, and those of the judgement after timing
