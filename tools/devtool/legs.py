"""Legs of a test run, two at a time, each in a process of its own; knows no leg.

Why two: a leg that compiles uses every processor, one that runs Python tests hardly more than one,
and both need less than half of the memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, NamedTuple

from devtool import shell
from devtool.shell import DevError, Interrupted, log_path, tail
from devtool.suites import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

AT_ONCE = 2
HEARTBEAT_S = 30.0
FORK = multiprocessing.get_context("fork")


class Leg(NamedTuple):
    """A part of a test run that needs no terminal.

    Attributes:
        name: of the leg, and of its suite if it ends without counts.
        run: builds and runs tests, and returns their counts.
        after: names of legs that must have ended, well or not, before this one begins.
    """

    name: str
    run: Callable[[], list[Suite]]
    after: tuple[str, ...] = ()


def run_legs(legs: Sequence[Leg]) -> list[Suite]:
    """Run every leg, print what each printed once it has ended, and return all counts in order.

    Where two may begin, the earlier one does. A leg that raises or dies counts as a failed test and
    stops no other. Interrupted, all are ended.
    """
    waiting, running, ended = list(legs), list[_Running](), dict[str, list[Suite]]()
    with _all_ended(running):
        while waiting or running:
            for leg in [one for one in waiting if all(name in ended for name in one.after)]:
                if len(running) < AT_ONCE:
                    waiting.remove(leg)
                    running.append(_Running(leg))
            if not running:
                raise DevError(f"legs wait for one another: {[leg.name for leg in waiting]}")
            if not wait([one.results for one in running], HEARTBEAT_S):
                for one in running:
                    print(f"    {one.seconds():.0f} s  {one.leg.name}: {tail(one.log, 1)[:79]}")
            for one in [one for one in running if one.results.poll()]:
                ended[one.leg.name] = one.finish()
                running.remove(one)
            sys.stdout.flush()
    return [suite for leg in legs for suite in ended[leg.name]]


class _Running:
    """A leg's process, what it prints, and where its counts arrive."""

    def __init__(self, leg: Leg) -> None:
        self.leg, self.log = leg, log_path(f"leg {leg.name}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        self._began = time.monotonic()
        self.results, end = FORK.Pipe(duplex=False)
        print(f"Begin: {leg.name}", flush=True)
        self.process = FORK.Process(target=_work, args=(leg, self.log, end))
        self.process.start()
        end.close()  # the child's alone: once it is dead, the pipe says so

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def finish(self) -> list[Suite]:
        """Print what the leg printed, and return its counts."""
        suites = [Suite(self.leg.name, 0, 1, Counter())]
        try:
            suites, used = self.results.recv()
            verdict = f"{self.seconds():.0f} s, {used:.0f} s of processors"
        except EOFError:
            self.process.join()
            verdict = f"ended without counts, exit status {self.process.exitcode}"
        self.process.join()
        print(f"\n===== {self.leg.name} =====\n{self.log.read_text(errors='replace').rstrip()}")
        print(f"===== {self.leg.name}: {verdict}\n", flush=True)
        return suites


def _work(leg: Leg, log: Path, results: Connection) -> None:
    """Run a leg in this process, all its output into a file."""
    os.setsid()  # a Ctrl-C reaches only the run, which ends its legs
    sink = log.open("w", buffering=1)  # to the end, for what an error prints there
    for descriptor in (1, 2):
        os.dup2(sink.fileno(), descriptor)
    sys.stdout = sys.stderr = sink
    shell.ON_TERMINAL = False
    try:
        suites = leg.run()
    except (DevError, OSError) as error:
        sys.exit(str(error))
    except Interrupted as interruption:
        sys.exit(128 + int(interruption.args[0]))
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    results.send((suites, children.ru_utime + children.ru_stime))


@contextlib.contextmanager
def _all_ended(running: list[_Running]) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    except BaseException:
        for one in running:
            one.process.terminate()
        for one in running:
            with contextlib.suppress(Interrupted):
                one.process.join()  # it ends what it started, by force where that is needed
        raise
