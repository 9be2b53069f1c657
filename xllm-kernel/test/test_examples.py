"""The worker example, the examples' command lines, and the parts of the demo that judge."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import need
from example_modules import EXAMPLES, load_example

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]

SIMD, TORCH = "cpu.simd.rms_norm", "cpu.torch.rms_norm"
FUNCTIONAL = "torch.nn.functional.rms_norm"


# The worker


@pytest.mark.parametrize("override", [None, "torch"])
def test_worker_on_cpu_logs_the_pair_and_both_norms_are_right(
    run_python: RunPython, override: str | None
) -> None:
    need("torch")
    env = {"XLLM_KERNEL_OVERRIDE_RMS_NORM": override} if override else {}
    done = run_python(str(EXAMPLES / "worker.py"), "--device", "cpu", env=env)
    assert done.returncode == 0, done.stderr
    assert f"rms_norm -> cpu.{override or ''}" in done.stdout
    q_a, latent = [line for line in done.stdout.splitlines() if "strides" in line]
    assert "input [17, 2048] strides [2048, 1]" in q_a
    assert q_a.endswith(": right")
    assert "input [17, 512] strides [576, 1], output strides [512, 1]" in latent
    assert latent.endswith(": right")


def test_worker_on_npu_without_torch_npu_exits_3_and_names_it(run_python: RunPython) -> None:
    if importlib.util.find_spec("torch_npu") is not None:
        pytest.skip("torch_npu is installed here")
    done = run_python(str(EXAMPLES / "worker.py"), "--device", "npu")
    assert done.returncode == 3
    assert done.stderr.startswith("DependencyAbsentError: ")
    assert "torch_npu" in done.stderr


def test_worker_with_a_wrong_norm_exits_1() -> None:
    need("torch")
    import torch

    def without_root(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        x = input.float()
        return (x / (x.square().mean(-1, keepdim=True) + eps) * weight).to(input.dtype)

    worker = load_example("worker", EXAMPLES)
    bindings = {"rms_norm": SimpleNamespace(function=without_root)}
    assert worker.preprocess("cpu", bindings) == worker.EXIT_WRONG_RESULT


# Command lines


@pytest.mark.parametrize("script", ["worker.py", "smollm2/generate.py", "smollm2/demo.py"])
def test_help_needs_no_torch(run_python: RunPython, script: str) -> None:
    code = (
        "import runpy, sys; sys.modules['torch'] = None; "
        "sys.argv = [sys.argv[1], '--help']; sys.path.insert(0, sys.argv[0].rpartition('/')[0]); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = run_python("-c", code, str(EXAMPLES / script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--norm", "torch-functional", "--override", "simd"], "--override needs --norm bound"),
        (["--tokens", "0"], "must be at least 1, got 0"),
        (["--prompt", ""], "--prompt must not be empty"),
    ],
)
def test_generate_with_senseless_options_is_a_usage_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load_example("generate").parse_arguments(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_generate_with_a_choice_that_cannot_be_honoured_exits_3(run_python: RunPython) -> None:
    for module in ("torch", "gguf", "tokenizers", "safetensors"):
        need(module)
    done = run_python(
        str(EXAMPLES / "smollm2/generate.py"),
        env={"XLLM_KERNEL_OVERRIDE_RMS_NORM": "no.such.kernel"},
    )
    assert done.returncode == 3
    assert "could not run: " in done.stderr
    assert "no.such.kernel" in done.stderr


def test_generate_without_a_package_exits_3_and_names_it(run_python: RunPython) -> None:
    need("torch")
    code = (
        "import sys; sys.modules['gguf'] = None; sys.path.insert(0, sys.argv.pop(1)); "
        "import generate; sys.exit(generate.main(['--norm', 'torch-functional']))"
    )
    for module in ("tokenizers", "safetensors"):
        need(module)
    done = run_python("-c", code, str(EXAMPLES / "smollm2"))
    assert done.returncode == 3
    assert "gguf" in done.stderr
    assert "./dev setup" in done.stderr


# Ratios


def _benchmark(prefill_us: float, decode_us: float, status: str = "passed") -> dict[str, Any]:
    rows = []
    for phase, shape, times in (
        ("prefill", [5, 8], (prefill_us, 3 * prefill_us)),
        ("decode", [1, 8], (decode_us, 3 * decode_us)),
    ):
        for norm, time_us in zip(("attn_norm", "output_norm"), times, strict=True):
            parameters = {"name": f"{phase}.{norm}", "shape": shape}
            wall = {"median": time_us, "unstable": norm == "attn_norm"}
            timings = {"regimes": {"hot": {"wall_us": wall}}}
            row = {"case_id": f"{phase}/{norm}", "status": status, "parameters": parameters}
            rows.append(row | {"timings": timings})
    return {"rows": rows}


def test_alternating_order_swaps_who_is_first() -> None:
    order = load_example("ratios").alternating_order("A", "B", 3)
    assert order == ["A", "B", "B", "A", "A", "B"]


def test_compare_gives_a_ratio_a_round_by_phase() -> None:
    ours = [_benchmark(1, 4), _benchmark(2, 4), _benchmark(1, 4)]
    theirs = [_benchmark(4, 2), _benchmark(4, 2), _benchmark(2, 2)]
    prefill, decode = load_example("ratios").compare(ours, theirs)
    assert (prefill.phase, prefill.calls, prefill.shape) == ("prefill", 2, (5, 8))
    assert prefill.ratios == (0.25, 0.5, 0.5)
    assert (prefill.candidate_us, prefill.baseline_us) == (2, 8)  # of calls with 1 and 3 times
    assert prefill.unstable == 6
    assert decode.as_dict()["ratios"] == (2, 2, 2)
    assert {prefill.as_dict()[f"ratio_{k}"] for k in ("min", "median", "max")} == {0.25, 0.5}


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ([], [], "rounds must be equal in number"),
        ([_benchmark(1, 1)], [_benchmark(1, 1)] * 2, "rounds must be equal in number"),
        ([_benchmark(1, 1)], [_benchmark(1, 1, "failed")], "every case must have passed"),
        ([_benchmark(1, 1)], [{"rows": _benchmark(1, 1)["rows"][:3]}], "the same cases"),
        ([{"rows": []}], [{"rows": []}], "no timed case belongs to the phase prefill"),
    ],
)
def test_compare_of_reports_that_do_not_match_is_refused(
    ours: list[Any], theirs: list[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_example("ratios").compare(ours, theirs)


# Steps


def _steps(tmp_path: Path) -> Any:
    style = load_example("terminal").Style(live=False)
    return load_example("steps").Steps(3, tmp_path, tmp_path / "logs", style)


def test_step_keeps_output_command_and_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_RMS_NORM", "torch")
    code = "import os; print(os.environ.get('XLLM_KERNEL_OVERRIDE_RMS_NORM'), os.environ['ADDED'])"
    done = _steps(tmp_path).run("say it", ["-c", code], settings={"ADDED": "yes"})
    assert done.output == "None yes\n"  # an override from outside reaches no step
    assert done.command.startswith("ADDED=yes python -c ")
    assert "None yes" in (tmp_path / "logs/01.say-it.log").read_text()
    assert re.search(r"^\[ 1/3\] say it +ok +\d", capsys.readouterr().out)


def test_step_that_fails_says_status_log_and_last_words(tmp_path: Path) -> None:
    code = "import sys; print('the reason', file=sys.stderr); sys.exit(7)"
    steps = _steps(tmp_path)
    with pytest.raises(load_example("steps").StepError) as failed:
        steps.run("go wrong", ["-c", code], accept=(0, 1))
    for part in ("go wrong: exit status 7", "01.go-wrong.log", "the reason"):
        assert part in str(failed.value)
    assert steps.done == []


# The demo's verdicts


def test_timed_files_cover_both_phases_evenly(tmp_path: Path) -> None:
    for ordinal in range(122):
        phase = "prefill" if ordinal < 61 else "decode"
        (tmp_path / f"{ordinal:03d}.{phase}.norm.safetensors").touch()
    chosen = [path.name[:3] for path in load_example("demo").timed_files(tmp_path)]
    assert chosen == [f"{o:03d}" for start in (0, 61) for o in range(start, start + 61, 15)]


def _text_report(norm: str, tokens: list[int], operators: Mapping[str, int]) -> dict[str, Any]:
    result = {"prompt": "p", "tokens": tokens, "text": f"{tokens}", "smallest_margin": 0.1}
    return {
        "norm": norm,
        "norms_per_forward": 61,
        "norm_operators_per_forward": dict(operators),
        "results": [result],
    }


def _demo(tmp_path: Path) -> Any:
    return load_example("demo").Demo(_steps(tmp_path), tmp_path, rounds=2, revision="r")


def _text_reports(**changed: Any) -> dict[str, Any]:
    reports = {
        "reference": _text_report(FUNCTIONAL, [1, 2], {}),
        SIMD: _text_report(SIMD, [1, 2], {"xllm_kernel::simd_rms_norm": 61}),
        TORCH: _text_report(TORCH, [1, 2], {"aten::rms_norm": 61}),
    }
    reports[SIMD] |= changed
    return reports


def test_demo_with_equal_texts_finds_no_failure(tmp_path: Path) -> None:
    demo = _demo(tmp_path)
    demo.check_texts(_text_reports())
    assert demo.failures == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"results": _text_report(SIMD, [1, 3], {})["results"]},
            f"must continue 'p' as {FUNCTIONAL} does",
        ),
        ({"norm_operators_per_forward": {}}, "must be called 61 times in a forward pass, got 0"),
        ({"norm": TORCH}, f"{SIMD} was asked for, {TORCH} was bound"),
    ],
)
def test_demo_with_a_wrong_text_report_fails_with_the_reason(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    demo = _demo(tmp_path)
    demo.check_texts(_text_reports(**changed))
    assert len(demo.failures) == 1
    assert message in demo.failures[0]


class _ReportWriter:
    """Stands in for the steps: writes a report where the command would."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.done: list[Any] = []
        self._report = report

    def run(self, title: str, arguments: list[str], **_: Any) -> None:
        Path(arguments[arguments.index("--output") + 1]).write_text(json.dumps(self._report))


