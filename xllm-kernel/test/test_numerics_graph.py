"""A graph mode that exists only in the test: the commands judge what replays wrote, nothing else.

The runners have no branch for it: a platform that captures is all a mode is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import affine
import pytest
import recorded_graph
from numerics_world import World
from recorded_graph import CALLS

from xllm_kernel.platforms.captured import Captured
from xllm_kernel.platforms.cpu import CpuPlatform

# One when the case is captured, four for graph truth: inputs, two graphs twice, allocations.
BEFORE_TIMING = 5
BOTH = pytest.mark.parametrize("command", ["numerics", "benchmark"])


@pytest.fixture
def graph_mode(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path, monkeypatch)

    def start(*damage: recorded_graph.Damage) -> World:
        recorded_graph.install(monkeypatch, *damage)
        return world

    return start


@BOTH
def test_graph_mode_passes_without_calling_the_operator_after_capture(
    graph_mode: Callable[..., World], command: str
) -> None:
    world, calls = graph_mode(), []

    def count(values: Any, scale: float) -> Any:
        calls.append(1)
        return affine.honest(values, scale)

    world.plant(count)
    outcome = world.run(command, "--mode", "graph", "--warmup", "3")
    assert (outcome.code, outcome.report["mode"]) == (0, "graph")
    # A numerics run judges other data, and three calls with the other end of memory guarded.
    # Graph truth captures another graph.
    assert len(calls) == 1 + 3 + 2 * CALLS + (4 if command == "numerics" else 0)
    if command == "benchmark":
        assert outcome.rows[0]["timings"]["regimes"]["graph"]["calls_a_replay"] == CALLS


@BOTH
@pytest.mark.parametrize("which", [0, 31, CALLS - 1])
def test_any_wrong_output_of_a_replay_fails(
    graph_mode: Callable[..., World], command: str, which: int
) -> None:
    def damage(outputs: list[Any], replays: int) -> None:
        outputs[which]["scaled"][2] += 1

    outcome = graph_mode(damage).run(command, "--mode", "graph")
    (row,) = outcome.rows
    assert (outcome.code, row["stage"]) == (1, "validate captured")
    assert row["validation"]["function"]["status"] == "passed"
    assert row.get("timings") is None


def test_replays_that_go_wrong_while_timed_lose_their_figures(
    graph_mode: Callable[..., World],
) -> None:
    def damage(outputs: list[Any], replays: int) -> None:
        if replays > BEFORE_TIMING:
            outputs[7]["parts"][0].zero_()

    outcome = graph_mode(damage).run(
        "benchmark", "--mode", "graph", "--iterations", "2", "--repeats", "3"
    )
    (row,) = outcome.rows
    assert (outcome.code, row["stage"], row["timings"]) == (1, "validate after_timing", None)


@BOTH
def test_capture_that_raises_ends_the_run_without_falling_back(
    graph_mode: Callable[..., World], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    world = graph_mode()

    def refuse(self: CpuPlatform, *arguments: Any, **options: Any) -> Captured:
        raise RuntimeError("not supported while capturing")

    monkeypatch.setattr(CpuPlatform, "capture", refuse)
    outcome = world.run(command, "--mode", "graph", "--sizes", "8", "16")
    assert (outcome.code, outcome.report["status"]) == (4, "error")
    assert [row["status"] for row in outcome.rows] == ["error", "not_run"]
    assert "capture: RuntimeError: not supported while capturing" in outcome.report["reason"]
    assert outcome.report["coverage"]["passed"] == 0


def test_replay_that_raises_ends_the_run(graph_mode: Callable[..., World]) -> None:
    def damage(outputs: list[Any], replays: int) -> None:
        raise RuntimeError("device lost")

    outcome = graph_mode(damage).run("numerics", "--mode", "graph", "--sizes", "8", "16")
    assert outcome.code == 4
    assert [row["stage"] for row in outcome.rows] == ["replay", None]


def test_missing_outputs_of_a_replay_are_an_error(
    graph_mode: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = graph_mode()
    honest = CpuPlatform.capture

    def lose(self: CpuPlatform, *arguments: Any, **options: Any) -> Captured:
        captured = honest(self, *arguments, **options)
        return replace(captured, outputs=lambda: captured.outputs()[-1:])

    monkeypatch.setattr(CpuPlatform, "capture", lose)
    outcome = world.run("numerics", "--mode", "graph")
    assert outcome.rows[0]["reason"] == "a replay makes 64 calls, but has 1 outputs"
    assert outcome.report["status"] == "error"
