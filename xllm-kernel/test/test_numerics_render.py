"""Pages for people: what each part of a hand-made report looks like, in the terminal and Markdown.

What runs put into reports is in ``test_numerics_report.py``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from numerics_world import World

from xllm_kernel.numerics import arguments, progress
from xllm_kernel.numerics.render import NOTHING, Progress, markdown, number, terminal, verdict
from xllm_kernel.numerics.report import Report, Row

COLUMNS = (
    ("first", lambda row: NOTHING),
    ("ratio", lambda row: number(row.metadata.get("ratio"))),
    ("last", lambda row: NOTHING),
)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a report with rows, and options of the command line."""
    World(tmp_path, monkeypatch)

    def make(*rows: Row, options: tuple[str, ...] = ()) -> Report:
        argv = ["--implementation", "cpu.plain.affine", *options]
        report = Report(arguments.parse("numerics", argv), {"threads": None, "warmup": 3})
        report.started = "2026-01-01T00:00:00+00:00"
        report.environment = {"torch": "2.9", "machine": "abacus"}
        report.rows += rows
        return report

    return make


def _row(name: str, status: str, stage: str | None = None, **more: Any) -> Row:
    reason = more.pop("reason", None if stage is None else f"why {name}")
    return Row(name, {}, more.pop("evidence", "cpu"), status, stage, reason, **more)


def _rows() -> list[Row]:
    return [
        _row("a/1", "passed", metadata={"ratio": 0.5}),
        _row("a/200", "failed", "validate | it", metadata={"ratio": 12.0625}),
        _row("a/3", "not_run", evidence=None),
    ]


def test_terminal_aligns_names_to_the_left_and_figures_to_the_right(make) -> None:
    report = make(*_rows(), options=("--output", "r.json"))
    report.environment["threads"] = 2
    report.finish("failed", 1, "only told where no row has a reason")
    again = "python -m xllm_kernel.numerics --implementation cpu.plain.affine --case a/200"
    assert terminal(report, COLUMNS).splitlines() == [
        "Numerical validation: cpu.plain.affine  (cpu eager, torch 2.9, threads 2)",
        "",
        "  case   result   evidence   ratio",
        "  a/1    passed   cpu        0.500",
        "  a/200  failed   cpu       12.062",
        "  a/3    not run  -              -",
        "",
        "  a/200: validate | it: why a/200",
        f"    reproduce: {again}",
        "FAILED  1 of 3 cases passed, 1 failed, 1 not run",
        "  report: r.json",
    ]


def test_terminal_without_a_row_that_ran_says_the_runs_reason_and_no_table(make) -> None:
    report = make(_row("a/1", "not_run"), _row("a/2", "not_run"))
    report.finish("not_run", 3, "no device")
    assert terminal(report, COLUMNS).splitlines() == [
        "Numerical validation: cpu.plain.affine  (cpu eager, torch 2.9)",
        "NOT RUN  0 of 2 cases passed, 2 not run",
        "  no device",
    ]


def test_markdown_has_facts_cases_reasons_and_what_was_passed_over(make) -> None:
    report = make(*_rows(), options=("--revision", "abc"))
    report.evidence = "cpu"
    excluded = [{"name": "cpu.other.affine", "code": "priority", "reason": "0 | lower\nthan 1"}]
    report.receipt = {"build": [], "excluded": excluded, "caveats": ["as | found"]}
    report.finish("failed", 1, "a/200: bad | cell")
    again = "python -m xllm_kernel.numerics --implementation cpu.plain.affine --case a/200"
    assert (
        markdown(report, COLUMNS)
        == f"""# Numerical validation: cpu.plain.affine

**FAILED  1 of 3 cases passed, 1 failed, 1 not run**

**as \\| found**

Reason: a/200: bad \\| cell

| fact | value |
| --- | --- |
| operation | affine |
| implementation | cpu.plain.affine |
| device, mode | cpu, eager |
| evidence | cpu |
| revision | abc |
| started | 2026-01-01T00:00:00+00:00 |
| warmup | 3 |
| torch | 2.9 |
| machine | abacus |

## Cases

| case | result | evidence | ratio |
| --- | --- | --- | --- |
| a/1 | passed | cpu | 0.500 |
| a/200 | failed | cpu | 12.062 |
| a/3 | not run | - | - |

## Reasons

- `a/200`: validate \\| it: why a/200

  ```sh
  {again}
  ```

## Built as

nothing of ours was built

## Candidates passed over

- `cpu.other.affine`: priority: 0 \\| lower than 1
"""
    )


def test_markdown_of_a_run_that_reached_nothing_says_what_is_unknown(make) -> None:
    page = markdown(make(), COLUMNS)
    assert "| evidence | none |" in page
    assert "| revision | not given |" in page
    for absent in ("## ", "Reason:"):
        assert absent not in page
    report = make()
    report.receipt = {"build": ["level avx2"], "excluded": [], "caveats": []}
    assert markdown(report, COLUMNS).endswith(
        "## Built as\n\n- level avx2\n\n## Candidates passed over\n\nnone\n"
    )


