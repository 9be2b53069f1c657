"""The mutation score: its environment, and the run of ``tools/mutation`` in it."""

from __future__ import annotations

import shutil

from devtool.environments import MUTATION, VENV, ensure_venv
from devtool.shell import BUILD, ROOT, alone, environment, run

COPIES = BUILD / "mutation"


def run_mutation(*arguments: str) -> int:
    """Plant faults in copies of the package and print how many its tests notice."""
    with alone():
        ensure_venv(MUTATION, "mutation.txt")
    python = MUTATION / "bin/python"
    tests = ["--python", VENV / "bin/python", "--copies", COPIES]
    env = environment(MUTATION, PYTHONPATH=str(ROOT / "tools"), PYTHONDONTWRITEBYTECODE="1")
    try:
        return run([python, "-m", "mutation", *tests, *arguments], env=env)
    finally:
        shutil.rmtree(COPIES, ignore_errors=True)
