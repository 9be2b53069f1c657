"""Further processes of the NPU tests, a few at a time: each imports PyTorch and torch_npu."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY_ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 600

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Command:
    """A command line of Python's and what its environment differs in; None removes a variable."""

    arguments: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)

    def run(self) -> Done:
        environment = dict(os.environ)
        for name, value in self.environment.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value
        return subprocess.run(
            [sys.executable, *self.arguments],
            cwd=REPOSITORY_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def run_all(commands: Iterable[Command]) -> list[Done]:
    """Run commands side by side, as many as there are processors; return what became of each."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(Command.run, commands))


def text_of(done: Done) -> str:
    """Return all that a process wrote, for messages."""
    return f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
