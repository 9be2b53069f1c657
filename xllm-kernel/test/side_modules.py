"""Import programs that are no part of the package: those of ``bench/`` and ``tools/evidence/``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from conftest import PACKAGE_ROOT, REPOSITORY_ROOT

BENCH, EVIDENCE = PACKAGE_ROOT / "bench", REPOSITORY_ROOT / "tools" / "evidence"


def load_bench(name: str) -> ModuleType:
    """Import one module as ``python -m`` does with ``bench/`` on the path."""
    return _load(BENCH, name)


def load_evidence(name: str) -> ModuleType:
    """Import one program as the interpreter does when it is run."""
    return _load(EVIDENCE, name)


def _load(folder: Path, name: str) -> ModuleType:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
