"""Crews of a benchmark: a process for each contender that take turns, or this process alone.

Who leads makes the figures; here rows get them, and events of several crews become those of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xllm_kernel.benchmark.leading import CANDIDATE, Contender, Leader
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes.child import Child
from xllm_kernel.numerics.processes.crew import Course, InProcess, Sink, Supervised
from xllm_kernel.numerics.processes.following import Next
from xllm_kernel.numerics.processes.wire import Event
from xllm_kernel.numerics.processes.worker import EXIT_COULD_NOT_RUN, RunEndedError

_SAMPLE: Event = {"event": "sample"}
_ENOUGH: Event = {"event": "enough"}


class Alone(InProcess):
    """Times one implementation in this process, where a framework is loaded already."""

    isolated = False

    def __init__(self, request: Request, stage: Timing, leader: Leader, rank: int = 0) -> None:
        """Take what a run is; see ``Worker``."""
        super().__init__(request, stage, rank, self._ask)
        self._leader, self._me = leader, Contender(request.implementation, request.threads)
        self._course: Any = None
        self._regime = ""
        self._timings: dict[str, Any] = {}

    def plan(self, sink: Sink) -> None:
        """Bind the implementation; rows get their figures on the way to the sink."""
        super().plan(lambda event: sink(self._completed(event)))

    def _ask(self, question: Mapping[str, Any]) -> Event:
        event = dict(question)
        try:
            if event["event"] == "timed":
                self._regime = event["regime"]
                self._course = self._leader.regime({self._me: event})
                next(self._course)
            else:
                self._course.send(event)
        except StopIteration as end:
            self._timings[self._regime] = end.value[self._me]
            return _ENOUGH
        return _SAMPLE

    def _completed(self, event: Event) -> Event:
        if event["event"] == "facts" and "environment" in event:
            self._leader.default_threads = event["environment"].get("threads", 1)
        if event["event"] == "row":
            event = _with_timings(event, self._timings)
            self._timings = {}
        return event


@dataclass(slots=True)
class _Party:
    """A contender, the crew that works for it, and what came of its current row."""

    contender: Contender
    crew: Supervised
    place: int | None  # among the rows of a case; None has none
    facts: dict[str, Any] = field(default_factory=dict)
    course: Course | None = None
    question: Event | None = None
    timings: dict[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] | None = None  # of its row, once that is over
    after: Next = Next.GO_ON
    recovers: bool = True


class Ensemble:
    """Times implementations in turns, each in processes of its own, of which the first has rows."""

    isolated = True

    def __init__(
        self,
        requests: Mapping[Contender, Request],
        stage: Timing,
        leader: Leader,
        optional: frozenset[str] = frozenset(),
        rank: int = 0,
    ) -> None:
        """Take the contenders.

        Args:
            requests: what each is asked to do; the order is that of a case's rows.
            stage: times.
            leader: makes the figures.
            optional: names of implementations that may be missing.
            rank: of this process; see ``Worker``.
        """
        self.beside: dict[int, Callable[[], None]] = {}
        self._leader, self._regimes, self._optional = leader, stage.regimes, optional
        self._sink: Sink = lambda event: None
        self._parties = []
        family: list[Child] = []
        for contender, request in requests.items():
            crew = Supervised(request, stage, rank)
            crew.beside, crew.family = self.beside, family
            self._parties.append(_Party(contender, crew, None))

    def plan(self, sink: Sink) -> None:
        """Start every contender's process; one that is optional may be missing."""
        self._sink = sink
        here = []
        for party in self._parties:
            party.crew.begin()  # all at once: most of the time goes into importing frameworks
        for party in self._parties:
            try:
                party.crew.plan(self._planner(party))
            except RunEndedError as end:
                if party.contender.name not in self._optional:
                    raise
                if not party.contender.second:
                    self._tell_missing(party.contender, end)
            else:
                here.append(party)
        if not here:
            raise RunEndedError("error", EXIT_COULD_NOT_RUN, "no contender can take part")
        firsts = {party.contender for party in here}
        self._parties = [party for party in here if party.contender.twice[0] in firsts]
        rivals = {p.contender.name for p in here if p.contender.role == CANDIDATE}
        with_rows = [party for party in here if _has_rows(party.contender, rivals)]
        for place, party in enumerate(with_rows):
            party.place = place
        self._tell_rows(with_rows)

    def run(self, numbers: Sequence[int]) -> bool:
        """Time cases one by one; numbers are of the report's rows, all rows of a case together."""
        for case in sorted({number // self._rows_a_case for number in numbers}):
            self._time(case)
            if any(party.after is Next.STOP for party in self._parties):
                return False
        return True

    def close(self) -> None:
        """Let every process end."""
        for party in self._parties:
            party.crew.close()

    def kill(self) -> None:
        """End every process at once."""
        for party in self._parties:
            party.crew.kill()

    @property
    def _rows_a_case(self) -> int:
        return sum(party.place is not None for party in self._parties)

    def _planner(self, party: _Party) -> Sink:
        """Return the sink of one crew: facts are kept, rows renumbered or left out."""

        def sink(event: Event) -> None:
            kind = event["event"]
            if kind == "facts":
                party.facts.update(event)
                if party is self._parties[0] and "cases" not in event:
                    self._sink(event)  # a run that ends early must say this much
            elif kind == "ready":
                party.recovers = event["recovers"]
            elif kind == "row":
                party.results = event["results"]
                if party.place is not None:
                    event = self._with_second(party, _with_timings(event, party.timings))
                    self._sink(self._placed(party, event))
            elif event.get("row") is None or party.place is not None or kind == "death":
                self._sink(self._placed(party, event))

        return sink

    def _with_second(self, party: _Party, event: Event) -> Event:
        """Let a row that passed fail with its contender's second process."""
        contender = party.contender.twice[1]
        second = next((p for p in self._parties if p.contender == contender), None)
        if event["results"]["status"] != "passed" or second is None or _passed(second):
            return event
        assert second.results is not None, "the second process ends a case before the first"
        reason = f"in a second process: {second.results['reason']}"
        return {**event, "results": {**second.results, "reason": reason, "timings": None}}

    def _placed(self, party: _Party, event: Event) -> Event:
        """Return an event with its row's number in the report; without rows, the case's first."""
        if event.get("row") is None:
            return event
        return {**event, "row": event["row"] * self._rows_a_case + (party.place or 0)}

    def _tell_missing(self, contender: Contender, end: RunEndedError) -> None:
        missing = {"name": contender.name, "threads": contender.threads, "reason": end.reason}
        self._sink({"event": "missing", "missing": missing})

    def _tell_rows(self, parties: Sequence[_Party]) -> None:
        """Tell the facts of the run and the rows of all: case by case, a row a contender."""
        first, *others = parties
        for party in others:
            if party.facts["cases"] != first.facts["cases"]:
                reason = f"all contenders must have the same cases, {party.contender.name} has not"
                raise RunEndedError("error", EXIT_COULD_NOT_RUN, reason)
        self._leader.default_threads = first.facts["environment"].get("threads", 1)
        rows = [
            {
                **case,
                "implementation": party.contender.name,
                "threads": party.contender.threads or party.facts["environment"].get("threads"),
            }
            for case in first.facts["cases"]
            for party in parties
        ]
        receipts = {party.contender.name: party.facts["receipt"] for party in others}
        self._sink({**first.facts, "event": "facts", "cases": rows, "other_receipts": receipts})
        recovers = all(party.recovers for party in parties)
        self._sink({"event": "ready", "recovers": recovers})

    def _time(self, case: int) -> None:
        """Take every contender through one case, one at a time but for the rounds of samples."""
        # Whoever has no row, or whom others are compared with, ends first: its rows and theirs
        # must know whether it passed.
        order = sorted(
            self._parties,
            key=lambda party: (party.contender.role == CANDIDATE, not party.contender.second),
        )
        for party in order:
            party.timings, party.results = {}, None
        for party in order:
            party.course = party.crew.course(case)
            self._go_on(party, None)
        for regime in self._regimes:
            asking = [p for p in order if p.question and p.question["regime"] == regime]
            if not asking:
                continue
            for contender, found in self._sampled(asking).items():
                next(p for p in asking if p.contender == contender).timings[regime] = found
            for party in asking:
                if party.question is not None:
                    self._go_on(party, _ENOUGH)

    def _sampled(self, asking: Sequence[_Party]) -> dict[Contender, dict[str, Any]]:
        """Take samples in turns, as the leader wants them."""
        by_contender = {party.contender: party for party in asking}
        told = {party.contender: party.question for party in asking if party.question is not None}
        course = self._leader.regime(told)
        event: Event | None = None
        try:
            wanted = next(course)
            while True:
                event = self._go_on(by_contender[wanted], _SAMPLE)
                wanted = course.send(event)
        except StopIteration as end:
            found: dict[Contender, dict[str, Any]] = end.value
            return found

    def _go_on(self, party: _Party, answer: Event | None) -> Event | None:
        """Answer a contender and return what it asks next; None where its row is over."""
        if party.course is None:
            return None
        try:
            party.question = next(party.course) if answer is None else party.course.send(answer)
        except StopIteration as end:
            party.after, party.course, party.question = end.value, None, None
            if party.contender.role != CANDIDATE and not _passed(party):
                self._withdraw()
        return party.question

    def _withdraw(self) -> None:
        """Take back what was compared with a baseline that turned out to be wrong."""
        for party in self._parties:
            for found in party.timings.values():
                found["against"] = None


def _has_rows(contender: Contender, rivals: set[str]) -> bool:
    """Say whether a contender has rows: a second process has none, nor has one's own baseline."""
    return not contender.second and (contender.role == CANDIDATE or contender.name not in rivals)


def _passed(party: _Party) -> bool:
    return party.results is not None and party.results["status"] == "passed"


def _with_timings(event: Event, timings: Mapping[str, Any]) -> Event:
    """Give a row that passed its figures; those of any other are no figures."""
    results = event["results"]
    passed = results["status"] == "passed" and timings
    return {
        **event,
        "results": {**results, "timings": {"regimes": dict(timings)} if passed else None},
    }
