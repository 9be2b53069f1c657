"""Candidates whose results are right and whose times are not those of the work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import led
import pytest
import torch
from test_benchmark_timing import _TickingClock

from xllm_kernel.benchmark import honesty
from xllm_kernel.numerics.bound import Expectation, Recipe, bind_case
from xllm_kernel.numerics.case_run import CaseEndedError, Subject
from xllm_kernel.numerics.compare import Expected
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.numerics.tolerance import Earned
from xllm_kernel.platforms.captured import eager
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.registry import PreparedKernel

WORK_NS = 100_000


class _Case:
    """Doubles its argument, which takes 100 us of a virtual clock."""

    case_id, parameters = "double", {}

    def unsupported_reason(self, plan: PreparedKernel) -> None:
        return None

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        return bind_case(plan, Recipe(self._make, self._expect))

    def _make(self, number: int) -> dict[str, Any]:
        return {"values": torch.randn(64, generator=torch.Generator().manual_seed(number))}

    def _expect(self, arguments: Any, device: torch.device) -> Expectation:
        exact = 2.0 * arguments["values"].double()
        earned = Earned(factor=1.5, worst=0.5, rms=0.29, draws=1)
        return Expectation(Expected(exact, torch.float32, device, earned))


def _subject(function: Callable[[torch.Tensor], torch.Tensor]) -> Subject:
    blank = led.plan()
    plan = PreparedKernel(blank.spec, function, 1, ())
    case = _Case()
    prepared = case.prepare(plan)
    return Subject(CpuPlatform(), plan, "eager", case, prepared, eager(prepared.function))


def _by_value(clock: _TickingClock) -> Callable[[torch.Tensor], torch.Tensor]:
    known: dict[bytes, torch.Tensor] = {}

    def double(values: torch.Tensor) -> torch.Tensor:
        key = bytes(values.view(torch.uint8).tolist())
        if key not in known:
            clock.spend(WORK_NS)
            known[key] = 2 * values
        return known[key].clone()

    return double


def _by_value_later(clock: _TickingClock) -> Callable[[torch.Tensor], torch.Tensor]:
    seen: Counter[bytes] = Counter()

    def double(values: torch.Tensor) -> torch.Tensor:
        key = bytes(values.view(torch.uint8).tolist())
        seen[key] += 1
        if seen[key] <= 10:
            clock.spend(WORK_NS)
        return 2 * values

    return double


def _by_version(clock: _TickingClock) -> Callable[[torch.Tensor], torch.Tensor]:
    known: dict[tuple[int, int], torch.Tensor] = {}

    def double(values: torch.Tensor) -> torch.Tensor:
        key = values.data_ptr(), values._version
        if key not in known:
            clock.spend(WORK_NS)
            known[key] = 2 * values
        return known[key].clone()

    return double


def _honest(clock: _TickingClock, ns: int = WORK_NS) -> Callable[[torch.Tensor], torch.Tensor]:
    def double(values: torch.Tensor) -> torch.Tensor:
        clock.spend(ns)
        return 2 * values

    return double


@pytest.mark.parametrize("cheat", [_by_value, _by_value_later, _by_version])
def test_a_candidate_that_remembers_results_is_found_though_they_are_right(cheat: Any) -> None:
    clock = _TickingClock()
    subject = _subject(cheat(clock))
    assert subject.prepared.validate(subject.prepared.function)["status"] == "passed"
    with pytest.raises(CaseEndedError, match=r"new data takes .* times") as ended:
        honesty.check(subject, clock)
    assert (ended.value.status, ended.value.stage) == ("failed", "timing")


@pytest.mark.parametrize("checks", [True, False])
def test_a_candidate_that_leaves_work_out_where_calls_follow_closely_is_found(checks: bool) -> None:
    clock, last = _TickingClock(), [(-WORK_NS, -1)]

    def double(values: torch.Tensor) -> torch.Tensor:
        at, where = last[0]
        soon = clock.now - at < 20_000
        same = not checks or where == values.data_ptr()
        if soon and same:
            clock.spend(1_000)
            result = kept[0].clone()
        else:
            clock.spend(WORK_NS)
            result = 2 * values
            kept[:] = [result.clone()]
        last[0] = clock.now, values.data_ptr()
        return result

    kept: list[torch.Tensor] = []
    subject = _subject(double)
    refresh = subject.prepared.refresh
    assert refresh is not None

    def slow_refresh(number: int) -> None:
        clock.spend(1_000_000)
        refresh(number)

    prepared = replace(subject.prepared, refresh=slow_refresh)
    with pytest.raises(CaseEndedError, match=r"many in a row|soon after a call on other data"):
        honesty.check(replace(subject, prepared=prepared), clock)


def test_an_honest_candidate_passes_and_is_judged_by_the_data_that_stand_then() -> None:
    clock = _TickingClock()
    subject = _subject(_honest(clock))
    honesty.check(subject, clock)
    assert honesty.remembered(subject, clock) == pytest.approx(1.0, rel=1e-2)
    assert subject.prepared.validate(subject.prepared.function)["status"] == "passed"


def test_calls_too_short_to_gain_by_are_not_compared() -> None:
    clock = _TickingClock()
    assert honesty.remembered(_subject(_honest(clock, 5_000)), clock) is None


def test_a_call_that_others_slowed_down_is_no_remembered_one() -> None:
    clock, calls = _TickingClock(), []

    def double(values: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        clock.spend(WORK_NS * (9 if len(calls) % 4 == 1 else 1))  # half of the calls on new data
        return 2 * values

    assert honesty.remembered(_subject(double), clock) == pytest.approx(1.0, rel=1e-2)


def test_times_that_stand_for_no_device_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _TickingClock()
    monkeypatch.setattr(CpuPlatform, "evidence", "simulated")
    assert honesty.remembered(_subject(_by_value(clock)), clock) is None


def test_slow_calls_end_the_comparison_in_time() -> None:
    clock = _TickingClock()
    calls = []

    def double(values: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        clock.spend(1_500_000_000)
        return 2 * values

    assert honesty.remembered(_subject(double), clock) == pytest.approx(1.0, rel=1e-2)
    assert len(calls) == 2


def test_calls_that_something_else_held_up_are_no_remembered_ones() -> None:
    clock, calls = _TickingClock(), []

    def double(values: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        clock.spend(WORK_NS * (9 if len(calls) % 2 and len(calls) > 1 else 1))
        return 2 * values

    assert honesty.remembered(_subject(double), clock) == pytest.approx(1.0, rel=1e-2)


def test_a_suspicion_that_one_later_call_clears_is_none() -> None:
    clock, calls = _TickingClock(), []

    def double(values: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        # A new call, 32 that may be remembered, and one on data that was seen.
        held_up = len(calls) % 34 == 1 and len(calls) < 34 * 20
        clock.spend(WORK_NS * (9 if held_up else 1))
        return 2 * values

    assert honesty.remembered(_subject(double), clock) == pytest.approx(1.0, rel=1e-2)
    assert len(calls) == 34 * 21


def test_an_output_that_is_still_written_after_the_call_is_found() -> None:
    go, threads = threading.Event(), []

    def double(values: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(values)

        def late() -> None:
            go.wait()
            out.copy_(2 * values)

        threads.append(threading.Thread(target=late))
        threads[-1].start()
        return out

    def wait(seconds: float) -> None:
        go.set()
        for thread in threads:
            thread.join()

    assert honesty.late_elements(_subject(double), wait) == "output 0"


def test_an_argument_that_is_written_late_is_found_where_only_a_reset_says_that_any_is() -> None:
    buffer, quiet = torch.zeros(64), torch.ones(64)
    subject = _subject(lambda values: values.clone())
    prepared = replace(
        subject.prepared,
        reset=Reset(lambda: None, every_call=False),
        arguments={"quiet": quiet, "scale": 2.0, "buffer": buffer},
    )
    subject = replace(subject, prepared=prepared)
    assert honesty.late_elements(subject, lambda seconds: None) is None
    found = honesty.late_elements(subject, lambda seconds: (buffer.add_(1), None)[1])
    assert found == "output 2"


def test_late_work_withdraws_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(honesty, "late_elements", lambda subject: "output 0")
    clock = _TickingClock()
    with pytest.raises(CaseEndedError, match="changed after the call had returned"):
        honesty.check(_subject(_honest(clock)), clock)


def test_an_output_that_stands_when_the_call_returns_is_no_late_one() -> None:
    waits: list[float] = []
    assert honesty.late_elements(_subject(_honest(_TickingClock())), waits.append) is None
    assert waits == [0.02, 0.02]
