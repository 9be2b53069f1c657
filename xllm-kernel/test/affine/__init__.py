"""A throw-away operation with arguments and outputs of its own: size and scale, a dictionary.

It shows that the shared commands know no operator. ``behaviour`` is what the bound callable does;
tests replace it to plant faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.registry import OpContract

CONTRACT = OpContract("affine")
OPERATION = Operation(
    CONTRACT,
    (
        BackendModule("affine.plain", "cpu", ("torch",), ("cpu.plain.affine",)),
        BackendModule("affine.other", "cpu", ("torch",), ("cpu.other.affine",)),
        BackendModule("affine.absent", "cpu", ("no_such_module_at_all",), ("cpu.absent.affine",)),
    ),
)


def honest(values: Any, scale: float) -> dict[str, Any]:
    """Return the scaled values, and their negation in a tuple."""
    scaled = values * scale
    return {"scaled": scaled, "parts": (-scaled,)}


behaviour: Callable[[Any, float], Any] = honest
