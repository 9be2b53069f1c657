"""PyTorch's compiler, for exact shapes, which is fastest."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from peers.operations import fused_add_rms_norm, rms_norm
from peers.peer import Call, Library, Peer, returned, standing


def _load() -> Library:
    import torch
    from torch._inductor import config

    # In this process: a pool of compilers would still be there while others are timed.
    config.compile_threads = 1
    return Library(torch.compile, (f"torch {torch.__version__}", "dynamic=False, fullgraph=True"))


def _compiled(compiler: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled for the shapes and the threads of its first call.

    Compiled code hangs on the function's code object and is found again by comparing shapes, one
    variant after the other: a copy keeps each variant the only one.
    """
    original = cast("types.FunctionType", function)
    copy = types.FunctionType(
        original.__code__.replace(co_name=f"{original.__name__}_compiled"),
        original.__globals__,
        closure=original.__closure__,
    )
    compiled: Callable[..., Any] = compiler(copy, dynamic=False, fullgraph=True)
    return compiled


def _norm(compiler: Any, a: Mapping[str, Any]) -> Call:
    function = _compiled(compiler, rms_norm.composed())
    return Call(partial(function, a["input"], a["weight"], a["eps"]), returned)


def _norm_out(compiler: Any, a: Mapping[str, Any]) -> Call:
    function = _compiled(compiler, rms_norm.composed_out())
    run = partial(function, a["output"], a["input"], a["weight"], a["eps"])
    return Call(run, standing(a["output"]))


def _add_norm(compiler: Any, a: Mapping[str, Any]) -> Call:
    function = _compiled(compiler, fused_add_rms_norm.composed())
    return Call(partial(function, a["input"], a["residual"], a["weight"], a["eps"]), returned)


def _add_norm_in_place(compiler: Any, a: Mapping[str, Any]) -> Call:
    add, norm = (_compiled(compiler, part) for part in fused_add_rms_norm.composed_in_place())
    return fused_add_rms_norm.in_place(add, norm, a)


PEER = Peer(
    "torch.compile",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("rms_norm", "out"): _norm_out,
        ("fused_add_rms_norm", "allocating"): _add_norm,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
