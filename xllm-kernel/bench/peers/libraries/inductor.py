"""PyTorch's compiler. Its code fixes the number of threads, so each number has code of its own."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

NAME = "torch.compile"


@dataclass(frozen=True, slots=True)
class Inductor:
    """Compiles for exact shapes, which is fastest."""

    version: str

    def compiled(self, function: types.FunctionType, threads: int) -> Callable[..., Any]:
        """Return the function compiled for the shapes and the threads of its first call.

        Compiled code hangs on the function's code object and is found again by comparing shapes
        and threads, one variant after the other: a copy keeps each variant the only one.

        Args:
            function: without captured variables.
            threads: torch must be set to it in every call.
        """
        code = function.__code__.replace(co_name=f"{function.__name__}_on_{threads}")
        copy = types.FunctionType(code, function.__globals__)
        compiled: Callable[..., Any] = torch.compile(copy, dynamic=False, fullgraph=True)
        return compiled


def load() -> Inductor:
    """Return the compiler."""
    return Inductor(torch.__version__)
