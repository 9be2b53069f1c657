"""Import the programs in ``tools/evidence``, which are no package, by their file names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

EVIDENCE = Path(__file__).resolve().parents[2] / "tools" / "evidence"


def load_evidence(name: str) -> ModuleType:
    """Import one program as the interpreter does when it is run."""
    sys.path.insert(0, str(EVIDENCE))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EVIDENCE))
