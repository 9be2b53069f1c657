"""Who does the work of a run: this process, or a child that is replaced when it dies.

Both tell the same events; only the second outlives a crash.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.case_run import Ask, Stage
from xllm_kernel.numerics.processes.child import Beside, Child, Ending
from xllm_kernel.numerics.processes.following import Next, following
from xllm_kernel.numerics.processes.wire import QUESTIONS, Event, decode, encode
from xllm_kernel.numerics.processes.worker import (
    EXIT_COULD_NOT_RUN,
    EXIT_CRASHED,
    RunEndedError,
    Worker,
)

Sink = Callable[[Event], None]

Course = Generator[Event, Event, Next]
"""A row on its way: what is asked of whoever leads, what is answered, and what follows."""

_GRACE_S = 30.0  # for a child's exit handlers


class Crew(Protocol):
    """Does rows and tells a sink all about it.

    Attributes:
        beside: descriptors to serve while the crew waits.
        isolated: whether rows run in a process of their own.
    """

    beside: dict[int, Callable[[], None]]
    isolated: bool

    def plan(self, sink: Sink) -> None:
        """Get ready: tell the facts of the run and its rows.

        Raises:
            RunEndedError: when nothing can run.
        """

    def run(self, numbers: Sequence[int]) -> bool:
        """Do rows in turn; return whether all were done, rather than left after a bad one.

        Raises:
            RunEndedError: when the run is over.
        """

    def close(self) -> None:
        """End in order, and tell what goes wrong at the end."""

    def kill(self) -> None:
        """End at once."""


class InProcess:
    """Does the rows in this process, where a framework is loaded already: nothing is isolated."""

    isolated = False

    def __init__(
        self, request: Request, stage: Stage | None, rank: int = 0, ask: Ask | None = None
    ) -> None:
        """Take what a run is; see ``Worker``."""
        self.beside: dict[int, Callable[[], None]] = {}
        self._on_failure, self._rank = request.on_failure, rank
        self._sink: Sink = _nowhere
        self._worker = Worker(request, stage, self._tell, ask)
        self._recovers = True

    def _tell(self, event: Event) -> None:
        event = decode(encode(event))  # as another process would get it
        if event["event"] == "ready":
            self._recovers = event["recovers"]
        self._sink(event)

    def plan(self, sink: Sink) -> None:
        """Bind the implementation to this process."""
        self._sink = sink
        try:
            self._worker.prepare(self._rank)
        except (Exception, SystemExit) as error:
            raise RunEndedError.of(error) from error

    def run(self, numbers: Sequence[int]) -> bool:
        """Do rows; another process to go on in is not to be had."""
        for number in numbers:
            try:
                row = self._worker.run(number)
            except (Exception, SystemExit) as error:
                raise RunEndedError.of(error) from error
            after = following(self._on_failure, row.status, row.stage, False, self._recovers)
            if after is Next.STOP:
                return False
        return True

    def close(self) -> None:
        """Leave everything to the process's end."""

    def kill(self) -> None:
        """Leave everything to the process's end."""


