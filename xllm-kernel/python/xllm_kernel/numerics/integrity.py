"""Whether what judges is still what it was: clocks, comparisons, this package, PyTorch itself.

An implementation runs in the judge's own process; one that replaces the judge's tools is caught by
comparing them with what they were before it was loaded.
"""

from __future__ import annotations

import builtins
import gc
import json
import json.encoder
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
)
from typing import Any

_WHILE = (
    "while the implementation was judged, so no verdict counts; an implementation must leave the "
    "process as it is"
)
# What measures, decides between measurements, and carries them to another process.
_LIBRARIES = (builtins, gc, json, json.encoder, resource, time)
_JUDGES = ("xllm_kernel.numerics", "xllm_kernel.benchmark", "xllm_kernel.platforms")


class Seal:
    """Remembers the judge's tools as they are when it is made."""

    def __init__(self) -> None:
        """Take note of every function, class and constant; PyTorch's, once it is imported."""
        self._tools = {(name, key): value for name, key, value in _tools()}
        self._state = _state()
        self._code = {
            tool: value.__code__
            for tool, value in self._tools.items()
            if isinstance(value, FunctionType)
        }

    def broken(self) -> str | None:
        """Return a sentence about the first tool that was replaced, or None."""
        now = {(name, key): value for name, key, value in _tools()}
        for tool, value in self._tools.items():
            same = now.get(tool) is value
            if same and tool in self._code:
                same = value.__code__ is self._code[tool]
            if not same:
                return f"{'.'.join(tool)} was replaced {_WHILE}"
        for (what, before), after in zip(self._state.items(), _state().values(), strict=True):
            if after != before:
                return f"{what} was {before} and is {after}, changed {_WHILE}"
        return None


def _state() -> dict[str, object]:
    """Return what an implementation must leave as it is, for it changes what others compute."""
    one, half_step, least = 1.0, 2.0**-53, 5e-324
    state: dict[str, object] = {
        "the rounding of 1 + 2^-53": one + half_step,
        "the rounding of -1 - 2^-53": -one - half_step,
        # As text: a processor that flushes would find it equal to zero, too.
        "the smallest double, times one": (least * one).hex(),
        "the working directory": Path.cwd(),
        "the nice value": os.getpriority(os.PRIO_PROCESS, 0),
        "the scheduling policy": os.sched_getscheduler(0),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        state |= {
            "torch's default dtype": torch.get_default_dtype(),
            "torch's number of threads": torch.get_num_threads(),
            "torch's grad mode": torch.is_grad_enabled(),
            "torch's inference mode": torch.is_inference_mode_enabled(),
        }
    return state


def _tools() -> Iterator[tuple[str, str, Any]]:
    judges = [m for n, m in sorted(sys.modules.items()) if n.startswith(_JUDGES)]
    for owner in (*_LIBRARIES, *judges):
        for key, value in list(vars(owner).items()):
            if key.startswith("__"):  # a compiler keeps what it made there
                continue
            if callable(value) or key.isupper():
                yield owner.__name__, key, value
            if isinstance(value, type) and value.__module__ == owner.__name__:
                for method, function in list(vars(value).items()):
                    yield owner.__name__, f"{key}.{method}", function
    if "torch" in sys.modules:
        yield from _native_tools(sys.modules["torch"])


def _native_tools(torch: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield what PyTorch implements natively; what is Python there its compiler replaces itself."""
    for key, value in list(vars(torch).items()):
        if isinstance(value, BuiltinFunctionType):
            yield "torch", key, value
    # As seen through the class that may hide them.
    for key, value in vars(torch._C.TensorBase).items():
        if isinstance(value, (MethodDescriptorType, GetSetDescriptorType)):
            yield "torch.Tensor", key, getattr(torch.Tensor, key, None)
