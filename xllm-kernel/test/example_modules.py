"""Import the example scripts, which are no package, by their file names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load_example(name: str, directory: Path = EXAMPLES / "smollm2") -> ModuleType:
    """Import one example module as the interpreter does when a script beside it runs."""
    sys.path.insert(0, str(directory))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(directory))
