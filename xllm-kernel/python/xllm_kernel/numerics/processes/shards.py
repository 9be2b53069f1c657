"""A run that several ranks share: rank 0 deals the rows out and owns the report, the others follow.

Every rank has a crew of its own; a rank that goes away takes its rows with it, and no other's.
"""

from __future__ import annotations

import contextlib
import select
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from xllm_kernel.numerics.processes import ranks
from xllm_kernel.numerics.processes.crew import Crew, Sink
from xllm_kernel.numerics.processes.following import BAD, FAIL_FAST
from xllm_kernel.numerics.processes.ranks import Link, Place
from xllm_kernel.numerics.processes.wire import Event, GarbledError
from xllm_kernel.numerics.processes.worker import (
    EXIT_COULD_NOT_RUN,
    EXIT_INTERRUPTED,
    EXIT_PASSED,
    RunEndedError,
)

_GRACE_S = 60.0  # for the others to end in order


class _StoppedError(Exception):
    """A row failed and no other is wanted, or rank 0 wants no more of this rank."""


class _Other:
    """What rank 0 knows of another rank."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.rank = -1  # until it says so
        self.facts: dict[str, Any] = {}
        self.ready = False
        self.idle = True
        self.whole = True
        self.gone = False
        self.left: list[int] = []


class Ranks:
    """Rank 0's crew: its own, and the other ranks'."""

    def __init__(
        self, place: Place, own: Crew, on_failure: str | None, exclusive: bool = False
    ) -> None:
        """Take the parts.

        Args:
            place: this process's, rank 0.
            own: does this rank's rows, and serves the others meanwhile.
            on_failure: see ``processes.following``.
            exclusive: whether each rank must have a device for itself.

        Raises:
            ConfigurationError: as ``ranks.listen``.
        """
        self.beside: dict[int, Callable[[], None]] = own.beside
        self._place, self._own, self._on_failure = place, own, on_failure
        self._exclusive, self.isolated = exclusive, own.isolated
        self._sink: Sink = lambda event: None
        self._others: list[_Other] = []
        self._mine: dict[str, Any] = {}
        self._closing = False
        self._listener = ranks.listen(place)
        self.beside[self._listener.fileno()] = self._accept

    def plan(self, sink: Sink) -> None:
        """Get every rank ready and compare their plans."""
        self._sink = sink
        self._own.plan(self._take_own)
        end = time.monotonic() + ranks.PATIENCE_S
        while len(self._named()) < self._place.count - 1:
            if not self._serve(end - time.monotonic()):
                here = {0, *self._named()}
                absent = [str(n) for n in range(self._place.count) if n not in here]
                self._end(f"rank {', '.join(absent)} was not there after {ranks.PATIENCE_S:g} s")
        while not all(other.ready or other.gone for other in self._others):
            self._serve(None)
        for rank, other in sorted(self._named().items()):
            if other.gone:
                self._end(f"rank {rank} went away before it was ready")
            self._compare(other)
        if self._exclusive:
            self._check_devices()

    def run(self, numbers: Sequence[int]) -> bool:
        """Deal rows out in turn and wait until all are done, or their ranks gone."""
        present = [other for _, other in sorted(self._named().items()) if not other.gone]
        count = 1 + len(present)
        try:
            for place, other in enumerate(present, 1):
                other.left = list(numbers[place::count])
                other.idle = False
                with contextlib.suppress(OSError):  # its end is noticed where it is read
                    other.link.send({"event": "run", "rows": other.left})
            whole = self._own.run(numbers[0::count])
            if not whole and self._on_failure == FAIL_FAST:
                raise _StoppedError
            while not all(other.idle or other.gone for other in present):
                self._serve(None)
        except _StoppedError:
            self._own.kill()
            return False
        return whole and all(other.whole for other in self._others)

    def close(self) -> None:
        """Send the others home and wait for what they say at their end."""
        self._closing = True
        for other in self._others:
            self._send_home(other)
        self._own.close()
        end = time.monotonic() + _GRACE_S
        expected = self._place.count - 1
        while len(self._others) < expected or not all(other.gone for other in self._others):
            with contextlib.suppress(RunEndedError, _StoppedError):
                if not self._serve(end - time.monotonic()):
                    break
        self._hang_up()

    def kill(self) -> None:
        """End this rank's crew; look once more who has gone away already."""
        with contextlib.suppress(RunEndedError, _StoppedError):
            while self._serve(0.0):
                pass
        self._own.kill()
        self._hang_up()

    def _send_home(self, other: _Other) -> None:
        with contextlib.suppress(OSError):
            other.link.send({"event": "done"})

    def _hang_up(self) -> None:
        for other in self._others:
            self.beside.pop(other.link.fileno(), None)
            other.link.close()
        self.beside.pop(self._listener.fileno(), None)
        self._listener.close()

    def _named(self) -> dict[int, _Other]:
        return {other.rank: other for other in self._others if other.rank > 0}

    def _serve(self, timeout_s: float | None) -> bool:
        """Wait for the others and hear them; return whether one said anything in time."""
        poller = select.poll()
        for descriptor in self.beside:
            poller.register(descriptor, select.POLLIN)
        ready = poller.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3)
        for descriptor, _ in ready:
            self.beside[descriptor]()
        return bool(ready)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        try:
            other = _Other(Link(connection))
        except PermissionError:
            connection.close()
            return
        self._others.append(other)
        if self._closing:
            self._send_home(other)
        self.beside[connection.fileno()] = lambda: self._hear(other)

    def _hear(self, other: _Other) -> None:
        try:
            events = other.link.receive()
            if events is None:
                self._lose(other)
                return
            for event in events:
                self._take(other, event)
        except GarbledError:
            self._lose(other)

    def _take_own(self, event: Event) -> None:
        if event["event"] == "facts":
            self._mine.update(event)
        self._sink({**event, "rank": 0})

    def _take(self, other: _Other, event: Event) -> None:
        kind = event["event"]
        if kind == "hello":
            other.rank = event["rank"]
        elif kind == "facts":
            other.facts.update(event)
        elif kind == "ready":
            other.ready = True
        elif kind == "idle":
            other.idle, other.whole, other.left = True, event["whole"], []
        elif kind == "end":
            raise RunEndedError(
                event["status"], event["code"], f"rank {other.rank}: {event['reason']}"
            )
        else:
            if kind == "row" and event["row"] in other.left:
                other.left.remove(event["row"])
            self._sink({**event, "rank": other.rank})
            if (
                kind == "row"
                and self._on_failure == FAIL_FAST
                and event["results"]["status"] in BAD
            ):
                raise _StoppedError

    def _lose(self, other: _Other) -> None:
        """Take note that a rank is gone; before its work was done, it is lost."""
        self.beside.pop(other.link.fileno(), None)
        other.gone = True
        if not self._closing and (other.left or not other.idle or not other.ready):
            self._sink({"event": "lost", "rank": other.rank, "rows": other.left})
        other.left = []

    def _compare(self, other: _Other) -> None:
        mine, theirs = self._mine, other.facts
        hashes = [facts["receipt"]["plan_hash"] for facts in (mine, theirs)]
        if hashes[0] != hashes[1]:
            self._end(
                f"all ranks must have one plan, but its hash is {hashes[0][:12]} at rank 0 and "
                f"{hashes[1][:12]} at rank {other.rank}; give them the same binaries and settings"
            )
        if any(mine[key] != theirs[key] for key in ("cases", "guarantees")):
            self._end(f"all ranks must have the same cases, but rank {other.rank} has others")

    def _check_devices(self) -> None:
        """End the run where ranks share a device: each would time the others too."""
        users: dict[str, int] = {}
        facts = {0: self._mine, **{rank: other.facts for rank, other in self._named().items()}}
        for rank, known in sorted(facts.items()):
            device = known["device"]
            if device in users:
                self._end(
                    f"each rank must have a device for itself, but ranks {users[device]} and "
                    f"{rank} share {device}; launch one rank a device"
                )
            users[device] = rank

    def _end(self, reason: str) -> None:
        raise RunEndedError("error", EXIT_COULD_NOT_RUN, reason)


