"""Run commands one after another, each with its log, and show how far they are."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from terminal import Style

_TAIL_LINES = 12
_TITLE_COLUMNS = 60
_REFRESH_SECONDS = 0.2
_OVERRIDES = "XLLM_KERNEL_OVERRIDE_"


class StepError(Exception):
    """A command ended in another way than its step allows; the message says how, and where."""


@dataclass(frozen=True, slots=True)
class Step:
    """Hold a finished step.

    Attributes:
        title: what was done.
        seconds: how long it took.
        command: the command line, to run it again.
        output: what it wrote to standard output.
    """

    title: str
    seconds: float
    command: str
    output: str


class Steps:
    """Run a known number of steps in one directory, and keep what was run."""

    def __init__(self, total: int, root: Path, logs: Path, style: Style) -> None:
        """Prepare to run.

        Args:
            total: how many steps will come.
            root: working directory of every command.
            logs: directory of the logs; it is created.
            style: how the terminal shows things.
        """
        self.done: list[Step] = []
        self._total, self._root, self._logs, self._style = total, root, logs, style
        logs.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        title: str,
        arguments: Sequence[str],
        accept: Sequence[int] = (0,),
        settings: Mapping[str, str] | None = None,
    ) -> Step:
        """Run `python ARGUMENTS` as the next step.

        Args:
            title: what is done, a few words.
            arguments: arguments of the Python interpreter that runs this script.
            accept: exit statuses after which the step is done.
            settings: environment variables to add.

        Returns:
            The finished step.

        Raises:
            StepError: the command ended with another status.
        """
        number = len(self.done) + 1
        head = f"[{number:2d}/{self._total}] {title}"
        settings = settings or {}
        prefix = [f"{name}={value}" for name, value in settings.items()]
        command = shlex.join([*prefix, "python", *arguments])
        log = self._logs / f"{number:02d}.{_file_name(title)}.log"
        self._begin(head)
        started = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._root,
            env={**_environment(), **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        output: deque[str] = deque()
        messages: deque[str] = deque(maxlen=_TAIL_LINES)
        with log.open("w", encoding="utf-8") as file:
            file.write(f"$ {command}\n")
            readers = [
                threading.Thread(target=_read, args=(stream, lines, file), daemon=True)
                for stream, lines in ((child.stdout, output), (child.stderr, messages))
            ]
            for reader in readers:
                reader.start()
            try:
                self._wait(child, head, started, messages)
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()
                for reader in readers:
                    reader.join()
        seconds = time.monotonic() - started
        good = child.returncode in accept
        self._end(head, seconds, good)
        if not good:
            tail = "".join(f"\n    {line.rstrip()}" for line in messages)
            raise StepError(
                f"{title}: exit status {child.returncode}; log: {log}; command: {command}{tail}"
            )
        self.done.append(Step(title, seconds, command, "".join(output)))
        return self.done[-1]

    def _begin(self, head: str) -> None:
        if not self._style.live:
            print(f"{head:{_TITLE_COLUMNS}}", end="", flush=True)

    def _wait(
        self, child: subprocess.Popen[str], head: str, started: float, messages: deque[str]
    ) -> None:
        while child.poll() is None:
            if self._style.live:
                latest = messages[-1].strip() if messages else ""
                line = f"{head}  {time.monotonic() - started:3.0f} s  {latest}"
                self._style.replace_line(line)
            time.sleep(_REFRESH_SECONDS)

    def _end(self, head: str, seconds: float, good: bool) -> None:
        if self._style.live:
            self._style.replace_line(f"{head:{_TITLE_COLUMNS}}")
        print(f"{self._style.verdict(good)} {seconds:5.1f} s", flush=True)


def _read(stream: IO[str], lines: deque[str], log: IO[str]) -> None:
    for line in stream:
        lines.append(line)
        log.write(line)


def _environment() -> dict[str, str]:
    """Return the environment without overrides: each step says itself which kernel it wants."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OVERRIDES)}


def _file_name(title: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in title.lower())
