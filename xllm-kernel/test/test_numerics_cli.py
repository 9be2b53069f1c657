"""The numerics command: arguments, exit codes, and a report whatever happens."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import affine
import pytest
import torch
from conftest import REPOSITORY_ROOT
from numerics_world import COMMANDS, World

from xllm_kernel.errors import ArtifactError, ConfigurationError
from xllm_kernel.numerics import arguments
from xllm_kernel.numerics import catalog as suite_catalog
from xllm_kernel.platforms.cpu import CpuPlatform


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


BOTH = pytest.mark.parametrize("command", COMMANDS)

# Fails the import of anything outside the standard library and the package.
NO_FRAMEWORK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {'torch', 'torch_npu', 'numpy', 'safetensors', 'jsonschema'}:
            raise ModuleNotFoundError(f'blocked {name}', name=name)
sys.meta_path.insert(0, Block())
import runpy
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=False)
"""


@BOTH
@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--help",), "--operation NAME --help"),
        (("--operation", "rms_norm", "--help"), "--widths"),
        (("--implementation", "cpu.torch.rms_norm", "--help"), "--widths"),
    ],
)
def test_help_needs_no_framework(
    run_python: Callable[..., Any], command: str, options: tuple[str, ...], shown: str
) -> None:
    done = run_python("-c", NO_FRAMEWORK, f"xllm_kernel.{command}", *options)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    for common in ("--device", "--mode", "--warmup", "--revision", "--output", "--threads"):
        assert common in done.stdout
    assert ("--iterations" in done.stdout) == (command == "benchmark")
    assert ("--rows" in done.stdout) == (len(options) > 1)


@BOTH
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--implementation is required, or --operation to see which there are; operations: af"),
        (["--rows", "1"], "--implementation is required, or --operation"),
        (["--operation", "affine"], "--implementation is required for affine; one of cpu.plain"),
        (["--operation", "nothing"], "unknown operation 'nothing'; one of affine"),
        (["--implementation", "cpu.no.affine"], "unknown implementation 'cpu.no.affine'"),
        (["--implementation", "cpu.plain.affine", "--shape", "3"], "unrecognized arguments"),
        (["--implementation", "cpu.plain.affine", "--siz", "3"], "unrecognized arguments"),
        (["--implementation", "cpu.plain.affine", "--warmup", "-1"], "must be an integer >= 0"),
        (["--implementation", "cpu.plain.affine", "--threads", "0"], "must be an integer >= 1"),
        (["--implementation", "cpu.plain.affine", "--threads", "x"], "must be an integer >= 1"),
        (["--implementation", "cpu.plain.affine", "--output", "r.md"], "must end in .json"),
    ],
)
def test_usage_errors_exit_2_before_anything_is_prepared(
    world: World, capsys: pytest.CaptureFixture[str], command: str, argv: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        COMMANDS[command](argv)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err
    assert "affine.plain" not in sys.modules


@pytest.mark.parametrize(
    ("operation", "implementation", "its"),
    [("rms_norm", "cpu.plain.affine", "affine"), ("affine", "cpu.torch.rms_norm", "rms_norm")],
)
def test_operation_that_is_not_the_implementations_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    operation: str,
    implementation: str,
    its: str,
) -> None:
    monkeypatch.setattr(
        suite_catalog, "_BUILTINS", ("affine.suite", "xllm_kernel.numerics.rms_norm")
    )
    argv = ["--operation", operation, "--implementation", implementation]
    with pytest.raises(SystemExit):
        arguments.parse("numerics", argv)
    assert f"'{implementation}' implements {its}, not {operation}" in capsys.readouterr().err


@BOTH
def test_operation_is_inferred_from_the_implementation(world: World, command: str) -> None:
    outcome = world.run(command)
    assert (outcome.code, outcome.report["operation"]) == (0, "affine")
    assert world.run(command, "--operation", "affine").code == 0


