"""The mutation score's report: its verdict, its sentences, and who is tried where.

Made of results by hand; that suites kill their faults is in ``test_self_test.py``.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import self_test
from xllm_kernel.numerics.planted import report, run
from xllm_kernel.numerics.self_test import main

KILLED = {"fault": "zeros", "status": "killed", "text": "returns zeros", "check": "values"}
SURVIVED = {
    "fault": "stale",
    "status": "survived",
    "text": "returns the last result",
    "reason": "all cases passed\nand more",
}
LEFT_OUT = {"status": "not_applicable", "text": "writes", "reason": "nothing is written"}


def _result(*faults: dict[str, Any], failure: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "operation": "norm",
        "implementation": "cpu.a.norm",
        "device": "cpu",
        "mode": "eager",
        "evidence": "cpu",
        "cases": 7,
        "faults": list(faults),
        "killed": sum(f["status"] == "killed" for f in faults),
        "applicable": sum(f["status"] != "not_applicable" for f in faults),
        "honest_failure": failure,
        **more,
    }


ABSENT = {"operation": "norm", "implementation": "cpu.missing.norm", "absent": "no build"}
BROKEN = {"operation": "norm", "implementation": "cpu.b.norm", "broken": "ended with 1"}


@pytest.mark.parametrize(
    ("results", "status", "code", "counts"),
    [
        ([_result(KILLED, KILLED)], "passed", 0, (2, 2)),
        ([_result(KILLED), ABSENT, _result(KILLED)], "passed", 0, (2, 2)),
        ([_result(KILLED), _result(SURVIVED, KILLED)], "failed", 1, (2, 3)),
        ([_result(KILLED), _result(failure="the honest one failed")], "failed", 1, (1, 1)),
        ([_result(KILLED), BROKEN], "failed", 1, (1, 1)),
        ([BROKEN], "failed", 1, (0, 0)),
        ([ABSENT], "not_run", 3, (0, 0)),
        ([], "not_run", 3, (0, 0)),
    ],
)
def test_score_is_a_success_only_where_every_fault_was_killed(
    results: list[dict[str, Any]], status: str, code: int, counts: tuple[int, int]
) -> None:
    document = report.document(results, ["--self-test", "--faults", "zeros"])
    assert (document["status"], document["exit_code"]) == (status, code)
    assert (document["killed"], document["applicable"]) == counts
    assert document["suites"] == results
    assert (document["schema_version"], document["kind"]) == (1, "self-test")
    start = ["python", "-m", "xllm_kernel.numerics"]
    assert document["command"] == [*start, "--self-test", "--faults", "zeros"]


def test_text_names_scores_killers_survivors_and_what_does_not_apply() -> None:
    left_out = [{**LEFT_OUT, "fault": name} for name in ("scribble", "scrawl")]
    other = {**LEFT_OUT, "fault": "late", "reason": "no graph"}
    by_shape = {**KILLED, "check": "shape"}
    faults = (by_shape, KILLED, SURVIVED, KILLED, *left_out, other)
    results = [_result(*faults), ABSENT, BROKEN, _result(failure="it is wrong")]
    assert report.text(report.document(results, [])).splitlines() == [
        "Planted faults, killed / applicable",
        "",
        "  cpu.a.norm        3 / 4 in 7 cases (cpu eager, cpu)",
        "  cpu.missing.norm  not tried: no build",
        "  cpu.b.norm        BROKEN: ended with 1",
        "  cpu.a.norm        FAILED without any fault: it is wrong",
        "",
        "  cpu.a.norm",
        "    killed by  values 2, shape 1",
        "    SURVIVED  stale: returns the last result (all cases passed)",
        "    not applicable, nothing is written: scribble, scrawl",
        "    not applicable, no graph: late",
        "",
        "FAILED  3 of 4 killed, 75.0 %",
    ]


def test_text_of_nothing_tried_has_no_share_and_of_a_simulation_its_notice() -> None:
    assert report.text(report.document([ABSENT], [])).endswith("\n\nNOT_RUN  0 of 0 killed")
    simulated = _result(KILLED, evidence="simulated")
    *_, verdict, notice = report.text(report.document([simulated, simulated], [])).splitlines()
    assert verdict == "PASSED  1 of 1 killed, 100.0 %".replace("1", "2", 2)
    assert "is no evidence of accuracy" in notice


SUITES = {
    name: SimpleNamespace(
        operation=name, implementations=(f"cpu.a.{name}", f"npu.b.{name}", f"cpu.c.{name}")
    )
    for name in ("norm", "scale")
}


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test.catalog, "suites", lambda: SUITES)


@pytest.fixture
def children(suites: None, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands of the children; each leaves a report, but that of ``cpu.c`` leaves none."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        name = command[command.index("--implementation") + 1]
        if name.startswith("cpu.c"):
            return subprocess.CompletedProcess(command, -11)
        assert options["stdout"] == subprocess.PIPE  # one report is printed, the whole one
        document = report.document([_result(KILLED, implementation=name)], [])
        Path(command[command.index("--output") + 1]).write_text(json.dumps(document))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(self_test.subprocess, "run", run)
    return commands


def test_every_implementation_of_the_device_is_tried_in_a_child(
    children: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "score.json"
    assert main(["--faults", "zeros", "stale", "--output", str(path)]) == 1
    tried = [c[c.index("--implementation") + 1] for c in children]
    assert tried == ["cpu.a.norm", "cpu.c.norm", "cpu.a.scale", "cpu.c.scale"]
    for command in children:
        at = command.index("--faults")
        assert command[at : at + 3] == ["--faults", "zeros", "stale"]
        assert command[1:4] == ["-m", "xllm_kernel.numerics", "--self-test"]
        assert command[command.index("--device") + 1] == "cpu"
        assert command[command.index("--mode") + 1] == "eager"
    written = path.read_text()
    document = json.loads(written)
    assert written == json.dumps(document, indent=2) + "\n"
    assert document["suites"][1] == {
        "operation": "norm",
        "implementation": "cpu.c.norm",
        "broken": "its process ended with -11 and no report",
    }
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"{name} ..." for name in tried]
    assert "cpu.a.scale  1 / 1 in 7 cases" in printed.out


def test_one_operation_of_another_device_is_tried_alone_with_the_suites_options(
    children: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--operation", "scale", "--device", "npu", "--mode", "aclgraph", "--rows", "3"]
    assert main(options) == 0
    (command,) = children
    assert command[command.index("--implementation") + 1] == "npu.b.scale"
    assert command[command.index("--operation") + 1] == "scale"
    assert "--faults" not in command
    assert " ".join(command).endswith("--device npu --mode aclgraph --rows 3")
    assert "1 of 1 killed" in capsys.readouterr().out


class _FaultRun:
    """Stands for the planting, which needs PyTorch."""

    def __init__(self, request: Any, only: tuple[str, ...] | None) -> None:
        self._request, self._only = request, only

    def results(self) -> dict[str, Any]:
        if self._only == ("none",):
            raise ConfigurationError("no such fault")
        found = _result(KILLED)
        tried = {"only": self._only, "arguments": list(self._request)}
        return {k: found[k] for k in found if k not in ("implementation", "device")} | tried


@pytest.mark.parametrize(
    ("options", "only"), [((), None), (("--faults", "zeros", "stale"), ["zeros", "stale"])]
)
def test_named_implementation_is_tried_in_this_process(
    suites: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
    only: list[str] | None,
) -> None:
    monkeypatch.setattr(run, "FaultRun", _FaultRun)
    monkeypatch.setattr(self_test.arguments, "parse", lambda kind, argv: (kind, *argv))
    path = tmp_path / "score.json"
    named = ["--implementation", "npu.b.scale", "--output", str(path)]
    assert main([*named, *options, "--device", "npu", "--rows", "3"]) == 0
    (suite,) = json.loads(path.read_text())["suites"]
    assert suite["only"] == only
    assert suite["implementation"] == "npu.b.scale"
    assert (suite["device"], suite["mode"]) == ("npu", "eager")
    asked = "numerics --implementation npu.b.scale --device npu --mode eager --rows 3"
    assert suite["arguments"] == asked.split()


@pytest.mark.parametrize("more", [("--list",), ("--case", "a"), ("--fail-fast",)])
def test_options_of_a_run_are_refused(
    suites: None, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--implementation", "cpu.a.norm", *more])
    assert ended.value.code == 2
    assert f"{more[0]} is an option of a run" in capsys.readouterr().err


def test_what_cannot_be_tried_is_absent_and_no_success(
    suites: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "FaultRun", _FaultRun)
    monkeypatch.setattr(self_test.arguments, "parse", lambda kind, argv: (kind, *argv))
    assert main(["--implementation", "cpu.a.norm", "--faults", "none"]) == 3
    assert "cpu.a.norm  not tried: no such fault" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--implementation", "cpu.z.norm"], "cpu.z.norm implements no such operation"),
        (["--implementation", "cpu.a.norm", "--operation", "scale"], "implements no such"),
        (["--operation", "zzz"], "choose from"),
    ],
)
def test_usage_errors_exit_2(
    children: list[list[str]],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(options)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err
    assert children == []
