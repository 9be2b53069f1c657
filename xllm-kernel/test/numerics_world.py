"""Run both commands in this process on the throw-away operation, and read their reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import affine
import pytest
import torch  # noqa: F401 (a process that has loaded it runs cases in itself, where tests can look)

from xllm_kernel import catalog
from xllm_kernel.benchmark.__main__ import main as benchmark
from xllm_kernel.numerics import catalog as suite_catalog
from xllm_kernel.numerics.__main__ import main as numerics
from xllm_kernel.registry import KernelRegistry

COMMANDS: dict[str, Callable[[list[str]], int]] = {"numerics": numerics, "benchmark": benchmark}
QUICK = ("--iterations", "2", "--repeats", "3")


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    code: int
    report: dict[str, Any]
    markdown: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.report["rows"]


class World:
    """A catalogue that holds the throw-away operation alone."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        monkeypatch.setattr(catalog, "_BUILTINS", ("affine",))
        monkeypatch.setattr(suite_catalog, "_BUILTINS", ("affine.suite",))
        self.forget()

    def forget(self) -> None:
        """Begin a new worker."""
        for name in ("affine.plain", "affine.other"):
            self._monkeypatch.delitem(sys.modules, name, raising=False)
        self._monkeypatch.setattr(KernelRegistry, "_instance", KernelRegistry())

    def plant(self, behaviour: Callable[..., Any]) -> None:
        """Make the bound callable do something else."""
        self._monkeypatch.setattr(affine, "behaviour", behaviour)

    def run(self, command: str, *options: str, implementation: str = "cpu.plain.affine") -> Outcome:
        """Run a command as a new worker, quickly."""
        self.forget()
        path = self._folder / f"{command}.json"
        argv = ["--implementation", implementation, "--output", str(path), *options]
        if command == "benchmark" and "--iterations" not in options:
            argv += QUICK
        code = COMMANDS[command](argv)
        text = path.with_suffix(".md").read_text(encoding="utf-8")
        return Outcome(code, json.loads(path.read_text(encoding="utf-8")), text)