def follow(place: Place, own: Crew) -> int:
    """Do what rank 0 deals out, until it wants no more.

    Returns:
        The process's exit code: 0 wherever rank 0 got everything, for the verdict is its own.
    """
    try:
        follower = _Follower(ranks.call(place), own)
    except (TimeoutError, PermissionError) as error:
        print(f"rank {place.rank}: {error}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    try:
        follower.work(place.rank)
    except (_StoppedError, OSError, GarbledError):
        own.kill()
    except KeyboardInterrupt:
        own.kill()
        return EXIT_INTERRUPTED
    if follower.done:
        return EXIT_PASSED
    print(f"rank {place.rank}: rank 0 went away", file=sys.stderr)
    return EXIT_COULD_NOT_RUN


class _Follower:
    """A rank that works for rank 0."""

    def __init__(self, link: Link, own: Crew) -> None:
        self.done = False
        self._link, self._own = link, own
        self._waiting: list[Event] = []
        own.beside[link.fileno()] = self._hear

    def work(self, rank: int) -> None:
        """Get ready, and do rows as long as some are dealt out.

        Raises:
            _StoppedError: when rank 0 wants no more amid the work, or went away.
        """
        self._link.send({"event": "hello", "rank": rank})
        try:
            self._own.plan(self._link.send)
            while (event := self._next()) is not None:
                whole = self._own.run(event["rows"])
                self._link.send({"event": "idle", "whole": whole})
        except RunEndedError as end:
            said = {"status": end.status, "code": end.exit_code, "reason": end.reason}
            self._link.send({"event": "end", **said})
            self._next()
        self._own.close()

    def _next(self) -> Event | None:
        """Wait for what rank 0 says next; None when it is done."""
        while not self._waiting:
            try:
                self._hear()
            except _StoppedError:
                if self.done:
                    return None
                raise
        return self._waiting.pop(0)

    def _hear(self) -> None:
        events = self._link.receive()
        if events is None:
            raise _StoppedError
        for event in events:
            if event["event"] == "done":
                self.done = True
                raise _StoppedError
            self._waiting.append(event)
