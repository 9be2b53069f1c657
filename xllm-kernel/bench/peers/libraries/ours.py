"""This package, as its users load and bind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xllm_kernel
from peers.operation import PeerError
from xllm_kernel.errors import KernelError

NAME = "xllm-kernel"


@dataclass(frozen=True, slots=True)
class Ours:
    """The published plans."""

    version: str

    def function(self, operation: str) -> Callable[..., Any]:
        """Return an operation's bound callable, of our own kernels only."""
        plan = xllm_kernel.KernelRegistry.get().prepared(operation)
        if plan.spec.solution != "simd":
            raise PeerError(
                f"'{plan.spec.name}' was chosen, which is no kernel of ours: ./dev build"
            )
        return plan.function


def load() -> Ours:
    """Initialise the package once."""
    try:
        xllm_kernel.initialize(device="cpu")
    except KernelError as error:
        raise PeerError(str(error)) from error
    return Ours(xllm_kernel.__version__)