@BOTH
@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--mode", "aclgraph"), 2, "--mode: must be one of eager, compile"),
        (("--mode", "nothing"), 2, "--mode: must be one of eager, compile"),
        (("--device", "toaster"), 2, "device must be one of"),
        (("--device", "npu"), 3, "torch_npu"),
        (("--device", "npu", "--mode", "aclgraph"), 3, "torch_npu"),
        (("--sizes", "8", "8"), 2, "each case must occur once"),
        (("--sizes", "2000"), 3, "no case ran"),
    ],
)
def test_runs_that_cannot_begin_say_why_and_leave_a_report(
    world: World, command: str, options: tuple[str, ...], code: int, message: str
) -> None:
    outcome = world.run(command, *options)
    assert outcome.code == outcome.report["exit_code"] == code
    assert message in outcome.report["reason"]
    assert outcome.report["status"] in ("error", "not_run")
    assert outcome.report["coverage"]["passed"] == 0
    assert message in outcome.markdown


def test_empty_list_of_cases_is_no_success(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import affine.suite

    monkeypatch.setattr(affine.suite.Suite, "cases", lambda self, args: [])
    outcome = world.run("numerics")
    assert (outcome.code, outcome.report["status"]) == (3, "not_run")


def test_inapplicable_cases_keep_their_reason_beside_passing_ones(world: World) -> None:
    outcome = world.run("numerics", "--sizes", "8", "2000")
    assert outcome.code == 0
    assert outcome.report["coverage"] == {
        "total": 2,
        "passed": 1,
        "failed": 0,
        "error": 0,
        "not_applicable": 1,
        "not_run": 0,
    }
    assert outcome.rows[1]["reason"] == "at most 1000 values, got 2000"
    assert outcome.rows[1]["validation"] == {}


@BOTH
def test_absent_dependency_of_an_implementation_exits_3_and_names_it(
    world: World, command: str
) -> None:
    outcome = world.run(command, implementation="cpu.absent.affine")
    assert (outcome.code, outcome.report["status"]) == (3, "error")
    assert "no_such_module_at_all" in outcome.report["reason"]


@BOTH
@pytest.mark.parametrize("value", ["other", "cpu.other.affine"])
def test_environment_that_chooses_another_implementation_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, command: str, value: str
) -> None:
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_AFFINE", value)
    outcome = world.run(command)
    assert outcome.code == 2
    assert f"XLLM_KERNEL_OVERRIDE_AFFINE={value} chose cpu.other.affine" in outcome.report["reason"]
    assert all(row["status"] == "not_run" for row in outcome.rows)


