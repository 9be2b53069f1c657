"""Results at other SIMD levels: a process has one for life, so each other level gets a child.

Run as a module with a file and the options of the run, this is that child.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xllm_kernel.errors import ConfigurationError, DependencyBrokenError
from xllm_kernel.numerics import arguments
from xllm_kernel.numerics.invariants.checks import Results, Subject, covered, difference
from xllm_kernel.numerics.suite import Trial
from xllm_kernel.registry import PreparedKernel

VARIABLE = "XLLM_KERNEL_SIMD_LEVEL"
_NOT_HERE = 3


def level_invariant(
    plan: PreparedKernel, trials: Sequence[Trial], argv: Sequence[str]
) -> tuple[str | None, list[str]]:
    """Compare this process's results with those of every other level that the machine has.

    Args:
        plan: the implementation.
        trials: the suite's.
        argv: options of the run, from which a child makes the same trials.

    Returns:
        A sentence about the first difference or None, and the other levels that were compared.
    """
    mine = [(trial.name, Subject(plan, trial).call(trial.make())) for trial in trials]
    compared = []
    for level in other_levels():
        theirs = results_at(level, argv)
        if theirs is None:
            continue
        compared.append(level)
        for (name, here), (_, there) in zip(mine, theirs, strict=True):
            reason = difference(there, f"at level {level}", here, f"at level {own_level()}")
            if reason is not None:
                return f"{name}: {reason}", compared
    return None, compared


def own_level() -> str:
    """Return this process's level."""
    import torch

    level: str = torch.ops.xllm_kernel.simd_level.default()
    return level


def other_levels() -> list[str]:
    """Return the levels that were built, without this process's."""
    import xllm_kernel._build.simd as build

    manifest: Mapping[str, Any] = build.MANIFEST
    return [level for level in manifest["levels"] if level != own_level()]


def results_at(level: str, argv: Sequence[str]) -> list[tuple[str, Results]] | None:
    """Return the trials' results at a level by trial, or None where the machine lacks it.

    Raises:
        DependencyBrokenError: when the child fails otherwise.
    """
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.pt"
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(path), *argv],
            env={**os.environ, VARIABLE: level},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == _NOT_HERE:
            return None
        if done.returncode != 0:
            raise DependencyBrokenError(
                f"level_invariant: a child with {VARIABLE}={level} must compute the trials, it "
                f"exited {done.returncode}: {done.stderr.strip()[-500:]}"
            )
        results: list[tuple[str, Results]] = torch.load(path)
        return results


def main(argv: Sequence[str]) -> int:
    """Compute the trials' results and leave them in the file that the first argument names."""
    import torch

    path, *options = argv
    request = arguments.parse("numerics", options)
    try:
        plan = request.suite.prepare(request.device, request.mode, request.implementation)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return _NOT_HERE if VARIABLE in str(error) else 2
    trials = covered(request.suite.trials(request.options), plan)
    results = [(trial.name, Subject(plan, trial).call(trial.make())) for trial in trials]
    torch.save(results, path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
