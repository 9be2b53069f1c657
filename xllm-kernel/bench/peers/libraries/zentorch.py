"""AMD's extension of PyTorch, which registers operators when imported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from peers.peer import Call, Library, Peer, PeerError, processor_flags, returned, standing, version


def _load() -> Library:
    import torch

    found = version("zentorch")
    importlib.import_module("zentorch")
    return Library(torch.ops.zentorch, (found,))


def _check_dtype(a: Mapping[str, Any]) -> None:
    # Elsewhere it does not refuse float16: it returns results that are off by millions of steps.
    if str(a["input"].dtype) == "torch.float16" and "avx512_fp16" not in processor_flags():
        raise PeerError(
            "its float16 is wrong on processors that do not compute in it (avx512_fp16), as here"
        )


def _norm(ops: Any, a: Mapping[str, Any]) -> Call:
    _check_dtype(a)
    return Call(partial(ops.zentorch_rms_norm, a["input"], a["weight"], a["eps"]), returned)


def _add_norm_in_place(ops: Any, a: Mapping[str, Any]) -> Call:
    _check_dtype(a)
    x, residual = a["input"], a["residual"]
    run = partial(ops.zentorch_add_rms_norm_, x, a["weight"], residual, a["eps"])
    return Call(run, standing(x, residual))


PEER = Peer(
    "zentorch",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
