"""Paths, child processes, their logs and the lock; knows no verb and no environment."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "xllm-kernel"
SIMULATOR = ROOT / "ascend-sim"
BUILD = ROOT / "build"
CPUS = str(len(os.sched_getaffinity(0)))
ON_TERMINAL = sys.stdout.isatty()
HELD: list[int] = []  # the lock's file descriptor, while this process holds it


class DevError(Exception):
    """What went wrong and what to do, for the person at the terminal."""


class Interrupted(BaseException):
    """A signal asked this process to end."""


def environment(venv: Path | None = None, **extra: str) -> dict[str, str]:
    """Return the environment for a child: the user's, less what would leak into a venv."""
    leaks = ("PYTHONPATH", "PYTHONHOME", "PIP_USER")
    env = {name: value for name, value in os.environ.items() if name not in leaks}
    env |= {"PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
    if venv:
        env |= {"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}:{os.environ['PATH']}"}
    return env | extra


def run(
    command: Iterable[object], tick: Callable[[], None] | None = None, **options: object
) -> int:
    """Run a command to its end and return its status; interrupted, end all that it started."""
    line = [str(part) for part in command]
    options = {"cwd": ROOT, "env": environment(), **options}
    # In a session of its own, so that a Ctrl-C reaches only this script, which ends the group.
    child = subprocess.Popen(  # type: ignore[call-overload]
        line, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=HELD, **options
    )
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return int(child.wait(0.2))
            if tick:
                tick()
    except BaseException:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired, Interrupted):
                os.killpg(child.pid, number)
                child.wait(8)
        raise


def tail(log: Path, lines: int) -> str:
    """Return the last lines of a log."""
    with log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - 400 * lines))
        text = stream.read().decode(errors="replace").replace("\r", "\n")
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def log_path(title: str) -> Path:
    """Return where a step of such a title leaves its log."""
    return BUILD / "logs" / (re.sub(r"\W+", "-", title.lower()) + ".log")


def step(title: str, *command: object, check: bool = True, **options: object) -> int:
    """Run a long command into a log, showing the time it takes and, if it fails, the log's end."""
    log = log_path(title)
    log.parent.mkdir(parents=True, exist_ok=True)
    started = shown = time.monotonic()

    def tick() -> None:
        nonlocal shown
        now = time.monotonic()
        note = f"{now - started:.0f} s  {tail(log, 1)}"
        if ON_TERMINAL:
            columns = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{f'{title} ... {note}'[:columns]}", end="", flush=True)
        elif now - shown >= 30:
            shown = now
            print(f"    {note[:99]}", flush=True)

    print(f"{title} ...", end="" if ON_TERMINAL else "\n", flush=True)
    with log.open("wb") as sink:
        sink.write(f"$ {shlex.join(map(str, command))}\n".encode())
        sink.flush()
        status = run(command, tick, stdout=sink, stderr=subprocess.STDOUT, **options)
    lead = f"\r\033[K{title}: " if ON_TERMINAL else "    "
    verdict = f"FAILED, exit status {status}" if status else "done"
    print(f"{lead}{verdict}, {time.monotonic() - started:.0f} s", flush=True)
    if status:
        print(f"{tail(log, 40)}\nThe whole log: {os.path.relpath(log, ROOT)}", flush=True)
    if status and check:
        raise DevError(f"failed: {title}")
    return status


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let one ./dev at a time change .venv and build/.

    Children share the lock, so that one that outlives a killed ./dev still holds off the next.
    Who holds it already goes on.
    """
    if HELD:
        yield
        return
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another ./dev is at work here; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        HELD.append(lock.fileno())
        try:
            yield
        finally:
            HELD.clear()
