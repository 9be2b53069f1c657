"""The life of a run: parse, bind, take every case through its steps, reach a verdict, report.

Knows neither operators nor devices nor modes: suites judge, platforms capture and measure.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from xllm_kernel.errors import ConfigurationError, KernelError
from xllm_kernel.numerics import render, streams
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes import ranks, shards
from xllm_kernel.numerics.processes.crew import Crew, MakeCrew, make_crew
from xllm_kernel.numerics.processes.following import BAD
from xllm_kernel.numerics.processes.wire import Event
from xllm_kernel.numerics.processes.worker import (
    EXIT_COULD_NOT_RUN,
    EXIT_CRASHED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_PASSED,
    EXIT_USAGE,
    RunEndedError,
    chosen_cases,
)
from xllm_kernel.numerics.report import Report, Row

# A report is written whole; of a long run, no more often than takes a tenth of the time.
_PAUSES = 10


class Pages(Protocol):
    """How a command shows its report."""

    def write(self, report: Report) -> None:
        """Write all files of a report that is asked for, each in one step."""

    def terminal(self, report: Report) -> str:
        """Return what a terminal shows in the end."""


@dataclass(frozen=True, slots=True)
class Command:
    """What differs between commands.

    Attributes:
        pages: show the report.
        settings: what to record of the command's options.
        make_crew: makes who does the rows.
        exclusive: whether each of several ranks must have a device for itself.
        facts: what the report says of the run as a whole, beside what all reports do.
    """

    pages: Pages
    settings: Mapping[str, Any]
    make_crew: MakeCrew = make_crew
    exclusive: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


def run(request: Request, command: Command) -> int:
    """Carry out a request and leave its report, whatever happens.

    Args:
        request: what to do.
        command: how.

    Returns:
        The process's exit code.
    """
    streams.open_all()
    if request.listing:
        return _list(request)
    try:
        place = ranks.place()
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    with _terminated_as_interrupted():
        if place is not None and place.rank > 0:
            return shards.follow(place, command.make_crew(request, place.local_rank))
        keeper = _Keeper(
            Report(request, dict(command.settings), facts=command.facts), command.pages
        )
        if place is not None:
            keeper.report.ranks = place.count
        return _owned(keeper, place, command)


def _owned(keeper: _Keeper, place: ranks.Place | None, command: Command) -> int:
    """Run as the process that owns the report."""
    report, request = keeper.report, keeper.report.request
    try:
        # A report of an earlier run must not be taken for this one's, should this one be killed.
        keeper.write()
    except OSError as error:
        print(f"--output: {request.output} cannot be written: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        _execute(keeper, place, command)
    except KeyboardInterrupt:
        report.finish(*_interrupted(report))
    try:
        keeper.write()
    except OSError as error:
        print(f"--output: {request.output} can no longer be written: {error}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    streams.show(keeper.pages.terminal(report))
    return EXIT_COULD_NOT_RUN if report.exit_code is None else report.exit_code


def _execute(keeper: _Keeper, place: ranks.Place | None, command: Command) -> None:
    """Run every row and record the verdict; only an interrupt gets out."""
    report, request = keeper.report, keeper.report.request
    try:
        crew = command.make_crew(request, 0 if place is None else place.local_rank)
        report.processes.isolated = crew.isolated
        if place is not None:
            crew = shards.Ranks(place, crew, request.on_failure, command.exclusive)
        with _closed(crew):
            crew.plan(keeper.take)
            keeper.write()
            _run_rows(keeper, crew)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (reported; the report must be complete)
        end = RunEndedError.of(error)
        report.finish(end.status, end.exit_code, end.reason)
    else:
        report.finish(*_verdict(report))


@contextlib.contextmanager
def _closed(crew: Crew) -> Iterator[None]:
    """End a crew in the end: in order, but at once where the run is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        crew.kill()
        raise
    except BaseException:
        crew.close()
        raise
    try:
        crew.close()
    except KeyboardInterrupt:
        crew.kill()
        raise


def _run_rows(keeper: _Keeper, crew: Crew) -> None:
    """Run the cases, and where one passed, or guarantees alone are asked for, the guarantees."""
    report, request = keeper.report, keeper.report.request
    count = len(report.rows)
    with keeper.progress(count):
        whole = crew.run(range(count))
    only_guarantees = request.cases and not count
    if not whole or not (report.coverage()["passed"] or only_guarantees):
        return
    report.rows += keeper.guarantees
    with keeper.progress(len(keeper.guarantees)):
        crew.run(range(count, len(report.rows)))