def _numerics(*rows: Mapping[str, Any]) -> dict[str, Any]:
    passed = sum(row["status"] == "passed" for row in rows)
    failed = len(rows) - passed
    coverage = {"total": len(rows), "passed": passed, "failed": failed, "not_applicable": 0}
    status = "failed" if failed or not rows else "passed"
    return {"status": status, "reason": "nothing ran", "coverage": coverage, "rows": rows}


def _numerics_row(status: str, ulp: float) -> dict[str, Any]:
    verdict = {"outputs": [{"max_error_ulp": ulp, "limit_ulp": 2.0}]}
    row = {"case_id": f"case {ulp}", "status": status, "reason": "output[0, 4] is off"}
    return row | {"validation": {"function": verdict}}


def test_demo_validate_of_passing_calls_reports_the_error_nearest_its_limit(
    tmp_path: Path,
) -> None:
    demo = _demo(tmp_path)
    demo.steps = _ReportWriter(_numerics(_numerics_row("passed", 1.5), _numerics_row("passed", 1)))
    assert demo.validate(SIMD)
    assert demo.failures == []
    assert demo.summary["validation"][0]["worst"] == {"ulp": 1.5, "limit_ulp": 2.0}


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            _numerics(_numerics_row("passed", 1), _numerics_row("failed", 9)),
            "got 1 of 2; first case 9: output[0, 4] is off",
        ),
        (_numerics({"case_id": "c", "status": "error", "reason": "r"}), "got 0 of 1; first c: r"),
        (_numerics(), "got 0 of 0; first : nothing ran"),
    ],
)
def test_demo_validate_of_failing_calls_fails_with_the_reason(
    tmp_path: Path, report: dict[str, Any], message: str
) -> None:
    demo = _demo(tmp_path)
    demo.steps = _ReportWriter(report)
    assert not demo.validate(SIMD)
    assert message in demo.failures[0]


