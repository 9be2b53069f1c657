"""PyTorch, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from peers.operations import fused_add_rms_norm, rms_norm
from peers.peer import Call, Library, Peer, returned, standing


def _load() -> Library:
    import torch

    return Library(torch.nn.functional, (f"torch {torch.__version__}",))


def _norm(functional: Any, a: Mapping[str, Any]) -> Call:
    weight = a["weight"]
    return Call(partial(functional.rms_norm, a["input"], weight.shape, weight, a["eps"]), returned)


def _norm_out(_functional: Any, a: Mapping[str, Any]) -> Call:
    function = rms_norm.composed_out()
    run = partial(function, a["output"], a["input"], a["weight"], a["eps"])
    return Call(run, standing(a["output"]))


def _add_norm(_functional: Any, a: Mapping[str, Any]) -> Call:
    function = fused_add_rms_norm.composed()
    return Call(partial(function, a["input"], a["residual"], a["weight"], a["eps"]), returned)


def _add_norm_in_place(_functional: Any, a: Mapping[str, Any]) -> Call:
    return fused_add_rms_norm.in_place(*fused_add_rms_norm.composed_in_place(), a)


PEER = Peer(
    "torch eager",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("rms_norm", "out"): _norm_out,
        ("fused_add_rms_norm", "allocating"): _add_norm,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
