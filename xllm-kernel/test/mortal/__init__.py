"""A throw-away operation without any framework, whose implementation does what its input says.

Most of what it does ends a process. Calls are counted, so that a deed can wait for a later step:
``segv@3`` is done in the third call. Validation is the first, warm-up the second, replay the third
with ``--warmup 1``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.registry import OpContract

CONTRACT = OpContract("mortal")
OPERATION = Operation(
    CONTRACT,
    (BackendModule("mortal.plain", "cpu", ("json",), ("cpu.plain.mortal", "cpu.other.mortal")),),
)


def _segv() -> None:
    import ctypes

    ctypes.string_at(0)


def _fork() -> None:
    """Come back in two processes, as code does that forgets to end its child."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)


def _print() -> None:
    """Print from Python and from C, what looks like results too."""
    print('{"event": "row", "row": 0, "results": {"status": "passed"}}', flush=True)
    os.write(1, b"from below\n")
    os.write(2, b"to standard error\n")


def _garble() -> None:
    """Write to every descriptor, the pipe of the results among them."""
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, b"not a line of anybody's\n")
        except OSError:
            continue


def _leave_a_child() -> None:
    """Leave a process behind that holds every pipe open, print its number, and die unflushed."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    print("left", pid)
    os._exit(7)


def _die_when_done() -> None:
    import atexit

    atexit.register(os._exit, 66)


def _hang() -> None:
    print("hangs")
    signal.pause()


def _kill_one_of_many(before: int) -> None:
    """End this process if so many siblings were started before it."""
    parent = os.getppid()
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    started = sorted(map(int, children.split()))
    if started.index(os.getpid()) == before:
        os.kill(os.getpid(), signal.SIGKILL)


def _raise() -> None:
    raise ValueError("out of order")


DEEDS: dict[str, Callable[[], object]] = {
    "segv": _segv,
    "abort": os.abort,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "second": lambda: _kill_one_of_many(1),
    "fourth": lambda: _kill_one_of_many(3),
    "term": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "exit0": lambda: os._exit(0),
    "exit7": lambda: os._exit(7),
    "sysexit": lambda: sys.exit(0),
    "raise": _raise,
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "hang": _hang,
    "fork": _fork,
    "whoami": lambda: print("I am", os.getpid()),
    "print": _print,
    "garble": _garble,
    "orphan": _leave_a_child,
    "late66": _die_when_done,
    "killrank": lambda: os.kill(os.getppid(), signal.SIGKILL),
}