class _Keeper:
    """Keeps the report: takes in what is told, and writes it after each row."""

    def __init__(self, report: Report, pages: Pages) -> None:
        self.report, self.pages = report, pages
        self.guarantees: list[Row] = []
        self._due = 0.0  # of the monotonic clock
        self._progress = render.Progress(0, sys.stderr)

    def write(self) -> None:
        """Write the report as it is now."""
        if self.report.request.output is not None:
            self.pages.write(self.report)

    def _write_in_between(self) -> None:
        """Write the report if that takes a small part of the time since it was last written."""
        begin = time.monotonic()
        if begin >= self._due:
            self.write()
            end = time.monotonic()
            self._due = end + _PAUSES * (end - begin)

    @contextlib.contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """Show progress over so many rows."""
        self._progress = render.Progress(total, sys.stderr)
        try:
            yield
        finally:
            self._progress.clear()

    def take(self, event: Event) -> None:
        """Take in what was told."""
        report, kind = self.report, event["event"]
        rank = event.get("rank", 0)
        if kind == "facts" and rank == 0:
            self._take_facts(event)
        elif kind == "start":
            self._progress.show(report.rows[event["row"]].case_id)
        elif kind == "row":
            row = report.rows[event["row"]]
            row.take(event["results"])
            row.rank = rank if report.ranks > 1 else None
            self._progress.clear()
            self._write_in_between()
        elif kind == "missing":
            report.missing.append(event["missing"])
        elif kind == "restart":
            report.processes.restarts += 1
        elif kind == "death":
            number = event["row"]
            case = None if number is None else report.rows[number].case_id
            report.processes.deaths.append(
                {"rank": rank, "case_id": case, "stage": event["stage"], "ending": event["ending"]}
            )
        elif kind == "lost":
            self._lose(rank, event["rows"])

    def _take_facts(self, event: Event) -> None:
        report = self.report
        report.evidence = event.get("evidence", report.evidence)
        report.environment.update(event.get("environment", {}))
        report.receipt = event.get("receipt", report.receipt)
        report.other_receipts = event.get("other_receipts", report.other_receipts)
        report.preparation_s = event.get("preparation_s", report.preparation_s)
        report.rows += [Row(**row) for row in event.get("cases", ())]
        self.guarantees += [Row(**row) for row in event.get("guarantees", ())]

    def _lose(self, rank: int, numbers: list[int]) -> None:
        """Give the rows that a rank took with it their reason; it was at the first of them."""
        for number in numbers:
            row = self.report.rows[number]
            row.rank = rank
            row.reason = (
                f"rank {rank} went away {'at' if number == numbers[0] else 'before'} this case"
            )
        self.report.processes.lost.append(rank)
        self.write()


def _verdict(report: Report) -> tuple[str, int, str | None]:
    """Return status, exit code and reason of a run whose rows are done."""
    bad = [r for r in report.rows if r.status in BAD]
    first = next((r for r in bad if r.status == "error"), bad[0] if bad else None)
    reason = None if first is None else f"{_place(first)}: {first.stage}: {first.reason}"
    if any(row.crashed for row in bad):
        return "error", EXIT_CRASHED, reason
    deaths = report.processes.deaths
    if deaths:
        when = deaths[0]["case_id"]
        place = "after the last case" if when is None else f"beside {when}"
        return "error", EXIT_CRASHED, f"{place}, {deaths[0]['ending']}"
    if report.processes.lost:
        return "error", EXIT_COULD_NOT_RUN, _lost(report)
    if first is not None:
        failed = first.status == "failed"
        status, code = ("failed", EXIT_FAILED) if failed else ("error", EXIT_COULD_NOT_RUN)
        return status, code, reason
    if report.coverage()["passed"] == 0:
        return "not_run", EXIT_COULD_NOT_RUN, "no case ran, so nothing was shown"
    return "passed", EXIT_PASSED, None


def _place(row: Row) -> str:
    """Name a row; with its implementation where a run has several."""
    return ", ".join(name for name in (row.case_id, row.implementation) if name is not None)


def _interrupted(report: Report) -> tuple[str, int, str]:
    """Return status, exit code and reason of a run that was interrupted.

    A launcher ends the ranks that are left when one goes away: that is then the reason.
    """
    if report.processes.lost:
        return "error", EXIT_COULD_NOT_RUN, f"{_lost(report)}; this rank was then interrupted"
    return "error", EXIT_INTERRUPTED, "interrupted"


def _lost(report: Report) -> str:
    return "; ".join(f"rank {rank} went away" for rank in report.processes.lost)


def _list(request: Request) -> int:
    """Print the identifiers of the cases that would run."""
    try:
        cases = chosen_cases(request)
    except KernelError as error:
        print(error, file=sys.stderr)
        return RunEndedError.of(error).exit_code
    for case in cases:
        print(case.case_id)
    return EXIT_PASSED


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