def test_demo_times_nothing_after_a_failed_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = _demo(tmp_path)
    monkeypatch.setattr(type(demo), "generate_texts", lambda self: _text_reports())
    monkeypatch.setattr(type(demo), "explain", lambda self: None)
    monkeypatch.setattr(type(demo), "validate", lambda self, name: name == TORCH)
    demo.run()
    assert demo.failures == ["nothing was timed, because validation failed"]
    assert "timing" not in demo.summary


def test_demo_whose_step_fails_exits_1_and_still_writes_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = load_example("demo")
    monkeypatch.setattr(demo, "GENERATE", "no/such/script.py")
    assert demo.main(["--output", str(tmp_path / "demo")]) == 1
    summary = json.loads((tmp_path / "demo/summary.json").read_text())
    assert summary["status"] == "failed"
    assert "exit status 2" in summary["failures"][0]
    assert "- failed: text with" in (tmp_path / "demo/summary.md").read_text()
    assert "FAIL text with" in capsys.readouterr().out


def test_summary_shows_a_text_that_differs(tmp_path: Path) -> None:
    demo = _demo(tmp_path)
    wrong = _text_report(SIMD, [1, 3], {})["results"]
    demo.check_texts(_text_reports(results=wrong))
    shown = load_example("summary").to_terminal(demo.summary, load_example("terminal").Style(False))
    assert f"DIFFERS with {SIMD}: '[1, 3]'" in shown
    assert "0 of 1 continuations are the same" in shown
