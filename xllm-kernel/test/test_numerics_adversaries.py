"""Implementations that try to look right, and runs that go wrong, through both commands."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import affine
import pytest
import torch
from numerics_world import COMMANDS, QUICK, World

from xllm_kernel.numerics.compare import flatten

BOTH = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


_honest = affine.behaviour


def _spoil(result: object) -> None:
    for _, leaf in flatten(result):
        if isinstance(leaf, torch.Tensor):
            leaf.zero_()


def _run_into(world: World, command: str, output: Path) -> int:
    world.forget()
    argv = ["--implementation", "cpu.plain.affine", "--output", str(output)]
    return COMMANDS[command]([*argv, *(QUICK if command == "benchmark" else ())])


@BOTH
@pytest.mark.parametrize("ending", [SystemExit(0), SystemExit(None), GeneratorExit()], ids=repr)
def test_an_implementation_that_ends_the_process_crashes_its_case(
    world: World, command: str, ending: BaseException
) -> None:
    def leave(*arguments: object) -> object:
        raise ending

    world.plant(leave)
    outcome = world.run(command)
    assert outcome.code == 4
    assert {row["status"] for row in outcome.rows} == {"error"}


@BOTH
def test_an_output_handed_out_again_fails(world: World, command: str) -> None:
    cache: dict[int, object] = {}

    def cached(x: torch.Tensor, *arguments: object) -> object:
        result = _honest(x, *arguments)
        first = cache.setdefault(x.data_ptr(), result)
        for (_, mine), (_, now) in zip(flatten(first), flatten(result), strict=True):
            mine.copy_(now)
        return first

    world.plant(cached)
    outcome = world.run(command)
    assert outcome.code == 1
    assert "which is still held" in outcome.rows[0]["reason"]


@BOTH
def test_a_result_that_is_wrong_every_second_call_fails(world: World, command: str) -> None:
    calls: list[int] = []

    def alternating(x: torch.Tensor, *arguments: object) -> object:
        calls.append(1)
        result = _honest(x, *arguments)
        if len(calls) % 2 == 0:
            _spoil(result)
        return result

    world.plant(alternating)
    assert world.run(command, "--warmup", "0").code == 1


def test_a_result_that_is_wrong_only_while_it_is_timed_gets_no_figure(world: World) -> None:
    calls: list[int] = []

    def cheating(x: torch.Tensor, *arguments: object) -> object:
        calls.append(1)
        result = _honest(x, *arguments)
        if len(calls) > 4:  # one validated, one warm-up, one captured, then the timed ones
            _spoil(result)
        return result

    world.plant(cheating)
    outcome = world.run("benchmark", "--warmup", "1", "--iterations", "10", "--repeats", "3")
    assert outcome.code == 1
    row = outcome.rows[0]
    assert (row["stage"], row["timings"]) == ("validate after_timing", None)


@BOTH
def test_output_over_a_special_file_is_refused_and_leaves_it(
    world: World, command: str, tmp_path: Path
) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    assert _run_into(world, command, fifo) == 2
    assert stat.S_ISFIFO(fifo.stat().st_mode)


@BOTH
def test_output_through_a_link_writes_its_target(
    world: World, command: str, tmp_path: Path
) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("{}")
    link.symlink_to(target)
    assert _run_into(world, command, link) == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["status"] == "passed"


@BOTH
def test_text_that_no_encoding_holds_is_escaped(world: World, command: str) -> None:
    outcome = world.run(command, "--revision", "\udcff")
    assert outcome.code == 0
    assert outcome.report["revision"] == "\udcff"  # escaped in the file, so that it is UTF-8


def test_the_interpreter_is_not_left_by_a_backend_that_exits(run_python, tmp_path: Path) -> None:
    code = (
        "import sys, types, xllm_kernel\n"
        "class Exit:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.endswith('ops.rms_norm.torch'): raise SystemExit(0)\n"
        "sys.meta_path.insert(0, Exit())\n"
        "from xllm_kernel.explain import main\n"
        "sys.exit(main(['explain']))"
    )
    done = run_python("-c", code)
    assert done.returncode == 1
    assert "DependencyBrokenError" in done.stderr
    assert "SystemExit" in done.stderr
