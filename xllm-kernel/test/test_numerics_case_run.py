"""The steps of one case, in their order, on a case and a platform made by hand.

Whole runs are in ``test_numerics_cli.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from led import plan as _plan

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import case_run, graph_truth, memory
from xllm_kernel.numerics.case_run import (
    CaseEndedError,
    CaseRun,
    MeasurementError,
    Subject,
    warm_up,
)
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.platforms.captured import Captured, eager

LIMIT = 1 << 20  # elements; what repeats a judgement stops there: docs/validation.md
PASSED = {"status": "passed"}


class _Case:
    """A case that does nothing but say what it was asked for."""

    case_id, parameters = "a/1", {}

    def __init__(self, *elements: int, reset: bool = False, refresh: bool = True) -> None:
        self.did: list[str] = []
        self.verdict: Any = PASSED
        self._elements, self._reset, self._refresh = elements, reset, refresh

    def unsupported_reason(self, plan: Any) -> None:
        return None

    def call(self) -> None:
        self.did.append("call")

    def prepare(self, plan: Any) -> PreparedCase:
        def validate(function: Callable[[], object]) -> Any:
            function()
            return self.verdict

        # Tensors without memory count as any.
        tensors = {f"x{i}": torch.empty(n, device="meta") for i, n in enumerate(self._elements)}
        return PreparedCase(
            lambda: self.call(),
            validate,
            metadata={"made": "by hand"},
            reset=Reset(lambda: self.did.append("reset")) if self._reset else None,
            refresh=(lambda n: self.did.append(f"data {n}")) if self._refresh else None,
            arguments={**tensors, "eps": 0.1},
        )


class _Platform:
    """Counts what is asked of it; captures as eager mode does unless told otherwise."""

    def __init__(self, captured: Captured | None = None) -> None:
        self.calls: list[int | None] = []
        self.synchronized = 0
        self._captured = captured

    def capture(self, function: Any, mode: str, *, calls: int | None, beside: bool) -> Captured:
        self.calls.append(calls)
        return self._captured or eager(function)

    def synchronize(self) -> None:
        self.synchronized += 1


class _Stage:
    """A stage that takes any implementation, or refuses it."""

    def __init__(self, refusal: str | None = None, error: BaseException | None = None) -> None:
        self._refusal, self._error = refusal, error

    def refusal(self, plan: Any, reset: Reset | None = None) -> str | None:
        return self._refusal

    def run(self, subject: Subject, ask: Any) -> dict[str, Any]:
        subject.captured.replay()
        if self._error is not None:
            raise self._error
        return {"asked": ask({"event": "timed"})}

    def examine(self, subject: Subject) -> None:
        subject.captured.replay()


def _answer(question: Any) -> dict[str, Any]:
    return {"to": question["event"]}


class _Seal:
    def broken(self) -> str:
        return "a clock was replaced"


def _run(case: Any, stage: Any = None, mode: str = "eager", **more: Any) -> tuple[Row, list[str]]:
    """Run a case; return its row, and the steps that it took."""
    row, steps = Row("a/1", {}), []
    row.watch = steps.append
    platform = more.pop("platform", None) or _Platform()
    CaseRun(platform, _plan(), mode, 2, stage, **{"ask": _answer, **more}).run(case, row)
    return row, steps


def _ended(case: Any, *arguments: Any, **more: Any) -> CaseEndedError:
    with pytest.raises(CaseEndedError) as ended:
        _run(case, *arguments, **more)
    return ended.value


FIRST = ["prepare", "validate function"]
OTHER_DATA = ["refresh", "validate other_data"]
CAPTURED = ["warmup", "capture", "replay", "validate captured"]
TIMED = [
    *("timing", "replay", "validate after_timing", "examination"),
    *("refresh", "replay", "validate fresh_data"),
]
AGAIN = ["prove", "prepare", *["validate start_guarded"] * 3]


@pytest.mark.parametrize(
    ("case", "stage", "wanted"),
    [
        (_Case(8), None, [*FIRST, *OTHER_DATA, *CAPTURED, *AGAIN]),
        (_Case(8, refresh=False), None, [*FIRST, *CAPTURED, *AGAIN]),
        (_Case(8), _Stage(), [*FIRST, *CAPTURED, *TIMED]),
    ],
)
def test_case_takes_its_steps_in_order(case: _Case, stage: Any, wanted: list[str]) -> None:
    row, steps = _run(case, stage)
    assert (row.status, row.stage, row.reason) == ("passed", None, None)
    assert steps == wanted
    phases = [s.removeprefix("validate ") for s in steps if s.startswith("validate")]
    assert list(row.validation) == list(dict.fromkeys(phases))
    assert row.metadata["made"] == "by hand"
    assert row.metadata.get("asked") == (None if stage is None else {"to": "timed"})
    timed = {"preparation_s", "validation_s", "warmup_s", "capture_s", "replay_s"}
    assert set(row.durations) == timed | ({"timing_s", "examination_s"} if stage else set())
    assert all(seconds >= 0 for seconds in row.durations.values())


def test_other_data_are_the_first_after_the_cases_own() -> None:
    case = _Case(8)
    _run(case)
    assert [did for did in case.did if did != "call"] == ["data 1"]
    # Judged, on other data, warmed up twice, replayed, thrice with the start guarded.
    assert case.did.count("call") == 1 + 1 + 2 + 1 + 3


@pytest.mark.parametrize("elements", [(LIMIT,), (LIMIT // 2, LIMIT // 2), (LIMIT + 1,), (LIMIT, 1)])
def test_steps_that_judge_again_end_at_the_limit(elements: tuple[int, ...]) -> None:
    small = sum(elements) <= LIMIT
    row, steps = _run(_Case(*elements))
    assert ("validate other_data" in steps) == ("validate start_guarded" in steps) == small
    assert "prove" in steps  # at any size
    left_out = f"other data, memory guarded at the start: more than {LIMIT} elements"
    assert row.metadata == {"made": "by hand", **({} if small else {"left_out": left_out})}


def test_reset_is_called_before_every_call_and_before_the_capture() -> None:
    case, platform = _Case(8, reset=True), _Platform()
    row, _ = _run(case, platform=platform)
    did = "".join({"call": "c", "reset": "r"}.get(did, "") for did in case.did)
    # Judged, on other data, warmed up twice; before the capture; replayed; the start guarded.
    assert did == "rc" + "rc" + "rcrc" + "r" + "rc" + "rcrcrc"
    assert platform.calls == [1]
    assert row.durations["reset_s"] >= 0


def test_capture_of_what_needs_no_reset_or_is_timed_chooses_its_calls() -> None:
    for case, stage in ((_Case(8), None), (_Case(8, reset=True), _Stage())):
        platform = _Platform()
        _run(case, stage, platform=platform)
        assert platform.calls == [None]


def test_device_is_awaited_after_warm_up_replays_and_resets() -> None:
    counts = []
    for case in (_Case(8, refresh=False), _Case(8, reset=True, refresh=False)):
        platform = _Platform()
        _run(case, platform=platform)
        counts.append(platform.synchronized)
    assert counts == [2, 2 + 6]


def test_memory_is_guarded_at_either_end_where_a_case_is_judged_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sides: list[str] = []

    @contextmanager
    def guarded(side: str) -> Iterator[None]:
        sides.append(side)
        yield

    monkeypatch.setattr(memory, "guarded", guarded)
    _run(_Case(8))
    assert sides == ["end", "start"]
    _run(_Case(8), _Stage())
    assert sides == ["end", "start"]


@pytest.mark.parametrize("mode", ["eager", "compile", "graph"])
def test_graph_truth_is_asked_of_every_mode_but_eager(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    asked: list[Any] = []

    def examine(*given: Any) -> graph_truth.Outcome:
        asked.append(given)
        return graph_truth.Outcome({"graph_inputs": PASSED}, {"streams": "none here"})

    monkeypatch.setattr(graph_truth, "examine", examine)
    row, _ = _run(_Case(8), mode=mode)
    assert len(asked) == (mode != "eager")
    assert ("graph_inputs" in row.validation) == (mode != "eager")
    told = {"graph_truth_left_out": {"streams": "none here"}} if asked else {}
    assert row.metadata == {"made": "by hand", **told}
    row, _ = _run(_Case(LIMIT + 1), _Stage(), mode=mode)
    assert len(asked) == (mode != "eager")
    told = {"every_step": f"more than {LIMIT} elements"}
    assert row.metadata.get("graph_truth_left_out", told) == told
    assert ("graph_truth_left_out" in row.metadata) == (mode != "eager")


def test_replay_that_graph_truth_fails_ends_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    cause = ValueError("no")
    outcome = graph_truth.Outcome({}, {}, "error", "replay", "why", True, cause)
    monkeypatch.setattr(graph_truth, "examine", lambda *given: outcome)
    ended = _ended(_Case(8), mode="graph")
    assert (ended.status, ended.stage, str(ended)) == ("error", "replay", "why")
    assert ended.crashed
    assert ended.__cause__ is cause


@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_replay_must_have_an_output_for_every_call(outputs: int) -> None:
    captured = Captured(2, lambda: None, lambda: [None] * outputs)
    ended = _ended(_Case(8), platform=_Platform(captured))
    assert (ended.status, ended.stage, ended.crashed) == ("error", "replay", False)
    assert str(ended) == f"a replay makes 2 calls, but has {outputs} outputs"


@pytest.mark.parametrize("calls", [1, 2])
def test_one_call_alone_can_be_put_back_before_its_replay(calls: int) -> None:
    captured = Captured(calls, lambda: None, lambda: [None] * calls)
    case, platform = _Case(8, reset=True), _Platform(captured)
    if calls == 1:
        assert _run(case, platform=platform)[0].status == "passed"
        return
    ended = _ended(case, platform=platform)
    assert (ended.status, ended.stage) == ("not_applicable", "support")
    assert "mode 'eager' runs 2 calls as one" in str(ended)


@pytest.mark.parametrize(
    ("verdict", "status", "reason"),
    [
        ({"status": "failed", "reason": "wrong"}, "failed", "wrong"),
        ({"status": "failed"}, "failed", "the validator gave no reason"),
        ({"status": "fine"}, "error", "must say passed or failed, it returned {'status': 'fine'}"),
        ("x" * 300, "error", "returned '" + "x" * 199),
    ],
)
def test_verdict_that_is_not_clear_and_good_ends_the_case(
    verdict: Any, status: str, reason: str
) -> None:
    case = _Case(8)
    case.verdict = verdict
    row = Row("a/1", {})
    with pytest.raises(CaseEndedError) as ended:
        CaseRun(_Platform(), _plan(), "eager", 2, None).run(case, row)
    assert (row.status, row.stage) == (status, "validate function")
    assert row.reason is not None
    assert row.reason.endswith(reason)
    assert not ended.value.crashed
    assert row.traceback is None


@pytest.mark.parametrize(
    ("error", "crashed"),
    [
        (ValueError("x"), True),
        (SystemExit(0), True),
        (MeasurementError("x"), False),
        (ConfigurationError("x"), False),
    ],
)
def test_what_a_timed_implementation_raises_is_its_crash_but_not_the_clocks(
    error: BaseException, crashed: bool
) -> None:
    row = Row("a/1", {})
    with pytest.raises(CaseEndedError) as ended:
        CaseRun(_Platform(), _plan(), "eager", 2, _Stage(error=error), ask=_answer).run(
            _Case(8), row
        )
    assert ended.value.crashed is crashed
    assert (row.status, row.stage) == ("error", "timing")
    assert row.reason == f"{type(error).__name__}: {error}"
    assert row.traceback is not None
    assert row.traceback.strip().endswith(str(error))
    assert row.durations["timing_s"] >= 0


@pytest.mark.parametrize("wrong", [False, True])
def test_broken_seal_fails_whatever_the_case_came_to(wrong: bool) -> None:
    case, row = _Case(8), Row("a/1", {})
    if wrong:
        case.verdict = {"status": "failed"}
    with pytest.raises(CaseEndedError):
        CaseRun(_Platform(), _plan(), "eager", 2, _Stage(), _Seal(), _answer).run(case, row)  # type: ignore[arg-type]
    assert (row.status, row.stage) == ("failed", "integrity")
    assert row.reason == "a clock was replaced"


def test_stage_that_refuses_an_implementation_names_it_before_any_call() -> None:
    case = _Case(8)
    with pytest.raises(case_run.RefusedError, match="n: it has no clock"):
        _run(case, _Stage("it has no clock"))
    assert case.did == []


class _Clock:
    """Each call of the function takes its time, and nothing else does."""

    def __init__(self, call_s: float) -> None:
        self.now, self.calls, self._call_s = 5.0, 0, call_s

    def __call__(self) -> float:
        return self.now

    def call(self) -> None:
        self.calls += 1
        self.now += self._call_s


@pytest.mark.parametrize(
    ("call_s", "calls"),
    [(0.0, 10), (2**-7, 10), (2**-4, 2), (2**-3, 1), (60.0, 1)],
)
def test_warm_up_ends_with_its_budget_and_after_ten_calls_at_most(
    call_s: float, calls: int
) -> None:
    clock = _Clock(call_s)
    assert warm_up(clock.call, None, clock) == clock.calls == calls


@pytest.mark.parametrize(("budget_s", "calls"), [(0.5, 1), (1.0, 2), (1.25, 3), (9.0, 4)])
def test_warm_up_keeps_to_other_bounds(budget_s: float, calls: int) -> None:
    clock = _Clock(0.5)
    assert warm_up(clock.call, None, clock, most_calls=4, budget_s=budget_s) == calls
    assert clock.calls == calls


@pytest.mark.parametrize("calls", [0, 1, 37])
def test_warm_up_calls_as_often_as_it_is_told(calls: int) -> None:
    clock = _Clock(60.0)
    assert warm_up(clock.call, calls, clock) == clock.calls == calls
