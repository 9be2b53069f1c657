"""Runs a module's tests over its mutants, in copies of the package.

The tree itself is never written to.
"""

from __future__ import annotations

import compileall
import json
import os
import queue
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutation.mutants import Mutant
    from mutation.targets import Target

PACKAGE = Path(__file__).resolve().parents[2] / "xllm-kernel"
_LEFT_BEHIND = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", ".*cache")


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMEOUT = "timeout"


class TrialError(Exception):
    """The tests cannot tell a mutant from the module as it stands."""


class Bench:
    """A copy of the package, and a process that runs its tests."""

    def __init__(self, root: Path, python: Path) -> None:
        """Copy the package to a folder, anew, and start the process.

        Args:
            root: the folder.
            python: interpreter that has pytest and what the tests need.
        """
        shutil.rmtree(root, ignore_errors=True)
        # Tests read the documentation's schema where the repository has it: beside the package.
        shutil.copytree(PACKAGE.parent / "docs", root / "docs")
        root = root / PACKAGE.name
        shutil.copytree(PACKAGE, root, ignore=_LEFT_BEHIND)
        self._root = root
        for folder in ("python", "test"):
            compileall.compile_dir(root / folder, quiet=2)
        own = {"PYTHONPATH": str(root / "python"), "OMP_NUM_THREADS": "1"}
        # A changed file of the same size and second would otherwise run as what it was.
        own |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self._runner = subprocess.Popen(
            [python, Path(__file__).with_name("runner.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | own,
            cwd=root,
        )

    def close(self) -> None:
        """End the process."""
        self._runner.communicate()

    def run(self, tests: tuple[str, ...], timeout: float) -> Outcome:
        """Run tests, up to the first that fails.

        Raises:
            TrialError: where the process that runs them has died.
        """
        arguments = ["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider"]
        arguments += ["-c", str(self._root / "pyproject.toml"), f"--rootdir={self._root}"]
        folder = self._root / "test"
        arguments += [name if name.startswith("-") else str(folder / name) for name in tests]
        sink, source = self._runner.stdin, self._runner.stdout
        if sink is None or source is None:
            raise TrialError("the process that runs tests has no pipes")
        print(json.dumps([arguments, timeout]), file=sink, flush=True)
        answer = source.readline()
        if not answer:
            raise TrialError("the process that runs tests has died; its words are above")
        status = json.loads(answer)
        if status is None:
            return Outcome.TIMEOUT
        return Outcome.KILLED if status else Outcome.SURVIVED

    @contextmanager
    def holding(self, module: str, code: str) -> Iterator[None]:
        """Put other code in a module's place for a while."""
        path = self._root / "python" / "xllm_kernel" / module
        kept = path.read_bytes()
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        path.write_text(code, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(kept)


def limit_of(bench: Bench, target: Target) -> float:
    """Return how many seconds a mutant's tests may take.

    Raises:
        TrialError: where the tests fail without a mutant, or do not notice that the module raises.
    """
    started = time.monotonic()
    if bench.run(target.tests, 900) is not Outcome.SURVIVED:
        raise TrialError(f"{target.module}: its tests must pass without a mutant, but they fail")
    taken = time.monotonic() - started
    with bench.holding(target.module, "raise RuntimeError('planted')\n"):
        if bench.run(target.tests, 900) is Outcome.SURVIVED:
            raise TrialError(
                f"{target.module}: its tests pass although it cannot be imported, so they run "
                "another copy of it, or none"
            )
    return 10 + 5 * taken  # machines have other work, too


def run_all(
    benches: list[Bench],
    target: Target,
    mutants: list[Mutant],
    limit: float,
    tell: Callable[[Mutant, Outcome], None],
) -> list[tuple[Mutant, Outcome]]:
    """Run a target's tests over its mutants, as many at a time as there are copies.

    Args:
        benches: the copies.
        target: module and tests.
        mutants: what to try.
        limit: seconds that a run may take.
        tell: is called with each outcome as it becomes known.
    """
    free: queue.Queue[Bench] = queue.Queue()
    for bench in benches:
        free.put(bench)

    def run(mutant: Mutant) -> tuple[Mutant, Outcome]:
        bench = free.get()
        try:
            with bench.holding(target.module, mutant.code):
                outcome = bench.run(target.tests, limit)
        finally:
            free.put(bench)
        tell(mutant, outcome)
        return mutant, outcome

    with ThreadPoolExecutor(len(benches)) as pool:
        return list(pool.map(run, mutants))
