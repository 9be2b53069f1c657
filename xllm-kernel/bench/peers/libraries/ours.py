"""This package, as its users load and bind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from peers.peer import Call, Library, Peer, PeerError, returned, standing


def _load() -> Library:
    import xllm_kernel
    from xllm_kernel.errors import KernelError

    try:
        plans = xllm_kernel.initialize(device="cpu")
    except KernelError as error:
        raise PeerError(str(error)) from error
    build = {line: None for plan in plans.values() for line in plan.spec.build}
    return Library(plans, (f"xllm-kernel {xllm_kernel.__version__}", *build))


def _function(plans: Mapping[str, Any], operation: str) -> Callable[..., Any]:
    """Return an operation's bound callable, of our own kernels only."""
    plan = plans[operation]
    if plan.spec.solution != "simd":
        raise PeerError(f"'{plan.spec.name}' was chosen, which is no kernel of ours: ./dev build")
    function: Callable[..., Any] = plan.function
    return function


def _norm(plans: Any, a: Mapping[str, Any]) -> Call:
    return Call(partial(_function(plans, "rms_norm"), a["input"], a["weight"], a["eps"]), returned)


def _norm_out(plans: Any, a: Mapping[str, Any]) -> Call:
    function = _function(plans, "rms_norm_out")
    run = partial(function, a["output"], a["input"], a["weight"], a["eps"])
    return Call(run, standing(a["output"]))


def _add_norm(plans: Any, a: Mapping[str, Any]) -> Call:
    function = _function(plans, "fused_add_rms_norm")
    return Call(partial(function, a["input"], a["residual"], a["weight"], a["eps"]), returned)


def _add_norm_in_place(plans: Any, a: Mapping[str, Any]) -> Call:
    function = _function(plans, "fused_add_rms_norm_inplace")
    run = partial(function, a["input"], a["residual"], a["weight"], a["eps"])
    return Call(run, standing(a["input"], a["residual"]))


PEER = Peer(
    "xllm-kernel",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("rms_norm", "out"): _norm_out,
        ("fused_add_rms_norm", "allocating"): _add_norm,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
