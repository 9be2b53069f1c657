"""The life of a run, part by part: what its keeper takes in, its verdict, the end of its crew.

Whole runs are in ``test_numerics_cli.py``; here somebody else tells the events.
"""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numerics_world import World

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import arguments, streams, verify
from xllm_kernel.numerics.processes import ranks, shards
from xllm_kernel.numerics.processes.worker import RunEndedError
from xllm_kernel.numerics.render import Tables
from xllm_kernel.numerics.report import Report, Row

RESULTS = Row("", {}, status="passed").results()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that parses a command line whose report is ``r.json``."""
    World(tmp_path, monkeypatch)
    start = ["--implementation", "cpu.plain.affine", "--output", str(tmp_path / "r.json")]
    return lambda *options: arguments.parse("numerics", [*start, *options])


@pytest.fixture
def keeper(request_of: Callable[..., Any]) -> Any:
    """A keeper that knows three rows."""
    keeper = verify._Keeper(Report(request_of(), {}), Tables(()))
    cases = [{"case_id": f"a/{n}", "parameters": {}, "evidence": "cpu"} for n in range(3)]
    keeper.take({"event": "facts", "cases": cases})
    return keeper


def _done(number: int, **more: Any) -> dict[str, Any]:
    return {"event": "row", "row": number, "results": {**RESULTS, **more}}


def test_keeper_takes_facts_as_they_become_known(keeper: Any) -> None:
    keeper.take({"event": "facts", "evidence": "cpu", "environment": {"torch": "2.9"}})
    keeper.take({"event": "facts", "receipt": {"caveats": []}, "preparation_s": 0.25})
    guarantee = {"case_id": "a/g", "parameters": {}, "evidence": "cpu"}
    keeper.take({"event": "facts", "guarantees": [guarantee]})
    keeper.take({"event": "facts", "evidence": "of rank 1", "rank": 1})
    report = keeper.report
    assert (report.evidence, report.preparation_s) == ("cpu", 0.25)
    assert report.receipt == {"caveats": []}
    assert report.environment["torch"] == "2.9"
    assert "python" in report.environment
    assert [row.case_id for row in report.rows] == ["a/0", "a/1", "a/2"]
    assert [row.case_id for row in keeper.guarantees] == ["a/g"]


@pytest.mark.parametrize(("count", "rank"), [(1, None), (2, 1)])
def test_keeper_says_who_ran_a_row_only_among_several(keeper: Any, count: int, rank: Any) -> None:
    keeper.report.ranks = count
    keeper.take({**_done(1, reason="fine"), "rank": 1})
    row = keeper.report.rows[1]
    assert (row.status, row.reason, row.rank) == ("passed", "fine", rank)


def test_keeper_counts_restarts_and_tells_deaths_by_their_case(keeper: Any) -> None:
    for _ in range(2):
        keeper.take({"event": "restart"})
    keeper.take({"event": "death", "row": 1, "stage": "capture", "ending": "gone", "rank": 2})
    keeper.take({"event": "death", "row": None, "stage": "end", "ending": "late"})
    processes = keeper.report.processes
    assert processes.restarts == 2
    assert processes.deaths == [
        {"rank": 2, "case_id": "a/1", "stage": "capture", "ending": "gone"},
        {"rank": 0, "case_id": None, "stage": "end", "ending": "late"},
    ]
    assert processes.lost == []


def test_keeper_gives_lost_rows_their_reason_at_once(keeper: Any, tmp_path: Path) -> None:
    keeper.take({"event": "lost", "rank": 1, "rows": [1, 2]})
    report = json.loads((tmp_path / "r.json").read_text())
    assert [(row["reason"], row["rank"]) for row in report["rows"]] == [
        (None, None),
        ("rank 1 went away at this case", 1),
        ("rank 1 went away before this case", 1),
    ]
    assert report["processes"]["lost"] == [1]


def test_keeper_leaves_other_events_alone(keeper: Any) -> None:
    before = keeper.report.as_dict()
    keeper.take({"event": "step", "row": 0, "step": "capture"})
    after = keeper.report.as_dict()
    assert {**after, "duration_s": 0} == {**before, "duration_s": 0}


def test_keeper_writes_a_long_runs_report_in_a_tenth_of_its_time(
    keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, written = [100.0], []

    def write() -> None:
        written.append(now[0])
        now[0] += 2.0

    monkeypatch.setattr(verify.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(keeper, "write", write)
    for later in (100.0, 103.0, 121.9, 122.0, 143.9, 144.0):
        now[0] = later
        keeper.take(_done(0))
    assert written == [100.0, 122.0, 144.0]


def test_keeper_shows_each_row_that_starts_on_a_terminal(
    keeper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = _Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    clear = "\r\x1b[K"
    with pytest.raises(KeyboardInterrupt), keeper.progress(2):
        keeper.take({"event": "start", "row": 1})
        assert shown.getvalue() == f"{clear}[1/2] a/1"
        keeper.take(_done(1))
        assert shown.getvalue() == f"{clear}[1/2] a/1{clear}"
        keeper.take({"event": "start", "row": 2})
        raise KeyboardInterrupt
    assert shown.getvalue().endswith(f"[2/2] a/2{clear}")


BAD = {"failed": ("failed", 1), "error": ("error", 3)}


@pytest.mark.parametrize(
    ("states", "crashed", "changes", "wanted"),
    [
        (("passed", "not_applicable"), (), {}, ("passed", 0, None)),
        (("not_applicable",), (), {}, ("not_run", 3, "no case ran, so nothing was shown")),
        ((), (), {}, ("not_run", 3, "no case ran, so nothing was shown")),
        (("passed", "failed", "failed"), (), {}, ("failed", 1, "a/1: at: why")),
        (("failed", "error", "error"), (), {}, ("error", 3, "a/1: at: why")),
        (("failed", "error"), (1,), {}, ("error", 4, "a/1: at: why")),
        (("failed", "error"), (0,), {}, ("error", 4, "a/1: at: why")),
        (("passed",), (), {"deaths": ["x"]}, ("error", 4, "after the last case, x")),
        (("failed",), (), {"deaths": ["x", "y"]}, ("error", 4, "after the last case, x")),
        (("error",), (0,), {"deaths": ["x"]}, ("error", 4, "a/0: at: why")),
        (("passed",), (), {"lost": [1, 2]}, ("error", 3, "rank 1 went away; rank 2 went away")),
        (("failed",), (), {"lost": [1]}, ("error", 3, "rank 1 went away")),
    ],
)
def test_verdict_is_the_worst_that_happened(
    request_of: Callable[..., Any],
    states: tuple[str, ...],
    crashed: tuple[int, ...],
    changes: dict[str, list[Any]],
    wanted: tuple[str, int, str | None],
) -> None:
    report = Report(request_of(), {})
    for number, state in enumerate(states):
        told = ("at", "why") if state in BAD else (None, None)
        row = Row(f"a/{number}", {}, "cpu", state, *told, crashed=number in crashed)
        report.rows.append(row)
    report.processes.deaths += [
        {"case_id": None, "ending": ending} for ending in changes.get("deaths", [])
    ]
    report.processes.lost += changes.get("lost", [])
    assert verify._verdict(report) == wanted


def test_interrupt_after_a_rank_was_lost_is_the_ranks_doing(request_of: Callable[..., Any]) -> None:
    report = Report(request_of(), {})
    assert verify._interrupted(report) == ("error", 130, "interrupted")
    report.processes.lost.append(1)
    reason = "rank 1 went away; this rank was then interrupted"
    assert verify._interrupted(report) == ("error", 3, reason)


class _Crew:
    """Notes what becomes of it; may be interrupted while it ends."""

    isolated = True

    def __init__(self, closing: type[BaseException] | None = None) -> None:
        self.did: list[str] = []
        self.beside: dict[int, Any] = {}
        self._closing = closing

    def plan(self, sink: Any) -> None:
        self.did.append("plan")

    def run(self, numbers: Any) -> bool:
        self.did.append(f"run {list(numbers)}")
        return True

    def close(self) -> None:
        self.did.append("close")
        if self._closing is not None:
            raise self._closing

    def kill(self) -> None:
        self.did.append("kill")


@pytest.mark.parametrize(
    ("raised", "closing", "did"),
    [
        (None, None, ["close"]),
        (ValueError, None, ["close"]),
        (SystemExit, None, ["close"]),
        (KeyboardInterrupt, None, ["kill"]),
        (None, KeyboardInterrupt, ["close", "kill"]),
    ],
)
def test_crew_ends_in_order_but_at_once_where_the_run_is_interrupted(
    raised: type[BaseException] | None, closing: type[BaseException] | None, did: list[str]
) -> None:
    crew, seen = _Crew(closing), None
    try:
        with verify._closed(crew):
            if raised is not None:
                raise raised
    except BaseException as error:  # noqa: BLE001 (looked at below)
        seen = type(error)
    assert (crew.did, seen) == (did, raised or closing)


PLACE = ranks.Place(0, 2, 1, b"\0nobody")


@pytest.fixture
def crew() -> _Crew:
    """Stands for every crew; the first thing that it did is to be made."""
    return _Crew()


def _run(request: Any, crew: _Crew) -> int:
    def make(request: Any, rank: int) -> _Crew:
        crew.did.append(f"for device {rank}")
        return crew

    before = signal.getsignal(signal.SIGTERM)
    code = verify.run(request, verify.Command(Tables(()), {}, make))
    assert signal.getsignal(signal.SIGTERM) is before
    return code


def test_rank_0_owns_the_report_and_says_how_many_there_are(
    request_of: Callable[..., Any],
    crew: _Crew,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    shared: list[Any] = []
    monkeypatch.setattr(ranks, "place", lambda: PLACE)
    monkeypatch.setattr(shards, "Ranks", lambda *given: shared.append(given) or crew)
    assert _run(request_of("--fail-fast"), crew) == 3  # no case was told of
    assert shared == [(PLACE, crew, "fail_fast", False)]
    assert crew.did == ["for device 1", "plan", "run []", "close"]
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["ranks"], report["status"]) == (2, "not_run")
    assert report["processes"]["isolated"] is True


def test_other_ranks_follow_and_leave_no_report(
    request_of: Callable[..., Any],
    crew: _Crew,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    place = ranks.Place(1, 2, 5, b"\0nobody")
    monkeypatch.setattr(ranks, "place", lambda: place)
    monkeypatch.setattr(shards, "follow", lambda *given: 7 if given == (place, crew) else 0)
    assert _run(request_of(), crew) == 7
    assert crew.did == ["for device 5"]
    assert not (tmp_path / "r.json").exists()


def test_process_alone_uses_the_first_device(
    request_of: Callable[..., Any], crew: _Crew, tmp_path: Path
) -> None:
    assert _run(request_of(), crew) == 3
    assert crew.did[0] == "for device 0"
    assert json.loads((tmp_path / "r.json").read_text())["ranks"] == 1


def test_variables_of_a_launcher_that_make_no_sense_are_a_usage_error(
    request_of: Callable[..., Any],
    crew: _Crew,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def place() -> None:
        raise ConfigurationError("RANK must be a number")

    monkeypatch.setattr(ranks, "place", place)
    assert _run(request_of(), crew) == 2
    assert "RANK must be a number" in capsys.readouterr().err
    assert crew.did == []


@pytest.mark.parametrize(
    ("raised", "code", "reason", "did"),
    [
        (RunEndedError("error", 4, "it died"), 4, "it died", "close"),
        (KeyboardInterrupt(), 130, "interrupted", "kill"),
        (SystemExit(0), 3, "SystemExit: 0", "close"),
    ],
)
def test_run_that_ends_early_says_why_in_its_report(
    request_of: Callable[..., Any],
    crew: _Crew,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    raised: BaseException,
    code: int,
    reason: str,
    did: str,
) -> None:
    def plan(sink: Any) -> None:
        raise raised

    monkeypatch.setattr(crew, "plan", plan)
    assert _run(request_of(), crew) == code
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["exit_code"], report["reason"]) == (code, reason)
    assert crew.did[-1] == did


def test_termination_interrupts_the_run(
    request_of: Callable[..., Any], crew: _Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "plan", lambda sink: signal.raise_signal(signal.SIGTERM))
    assert _run(request_of(), crew) == 130


def test_report_that_can_no_longer_be_written_is_no_success(
    request_of: Callable[..., Any],
    crew: _Crew,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(numbers: Any) -> bool:
        (tmp_path / "r.json").unlink()
        (tmp_path / "r.json").mkdir()
        return True

    monkeypatch.setattr(crew, "run", run)
    assert _run(request_of(), crew) == 3
    printed = capsys.readouterr()
    assert "r.json can no longer be written" in printed.err
    assert printed.out == ""  # no verdict without its report


def test_text_that_the_terminal_has_no_letters_for_is_escaped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    streams.show("50 \u00b5s")
    sys.stdout.flush()
    assert raw.getvalue() == b"50 \\xb5s\n"