@pytest.mark.parametrize("value", ["plain", "cpu.plain.affine"])
def test_environment_that_agrees_is_accepted(
    world: World, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_AFFINE", value)
    outcome = world.run("numerics")
    assert outcome.code == 0
    assert outcome.report["receipt"]["implementation"] == "cpu.plain.affine"


def test_requested_implementation_wins_over_priority_and_the_receipt_says_so(world: World) -> None:
    receipt = world.run("numerics").report["receipt"]
    assert receipt["implementation"] == "cpu.plain.affine"
    passed_over = {other["name"]: other["code"] for other in receipt["excluded"]}
    assert passed_over == {"cpu.other.affine": "override", "affine.absent": "missing"}


def _wrong(values: torch.Tensor, scale: float) -> Any:
    return affine.honest(values, scale * 1.01)


def _raise(values: torch.Tensor, scale: float) -> Any:
    raise ValueError("out of order")


@BOTH
def test_failing_case_exits_1_and_the_others_still_run(world: World, command: str) -> None:
    world.plant(lambda v, s: _wrong(v, s) if len(v) == 16 else affine.honest(v, s))
    outcome = world.run(command, "--sizes", "8", "16", "32")
    assert (outcome.code, outcome.report["status"]) == (1, "failed")
    assert [row["status"] for row in outcome.rows] == ["passed", "failed", "passed"]
    assert outcome.rows[1]["validation"]["function"]["check"] == "values"
    assert outcome.rows[1]["stage"] == "validate function"
    assert "output['scaled'][" in outcome.report["reason"]


@BOTH
def test_implementation_that_raises_exits_4_and_the_others_still_run(
    world: World, command: str
) -> None:
    world.plant(lambda v, s: _raise(v, s) if len(v) == 8 else affine.honest(v, s))
    outcome = world.run(command, "--sizes", "8", "16")
    assert (outcome.code, outcome.report["status"]) == (4, "error")
    assert [row["status"] for row in outcome.rows] == ["error", "passed"]
    assert outcome.rows[0]["reason"] == "ValueError: out of order"
    assert "ValueError: out of order" in outcome.rows[0]["traceback"]


@BOTH
def test_error_on_a_device_that_does_not_recover_stops_the_run_and_a_wrong_result_does_not(
    world: World, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuPlatform, "recovers", False)
    world.plant(lambda v, s: _wrong(v, s) if len(v) == 8 else _raise(v, s))
    outcome = world.run(command, "--sizes", "8", "16", "32")
    assert (outcome.code, outcome.report["status"]) == (4, "error")
    assert [row["status"] for row in outcome.rows] == ["failed", "error", "not_run"]


def test_implementation_that_raises_on_repetition_stops_the_run_with_4(world: World) -> None:
    calls = []

    def tired(values: torch.Tensor, scale: float) -> Any:
        calls.append(1)
        return affine.honest(values, scale) if len(calls) < 5 else _raise(values, scale)

    world.plant(tired)
    outcome = world.run("numerics", "--warmup", "2", "--sizes", "8", "16")
    assert (outcome.code, outcome.report["status"]) == (4, "error")
    assert outcome.rows[0]["stage"] == "replay"
    assert outcome.rows[1]["status"] == "not_run"


def test_implementation_that_turns_wrong_during_warm_up_fails(world: World) -> None:
    calls = []

    def drifting(values: torch.Tensor, scale: float) -> Any:
        calls.append(1)
        return affine.honest(values, scale if len(calls) < 3 else scale * 1.01)

    world.plant(drifting)
    outcome = world.run("numerics", "--warmup", "5")
    assert (outcome.code, outcome.rows[0]["stage"]) == (1, "validate captured")


def _replace_case_method(
    monkeypatch: pytest.MonkeyPatch, name: str, method: Callable[..., Any]
) -> None:
    import affine.suite

    monkeypatch.setattr(affine.suite.Case, name, method)


def test_suite_that_cannot_prepare_exits_3_not_4(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(case: Any, plan: Any) -> Any:
        raise MemoryError("no room")

    _replace_case_method(monkeypatch, "prepare", broken)
    outcome = world.run("numerics")
    assert (outcome.code, outcome.report["status"]) == (3, "error")
    assert outcome.rows[0]["stage"] == "prepare"


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(None, 3), ({}, 3), ({"status": "fine"}, 3), ({"status": "passed"}, 1)],
)
def test_validator_must_give_a_verdict_and_call_what_it_was_given(
    world: World, monkeypatch: pytest.MonkeyPatch, verdict: object, code: int
) -> None:
    from xllm_kernel.numerics.suite import PreparedCase

    def prepare(case: Any, plan: Any) -> PreparedCase:
        return PreparedCase(lambda: 1, lambda function: verdict)  # type: ignore[arg-type,return-value]

    _replace_case_method(monkeypatch, "prepare", prepare)
    outcome = world.run("numerics")
    assert outcome.code == code
    if code == 1:
        assert "never called" in outcome.rows[0]["reason"]


