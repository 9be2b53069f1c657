"""Operators that mutate: put back before every call, outside of the timed spans, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import led
import pytest
import torch
from test_benchmark_timing import _TickingClock

from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import HOT
from xllm_kernel.numerics.case_run import CaseEndedError, CaseRun, RefusedError
from xllm_kernel.numerics.compare import judge
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.storage import ArgumentGuard
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.cpu import CpuPlatform


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.view(torch.uint8).tolist())


def test_iteration_1_and_10000_see_byte_identical_inputs() -> None:
    residual = torch.randn(6, generator=torch.Generator().manual_seed(1))
    guard = ArgumentGuard({"residual": residual}, ("residual",))
    seen: list[bytes] = []

    def mutate() -> None:
        seen.append(_bytes(residual))
        residual.add_(1.0).mul_(3.0)

    clock, counts = _TickingClock(), {"iterations": 10_000, "repeats": 1}
    told = led.run(CpuPlatform(), eager(mutate), clock, Reset(guard.reset), **counts)
    assert len(seen) > 10_000
    assert len(set(seen)) == 1
    assert told.timed[0]["reset_before"] == "every call"
    seen.clear()
    led.run(CpuPlatform(), eager(mutate), clock, **counts)  # what the reset is for
    assert len(set(seen)) > 1


@pytest.mark.parametrize(("every_call", "resets"), [(True, 15), (False, 6)])
def test_reset_is_in_no_figure_but_its_own(every_call: bool, resets: int) -> None:
    clock, order = _TickingClock(), []

    def reset() -> None:
        order.append("reset")
        clock.spend(50_000)

    def call() -> None:
        order.append("call")
        clock.spend(2_000)

    told = led.run(CpuPlatform(), eager(call), clock, Reset(reset, every_call))
    assert told.column("wall_us") == pytest.approx([2.0] * 3, rel=1e-3)
    assert told.column("reset_us") == pytest.approx([50.0] * 3, rel=1e-3)
    assert "reset_us" not in told.samples[0]["empty"]
    assert order.count("reset") == resets
    assert order.count("call") == 15  # four and one that warms up, three times
    assert order[0] == "reset"
    if every_call:
        assert order == ["reset", "call"] * 15


def test_timing_refuses_a_mutating_operator_without_reset_only() -> None:
    stage = Timing((HOT,))
    plan = led.plan(mutates=("residual",))
    assert "declares no reset" in str(stage.refusal(plan))
    assert stage.refusal(plan, Reset(lambda: None)) is None


class _Case:
    """An operator that adds one to its argument, and says what it saw."""

    case_id, parameters = "add", {}

    def __init__(self, reset: bool) -> None:
        self.seen: list[float] = []
        self.resets = 0
        self._with_reset = reset

    def unsupported_reason(self, plan: Any) -> None:
        return None

    def prepare(self, plan: Any) -> PreparedCase:
        values = torch.zeros(4)
        guard = ArgumentGuard({"values": values}, ("values",), ("values",))

        def add() -> None:
            self.seen.append(values[0].item())
            values.add_(1.0)

        def reset() -> None:
            self.resets += 1
            guard.reset()

        def validate(function: Callable[[], object]) -> dict[str, Any]:
            verdict = judge(function, None, guard)
            right = bool((values == 1).all())
            return verdict if right else {**verdict, "status": "failed", "reason": str(values)}

        return PreparedCase(add, validate, reset=Reset(reset) if self._with_reset else None)


def _run(case: _Case, stage: Timing | None, platform: Any = None) -> Row:
    row = Row(case.case_id, case.parameters)
    plan = led.plan(mutates=("values",))
    CaseRun(platform or CpuPlatform(), plan, "eager", 3, stage, ask=led.Led(2)).run(case, row)
    return row


def test_every_call_of_a_case_sees_its_arguments_as_they_were_made() -> None:
    case = _Case(reset=True)
    row = _run(case, Timing((HOT,), iterations=5))
    assert row.status == "passed"
    assert set(case.seen) == {0.0}
    # Validated, warm, captured, timed with one before that warms up, after timing, examined twice.
    assert len(case.seen) == 1 + 3 + 1 + 2 * (1 + 5) + 1 + 2
    assert row.durations["reset_s"] > 0.0


def test_a_mutating_case_without_reset_is_refused_before_it_runs() -> None:
    case = _Case(reset=False)
    with pytest.raises(RefusedError, match=r"n: its contract mutates values.*no reset"):
        _run(case, Timing((HOT,)))
    assert case.seen == []


class _GraphPlatform(CpuPlatform):
    """Runs several calls as one, as a graph does."""

    def capture(self, function: Callable[[], Any], mode: str, **options: Any) -> Captured:
        return Captured(calls=64, replay=function, outputs=lambda: [None] * 64)


def test_calls_that_run_as_one_cannot_be_put_back_between() -> None:
    row_of = _Case(reset=True)
    with pytest.raises(CaseEndedError, match="64 calls as one") as ended:
        _run(row_of, None, _GraphPlatform())
    assert ended.value.status == "not_applicable"


def test_guard_lets_elements_be_written_but_no_gap() -> None:
    storage = torch.zeros(4, 10)
    guard = ArgumentGuard({"view": storage[:, :8]}, ("view",))
    storage[:, :8] = 5
    assert guard.mutation() is None
    storage[2, 9] = 1
    assert guard.mutation() is None
    assert "outside of its elements" in str(guard.stray())
    guard.reset()
    assert bool((storage == 0).all())


def test_guard_asks_for_the_change_that_the_case_declares() -> None:
    values = torch.zeros(4, dtype=torch.bfloat16)
    guard = ArgumentGuard({"values": values}, ("values",), ("values",))
    assert "must be written to" in str(guard.mutation())
    values[1] = 1
    assert guard.mutation() is None


@pytest.mark.parametrize("operation", ["rms_norm_out", "fused_add_rms_norm_inplace"])
def test_the_benchmark_times_mutating_operators_and_reports_the_reset(
    run_python: Callable[..., Any], tmp_path: Path, operation: str
) -> None:
    done = run_python(
        *("-m", "xllm_kernel.benchmark", "--implementation", f"cpu.torch.{operation}"),
        *("--rows", "2", "--widths", "64", "--iterations", "4", "--repeats", "3"),
        *("--output", str(tmp_path / "r.json")),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " reset " in done.stdout
    report = json.loads((tmp_path / "r.json").read_text())
    for row in report["rows"]:
        assert row["status"] == "passed"
        assert len(row["timings"]["regimes"]["hot"]["reset_us"]["samples"]) == 3
    try:
        import jsonschema
    except ImportError:
        return
    from conftest import REPOSITORY_ROOT

    schema = json.loads((REPOSITORY_ROOT / "docs/schema/report.schema.json").read_text())
    jsonschema.validate(report, schema)