@pytest.mark.parametrize(("ranks", "of_rank"), [(1, ""), (2, " (rank 3)")])
def test_death_is_told_with_its_case_and_among_several_ranks_with_its_rank(
    make, ranks: int, of_rank: str
) -> None:
    report = make(_row("a/1", "passed"))
    report.ranks = ranks
    report.processes.deaths += [
        {"rank": 3, "case_id": "a/1", "stage": "capture", "ending": "signal 11"},
        {"rank": 3, "case_id": None, "stage": "end", "ending": "status | 66"},
    ]
    report.processes.restarts, report.processes.lost = 2, [5]
    told = [
        f"at a/1, step 'capture': signal 11{of_rank}",
        f"at no case, step 'end': status | 66{of_rank}",
        "processes started again to go on: 2",
        "rank 5 went away",
    ]
    shown = terminal(report, COLUMNS).splitlines()
    assert [line for line in shown if line.strip() in told] == [f"  {line}" for line in told]
    listed = "".join(f"- {line}\n" for line in told).replace("|", "\\|")
    assert f"\n\n## Processes\n\n{listed}" in markdown(report, COLUMNS)


def test_nothing_is_said_of_processes_where_all_ended_by_themselves(make) -> None:
    report = make(_row("a/1", "passed"))
    assert "Processes" not in markdown(report, COLUMNS)
    assert "started again" not in terminal(report, COLUMNS)


def test_reason_of_a_row_that_never_began_has_no_step(make) -> None:
    report = make(_row("a/1", "passed"), _row("a/2", "not_run", reason="rank 1 went away"))
    assert "  a/2: rank 1 went away" in terminal(report, COLUMNS).splitlines()
    assert "- `a/2`: rank 1 went away" in markdown(report, COLUMNS).splitlines()
    assert "reproduce" not in terminal(report, COLUMNS)
    assert "```" not in markdown(report, COLUMNS)


def test_verdict_counts_every_state_that_occurs(make) -> None:
    states = ("error", "not_applicable", "failed", "passed", "failed")
    report = make(*(_row(f"a/{i}", state) for i, state in enumerate(states)))
    report.finish("error", 4, None)
    assert verdict(report) == "ERROR  1 of 5 cases passed, 2 failed, 1 error, 1 n/a"
    report.evidence = "simulated"
    assert verdict(report).startswith("ERROR (simulated)  1 of 5")
    assert "is no evidence" in terminal(report, COLUMNS)
    assert "is no evidence" in markdown(report, COLUMNS)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(1.23456, 3, "1.235"), (2, 1, "2.0"), (None, 3, "-"), ("inf", 3, "-"), (0.0, 2, "0.00")],
)
def test_number_has_so_many_decimals_or_is_a_dash(value: object, digits: int, shown: str) -> None:
    assert number(value, digits) == shown


class _Terminal(io.StringIO):
    flushed = 0

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.flushed += 1


def test_progress_counts_rows_replaces_its_line_and_is_seen_at_once() -> None:
    stream = _Terminal()
    line = Progress(2, stream)
    for name in ("a/1", "a/2"):
        line.show(name)
    line.clear()
    assert stream.getvalue() == "\r\x1b[K[1/2] a/1\r\x1b[K[2/2] a/2\r\x1b[K"
    assert stream.flushed == 3


def test_progress_says_how_long_the_rest_takes_once_that_is_known() -> None:
    stream, now = _Terminal(), iter([100.0, 100.0, 110.0, 130.0])
    line = Progress(4, stream, clock=lambda: next(now))
    for name in ("a", "b", "c"):
        line.show(name)
    shown = stream.getvalue().split("\r\x1b[K")[1:]
    # 10 s a row leave 3 rows; then 15 s a row leave 2.
    assert shown == ["[1/4] a", "[2/4] about 30 s left: b", "[3/4] about 30 s left: c"]


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "left"),
    [(0, 5, 60.0, None), (1, 5, 0.5, None), (1, 5, 3.0, 12.0), (5, 5, 9.0, 0.0), (6, 5, 9.0, 0.0)],
)
def test_remaining_time_is_what_is_left_at_the_pace_so_far(
    done: int, total: int, elapsed: float, left: float | None
) -> None:
    assert progress.remaining(done, total, elapsed) == left


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *[(0.0, "5 s"), (5.0, "5 s"), (5.1, "10 s"), (59.0, "60 s"), (60.0, "1 min")],
        *[(61.0, "2 min"), (3540.0, "59 min"), (3541.0, "1 h"), (3601.0, "1 h 10 min")],
        *[(7200.0, "2 h"), (7800.0, "2 h 10 min")],
    ],
)
def test_times_are_worded_as_exactly_as_an_estimate_deserves(seconds: float, words: str) -> None:
    assert progress.worded(seconds) == words