def test_broken_artefact_is_an_error_and_exits_3(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import affine.suite

    def refuse(self: Any, device: str, mode: str, implementation: str) -> Any:
        raise ArtifactError("hash differs")

    monkeypatch.setattr(affine.suite.Suite, "prepare", refuse)
    outcome = world.run("numerics")
    assert (outcome.code, outcome.report["reason"]) == (3, "ArtifactError: hash differs")


def test_plan_with_another_name_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    import affine.suite

    honest = affine.suite.Suite.prepare
    monkeypatch.setattr(
        affine.suite.Suite, "prepare", lambda self, d, m, i: honest(self, d, m, "cpu.other.affine")
    )
    outcome = world.run("numerics")
    assert outcome.code == 2
    assert "the suite prepared cpu.other.affine" in outcome.report["reason"]


def test_threads_are_set_and_reported(world: World) -> None:
    before = torch.get_num_threads()
    try:
        outcome = world.run("numerics", "--threads", "1")
    finally:
        torch.set_num_threads(before)
    assert outcome.report["environment"]["threads"] == 1
    assert outcome.report["settings"]["threads"] == 1


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (("affine.suite", "affine.suite"), "must have one suite"),
        (("affine",), "must export SUITE"),
    ],
)
def test_suite_catalogue_refuses_doubles(
    monkeypatch: pytest.MonkeyPatch, modules: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(suite_catalog, "_BUILTINS", modules)
    with pytest.raises(ConfigurationError, match=message):
        suite_catalog.suites()


def test_suite_catalogue_refuses_an_implementation_in_two_suites(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import affine.suite

    thief = affine.suite.Suite()
    monkeypatch.setattr(thief, "operation", "another", raising=False)
    module = type(sys)("thief_suite")
    module.SUITE = thief  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "thief_suite", module)
    monkeypatch.setattr(suite_catalog, "_BUILTINS", ("affine.suite", "thief_suite"))
    with pytest.raises(ConfigurationError, match=r"cpu\.plain\.affine.*must belong to one suite"):
        suite_catalog.suites()


def test_builtin_suites_agree_with_the_declared_backends() -> None:
    from xllm_kernel import catalog

    operations = catalog.operations()
    for name, suite in suite_catalog.suites().items():
        declared = {i for backend in operations[name].backends for i in backend.implementations}
        assert set(suite.implementations) == declared


@BOTH
def test_both_commands_run_the_default_torch_solution(
    run_python: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    options = ["--rows", "1", "3", "--widths", "64", "--dtypes", "bfloat16", "float32"]
    done = run_python(
        *("-m", f"xllm_kernel.{command}", "--operation", "rms_norm", "--device", "cpu"),
        *("--implementation", "cpu.torch.rms_norm", "--output", str(tmp_path / "r.json")),
        *options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Of the certificates' rows, six hold and two have nothing to compare.
    counts = {"numerics": "10 of 12 cases passed, 2 n/a", "benchmark": "4 of 4 cases passed"}
    assert f"PASSED  {counts[command]}\n" in done.stdout
    assert "rms_norm/" not in done.stderr  # no progress where nobody watches
    assert json.loads((tmp_path / "r.json").read_text())["evidence"] == "cpu"


def test_npu_without_its_framework_exits_3_and_names_it(run_python: Callable[..., Any]) -> None:
    done = run_python(
        *("-m", "xllm_kernel.numerics", "--operation", "rms_norm", "--device", "npu"),
        *("--implementation", "npu.xllm_native.rms_norm"),
    )
    assert done.returncode == 3
    assert "torch_npu" in done.stdout


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_leaves_its_report(tmp_path: Path, sent: signal.Signals) -> None:
    import subprocess

    path = tmp_path / "r.json"
    command = [sys.executable, "-m", "xllm_kernel.benchmark"]
    command += ["--implementation", "cpu.torch.rms_norm", "--dtypes", "float32"]
    command += ["--rows", "1", "2", "--widths", "8", "16", "--output", str(path)]
    command += ["--iterations", "10", "--repeats", "1000000"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XLLM_KERNEL_")}
    # A handler of ours is not inherited, unlike the disregard that a background job begins with.
    before = signal.signal(sent, signal.default_int_handler)
    with subprocess.Popen(
        command, env=environment, cwd=REPOSITORY_ROOT, stdout=subprocess.DEVNULL
    ) as process:
        signal.signal(sent, before)
        try:
            _wait_for(lambda: path.exists() and json.loads(path.read_text())["receipt"] is not None)
            process.send_signal(sent)
            assert process.wait(120) == 130
        finally:
            process.kill()  # a broken handler must not leave it running
    report = json.loads(path.read_text())
    assert (report["status"], report["reason"]) == ("error", "interrupted")
    assert report["coverage"]["not_run"] >= 1
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["r.html", "r.json", "r.md"]


def _wait_for(condition: Callable[[], bool]) -> None:
    import time

    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
