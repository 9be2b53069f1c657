"""Implementations that try to look right, and runs that go wrong, through both commands."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import stat
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import affine
import pytest
import torch
from numerics_world import COMMANDS, QUICK, World

from xllm_kernel.numerics import compare
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


def _clock() -> None:
    time.perf_counter_ns = lambda: 0


def _comparison() -> None:
    compare._values = lambda *arguments: None


def _table_of_checks() -> None:
    compare._CHECKS_BY_TENSOR = ()


def _code_of_the_judge() -> None:
    compare.judge.__code__ = (lambda *arguments: {"status": "passed"}).__code__


def _method_of_tensors() -> None:
    torch.Tensor.isnan = lambda self: torch.zeros_like(self, dtype=torch.bool)


def _function_of_torch() -> None:
    torch.nextafter = lambda a, b: a


TOOLS = {
    _clock: "time.perf_counter_ns",
    _comparison: "xllm_kernel.numerics.compare._values",
    _table_of_checks: "xllm_kernel.numerics.compare._CHECKS_BY_TENSOR",
    _code_of_the_judge: "xllm_kernel.numerics.compare.judge",
    _method_of_tensors: "torch.Tensor.isnan",
    _function_of_torch: "torch.nextafter",
}


@pytest.fixture
def tools_put_back() -> Iterator[None]:
    clock, values, table = time.perf_counter_ns, compare._values, compare._CHECKS_BY_TENSOR
    code, function = compare.judge.__code__, torch.nextafter
    yield
    time.perf_counter_ns, torch.nextafter = clock, function
    compare._values, compare._CHECKS_BY_TENSOR = values, table
    compare.judge.__code__ = code
    if "isnan" in vars(torch.Tensor):
        del torch.Tensor.isnan


@BOTH
@pytest.mark.parametrize("replace", TOOLS)
def test_an_implementation_that_replaces_the_judges_tools_is_caught(
    world: World, command: str, replace: Callable[[], None], tools_put_back: None
) -> None:
    def tampering(*arguments: object) -> object:
        replace()
        return _honest(*arguments)

    world.plant(tampering)
    outcome = world.run(command)
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (1, "failed", "integrity")
    assert row["reason"].startswith(f"{TOOLS[replace]} was replaced")
    assert row.get("timings") is None


def _round_up() -> None:
    ctypes.CDLL("libm.so.6").fesetround({"x86_64": 0x800, "aarch64": 0x400000}[platform.machine()])


STATES = {
    _round_up: "the rounding of",
    lambda: torch.set_flush_denormal(True): "the smallest double",
    lambda: torch.set_default_dtype(torch.float64): "torch's default dtype",
    lambda: torch.set_num_threads(torch.get_num_threads() + 1): "torch's number of threads",
    lambda: torch.set_grad_enabled(False): "torch's grad mode",
    lambda: os.chdir("/"): "the working directory",
}


@pytest.fixture
def state_put_back() -> Iterator[None]:
    threads, folder = torch.get_num_threads(), Path.cwd()
    yield
    ctypes.CDLL("libm.so.6").fesetround(0)
    torch.set_flush_denormal(False)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(threads)
    torch.set_grad_enabled(True)
    os.chdir(folder)


@pytest.mark.parametrize("change", STATES, ids=list(STATES.values()))
def test_an_implementation_that_leaves_the_process_changed_is_caught(
    world: World, change: Callable[[], None], state_put_back: None
) -> None:
    if STATES[change] == "the smallest double" and not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush subnormals")

    def changing(*arguments: object) -> object:
        result = _honest(*arguments)
        change()
        return result

    world.plant(changing)
    outcome = world.run("numerics")
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (1, "failed", "integrity")
    assert row["reason"].startswith(STATES[change])


@BOTH
def test_a_result_that_is_right_only_while_a_judge_looks_on_fails(
    world: World, command: str
) -> None:
    def watchful(*arguments: object) -> object:
        result = _honest(*arguments)
        names = [frame.name for frame in traceback.extract_stack()]
        if "judge" not in names:
            _spoil(result)
        return result

    world.plant(watchful)
    outcome = world.run(command)
    assert (outcome.code, outcome.rows[0]["stage"]) == (1, "validate captured")


def test_answers_known_by_heart_fail_on_other_data(world: World) -> None:
    known: list[torch.Tensor] = []

    def reciting(x: torch.Tensor, *arguments: object) -> object:
        known.append(x.clone())
        result = _honest(x, *arguments)
        if not x.equal(known[0]):
            _spoil(result)
        return result

    world.plant(reciting)
    outcome = world.run("numerics")
    assert (outcome.code, outcome.rows[0]["stage"]) == (1, "validate other_data")


def test_a_result_that_another_thread_finishes_later_fails(world: World) -> None:
    def late(*arguments: object) -> object:
        result = _honest(*arguments)
        for _, leaf in flatten(result):
            done = leaf.clone()
            leaf.zero_()
            threading.Timer(0.2, leaf.copy_, (done,)).start()
        return result

    world.plant(late)
    outcome = world.run("numerics")
    assert (outcome.code, outcome.rows[0]["stage"]) == (1, "validate function")


class _Lazy(torch.Tensor):
    """Would compute its values when they are looked at."""


def test_a_tensor_that_could_compute_itself_when_looked_at_fails(world: World) -> None:
    def lazy(*arguments: object) -> object:
        return compare.map_tensors(_honest(*arguments), lambda t: t.as_subclass(_Lazy))

    world.plant(lazy)
    outcome = world.run("numerics")
    assert outcome.rows[0]["validation"]["function"]["check"] == "structure"


@BOTH
def test_output_over_a_special_file_is_refused_and_leaves_it(
    world: World, command: str, tmp_path: Path
) -> None:
    fifo = tmp_path / "pipe.json"
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
