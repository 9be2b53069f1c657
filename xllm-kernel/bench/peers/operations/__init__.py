"""The operators that have something to be compared with; each has a file of its own here.

They are found by listing the folder; importing them needs no framework.
"""

from __future__ import annotations

import importlib
import pkgutil

from peers.operation import Operation


def operations() -> dict[str, Operation]:
    """Return every operator by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").OPERATION for name in names]
    return {operation.name: operation for operation in found}