class Supervised:
    """Does the rows in a child, and starts another where that one dies."""

    isolated = True

    def __init__(self, request: Request, stage: Stage | None, rank: int = 0) -> None:
        """Take what a run is; see ``Worker``."""
        self.beside: dict[int, Callable[[], None]] = {}
        self.family: list[Child] = []
        """Children of this process, whosever they are; crews beside each other share it."""
        self._on_failure = request.on_failure
        self._body = partial(_work, request, stage, rank)
        self._sink: Sink = _nowhere
        self._child: Child | None = None
        self._stream: Iterator[Event] = iter(())
        self._rows: list[Any] | None = None
        self._recovers = False
        self._row: int | None = None  # begun, and perhaps done, but followed by no other
        self._step: str | None = None
        self._results: dict[str, Any] | None = None

    def plan(self, sink: Sink) -> None:
        """Wait until the first child, started by now, has bound the implementation."""
        self._sink = sink
        if self._child is None:
            self.begin()
        self._await_ready(sink)

    def run(self, numbers: Sequence[int]) -> bool:
        """Do rows one by one, each in the child that there is, or in a new one."""
        for number in numbers:
            course = self.course(number)
            try:
                question = next(course)
            except StopIteration as end:
                if end.value is Next.STOP:
                    return False
            else:
                raise RuntimeError(f"a run without a stage was asked to lead: {question}")
        return True

    def course(self, number: int) -> Course:
        """Do one row, in a second child where the first dies between two.

        Yields what the child asks of whoever leads its stage, and sends on what is answered.

        Returns:
            What follows; where that is another process, this one has been ended.

        Raises:
            RunEndedError: when the run is over.
        """
        after = yield from self._do(number)
        if after is Next.AFRESH:
            self.close()
        return after

    def close(self) -> None:
        """Let the child end, unless it is amid a row; tell of an end that is none."""
        if self._row is not None and self._results is None:
            self.kill()
        if self._child is None:
            return
        ending = self._child.close(_GRACE_S)
        self._child = None
        if ending.status != 0 or ending.note is not None:
            self._sink(_death(None, "end", ending))

    def kill(self) -> None:
        """End the child at once."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def begin(self) -> None:
        """Start a child without waiting for it, so that several crews can get ready at once."""
        theirs = [end for child in self.family for end in child.descriptors]
        self._child = Child(self._body, (*self.beside, *theirs))
        self.family[:] = [child for child in self.family if child.ending is None] + [self._child]
        beside: Beside = self.beside
        self._stream = self._child.events(beside)
        self._row = None

    def _await_ready(self, sink: Sink) -> None:
        rows: list[Any] = []
        for event in self._stream:
            if event["event"] == "end":
                raise _ended(event)
            sink(event)
            rows += [*event.get("cases", ()), *event.get("guarantees", ())]
            if event["event"] == "ready":
                self._recovers = event["recovers"]
                self._check_same(rows)
                return
        raise self._dead("before its first case", self._ending())

    def _check_same(self, rows: list[Any]) -> None:
        if self._rows not in (None, rows):
            reason = "a process that was started again must have the same cases, it has others"
            raise RunEndedError("error", EXIT_COULD_NOT_RUN, reason)
        self._rows = rows

    def _do(self, number: int) -> Course:
        while True:
            if self._child is None:
                self._sink({"event": "restart"})
                self.begin()
                self._await_ready(_nowhere)  # what there is to know is known
            if self._child is not None:
                self._child.send({"event": "run", "row": number})
            for event in self._stream:
                if event["event"] == "end":
                    raise _ended(event)
                if event["event"] in QUESTIONS:
                    answer = yield event
                    if self._child is not None:
                        self._child.send(answer)
                    continue
                if event["event"] == "start":
                    self._row, self._step, self._results = number, None, None
                elif event["event"] == "step":
                    self._step = event["step"]
                self._sink(event)
                if event["event"] == "row":
                    self._results = event["results"]
                    return self._following(self._results, died=False)
            blamed = self._row
            after = self._bury()
            if blamed == number or after is Next.STOP:
                return after

    def _bury(self) -> Next:
        """Make a row of a child's death: of the one it was in, or had just done."""
        ending = self._ending()
        if self._row is None:
            raise self._dead("between two cases", ending)
        stage = self._step or "support" if self._results is None else "end"
        results = {
            **(self._results or _NOTHING_YET),
            "status": "error",
            "stage": stage,
            "reason": str(ending),
            "timings": None,
            "crashed": True,
            "stderr": ending.stderr,
        }
        self._sink(_death(self._row, stage, ending))
        self._sink({"event": "row", "row": self._row, "results": results})
        return self._following(results, died=True)

    def _following(self, results: dict[str, Any], died: bool) -> Next:
        status, stage = results["status"], results["stage"]
        return following(self._on_failure, status, stage, died, self._recovers)

    def _ending(self) -> Ending:
        """Take note that the child is no more."""
        ending = None if self._child is None else self._child.ending
        self._child = None
        if ending is None:
            raise RuntimeError("a child whose events are over must have ended")
        return ending

    def _dead(self, when: str, ending: Ending) -> RunEndedError:
        self._sink(_death(None, when, ending))
        last = ending.stderr.splitlines()[-1:]
        reason = f"{when}: {ending}" + "".join(f" ({line})" for line in last)
        return RunEndedError("error", EXIT_CRASHED, reason)


_NOTHING_YET: dict[str, Any] = {
    "metadata": {},
    "validation": {},
    "durations": {},
    "traceback": None,
    "work": None,
}


def can_isolate() -> bool:
    """Say whether a forked child can load a framework of its own here."""
    alone = len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 (names of a kernel's folder)
    return alone and "torch" not in sys.modules


MakeCrew = Callable[[Request, int], Crew]
"""Makes the crew of a run from what is asked for and this process's rank."""


def make_crew(request: Request, rank: int) -> Crew:
    """Return a crew without a stage, one that outlives crashes where that is possible."""
    kind: type[Supervised] | type[InProcess] = Supervised if can_isolate() else InProcess
    return kind(request, None, rank)


def _work(
    request: Request,
    stage: Stage | None,
    rank: int,
    tell: Callable[[Event], None],
    listen: Callable[[], Event | None],
) -> None:
    """Do in a child what it is told to do."""

    def ask(question: Mapping[str, Any]) -> Event:
        tell(dict(question))
        answer = listen()
        if answer is None:
            raise SystemExit("whoever leads the run is gone")
        return answer

    worker = Worker(request, stage, tell, ask)
    try:
        worker.prepare(rank)
        while (command := listen()) is not None:
            worker.run(command["row"])
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 (told on)
        end = RunEndedError.of(error)
        tell({"event": "end", "status": end.status, "code": end.exit_code, "reason": end.reason})


def _ended(event: Event) -> RunEndedError:
    return RunEndedError(event["status"], event["code"], event["reason"])


def _death(row: int | None, stage: str, ending: Ending) -> Event:
    return {"event": "death", "row": row, "stage": stage, "ending": str(ending)}


def _nowhere(event: Event) -> None:
    """Tell nobody."""
