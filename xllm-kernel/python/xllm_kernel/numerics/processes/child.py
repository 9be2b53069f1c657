"""A forked process that reports over a pipe, and how it ended.

Knows nothing of cases: it carries lines both ways and keeps the last that the process printed.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xllm_kernel.numerics.processes.wire import Event, GarbledError, Lines, encode

Beside = Mapping[int, Callable[[], None]]
"""What to call when one of the caller's own descriptors can be read, while a child is awaited."""

Body = Callable[[Callable[[Event], None], Callable[[], "Event | None"]], None]
"""What a child does; it gets a function that tells an event and one that awaits the next."""

_TAIL = 4000  # bytes of what a process printed last
_PIECE = 1 << 16
_GLANCE_S = 0.2  # between looks at a child whose end wakes nobody
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended.

    Attributes:
        status: exit status, or the negative number of the signal that killed it.
        stderr: the last that it printed.
        note: what else is known, or None.
    """

    status: int
    stderr: str
    note: str | None = None

    def __str__(self) -> str:
        if self.note is not None:
            return f"its process was killed: {self.note}"
        if self.status >= 0:
            return f"its process exited with status {self.status}"
        number = -self.status
        known = {s.value for s in signal.Signals}
        name = signal.Signals(number).name if number in known else f"signal {number}"
        hint = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
        return f"its process was killed by {name}{hint}"


class Child:
    """One process; it has its own process group, and dies with this one."""

    def __init__(self, body: Body, not_inherited: tuple[int, ...] = ()) -> None:
        """Start it.

        Args:
            body: what it does. When it returns the process ends as any, exit handlers included.
            not_inherited: descriptors of this process that would stay open in the child.
        """
        commands, self._commands = os.pipe()
        self._events, events = os.pipe()
        self._printed, printed = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            for own in (self._commands, self._events, self._printed, *not_inherited):
                os.close(own)
            _be_the_child(body, parent, commands, events, printed)
        for theirs in (commands, events, printed):
            os.close(theirs)
        with contextlib.suppress(OSError):  # the child does so too; whoever is first
            os.setpgid(self._pid, self._pid)
        self._exit = _exit_descriptor(self._pid)
        self._open = {self._events, self._printed}
        self._lines, self._tail = Lines(), b""
        self._note: str | None = None
        self.ending: Ending | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """This process's ends of what joins the two; none once it has ended.

        A second child would inherit them, and with them keep the first one's commands from ending.
        """
        if self.ending is not None:
            return ()
        ends = (self._commands, self._events, self._printed, self._exit)
        return tuple(end for end in ends if end is not None)

    def send(self, event: Event) -> None:
        """Tell the child something; one that is dead does not hear it."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, encode(event))

    def events(self, beside: Beside) -> Iterator[Event]:
        """Return what the child tells, in order, until it has ended; then ``ending`` says how.

        Args:
            beside: served meanwhile; it may change while it is.
        """
        while self.ending is None:
            ready = self._poll(beside, None)
            for descriptor in ready & beside.keys():
                beside[descriptor]()
            yield from self._serve(ready)

    def close(self, grace_s: float) -> Ending:
        """Let the child end, or end it where it does not in time; return how it ended."""
        if self.ending is not None:
            return self.ending
        os.close(self._commands)
        self._commands = os.open(os.devnull, os.O_WRONLY)
        end = time.monotonic() + grace_s
        while self.ending is None and (left := end - time.monotonic()) > 0:
            for _ in self._serve(self._poll({}, left)):
                pass  # nobody waits for what it still tells
        if self.ending is None:
            self._note = f"it had not ended after {grace_s:g} s"
        return self.kill()

    def kill(self) -> Ending:
        """End the child and whatever it started, at once; return how it ended."""
        if self.ending is None:
            self._kill_group()
            self.ending = self._reap()
        return self.ending

    def _poll(self, beside: Beside, timeout_s: float | None) -> set[int]:
        poller = select.poll()
        for descriptor in (*self._open, *beside):
            poller.register(descriptor, select.POLLIN)
        if self._exit is not None:
            poller.register(self._exit, select.POLLIN)
        elif timeout_s is None or timeout_s > _GLANCE_S:
            timeout_s = _GLANCE_S
        found = poller.poll(None if timeout_s is None else timeout_s * 1e3)
        return {descriptor for descriptor, _ in found}

    def _serve(self, ready: set[int]) -> Iterator[Event]:
        """Read what can be read; all of it once the child has ended."""
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        over = os.waitid(os.P_PID, self._pid, look) is not None
        if over or self._printed in ready:
            for data in self._pieces(self._printed, over):
                self._tail = (self._tail + data)[-_TAIL:]
                with contextlib.suppress(OSError):
                    os.write(2, data)
        if over or self._events in ready:
            for data in self._pieces(self._events, over):
                yield from self._events_in(data)
        if over:
            self.ending = self._reap()

    def _pieces(self, descriptor: int, everything: bool) -> Iterator[bytes]:
        """Read once, or for as long as something is there: others may hold the pipe open."""
        probe = select.poll()
        probe.register(descriptor, select.POLLIN)
        while descriptor in self._open and probe.poll(0):
            data = os.read(descriptor, _PIECE)
            if data:
                yield data
            else:
                self._open.remove(descriptor)
            if not everything:
                return

    def _events_in(self, data: bytes) -> Iterator[Event]:
        if self._note is not None:
            return
        try:
            yield from self._lines.feed(data)
        except GarbledError as error:
            self._note = f"something else than results came over their pipe ({error})"
            self._kill_group()

    def _kill_group(self) -> None:
        # Until it is waited for, nobody else can get the child's number, and so its group's.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)

    def _reap(self) -> Ending:
        self._kill_group()
        _, status = os.waitpid(self._pid, 0)
        for descriptor in (self._commands, self._events, self._printed, self._exit):
            if descriptor is not None:
                os.close(descriptor)
        text = self._tail.decode("utf-8", "backslashreplace").strip()
        return Ending(os.waitstatus_to_exitcode(status), text, self._note)


def _exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that can be read once a process has ended; None on Linux before 5.3."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _be_the_child(body: Body, parent: int, commands: int, events: int, printed: int) -> None:
    """Do what a child does and end the process; never returns."""
    code = 70
    try:
        os.setpgid(0, 0)  # so that a terminal's interrupt reaches the parent alone
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(code)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _redirect(printed)
        body(_teller(events), _listener(commands))
        code = 0
    except BaseException:  # noqa: BLE001 (this process ends here, and says why)
        traceback.print_exc()
    # As the interpreter does at the end of a program, so that exit handlers of Python and of C run;
    # unwinding to there would run the rest of the parent's program.
    ctypes.pythonapi.Py_Exit(code)


def _redirect(printed: int) -> None:
    """Give what anybody prints to the parent, before a crash can lose it; leave nothing to read."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(nothing)
    os.close(printed)
    faulthandler.enable(file=2)


def _teller(events: int) -> Callable[[Event], None]:
    owner = os.getpid()

    def tell(event: Event) -> None:
        if os.getpid() != owner:
            os._exit(70)  # an implementation forked, and its child came back here
        data = encode(event)
        while data:
            data = data[os.write(events, data) :]

    return tell


def _listener(commands: int) -> Callable[[], Event | None]:
    lines = Lines()
    waiting: list[Event] = []

    def listen() -> Event | None:
        while not waiting:
            data = os.read(commands, _PIECE)
            if not data:
                return None
            waiting.extend(lines.feed(data))
        return waiting.pop(0)

    return listen
