"""Choose the RMSNorm that the model is handed: the package's bound callable, or torch's own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from model import Norm
from torch.nn import functional

BOUND, TORCH_FUNCTIONAL = "bound", "torch-functional"


@dataclass(frozen=True, slots=True)
class NamedNorm:
    """Pair a callable with the name that reports show."""

    name: str
    function: Norm


def choose_norm(kind: str, override: str | None = None) -> NamedNorm:
    """Return the norm to run the model with.

    Args:
        kind: `bound` initializes xllm_kernel in this process; `torch-functional` leaves it alone.
        override: solution for `bound`, e.g. `simd`; by default the package selects.

    Returns:
        The callable and its name.

    Raises:
        xllm_kernel.errors.KernelError: the package cannot bind what was asked for.
    """
    if kind == TORCH_FUNCTIONAL:
        return NamedNorm("torch.nn.functional.rms_norm", _torch_functional)
    from xllm_kernel import initialize

    overrides = {"rms_norm": override} if override else None
    plan = initialize(device="cpu", overrides=overrides)["rms_norm"]
    return NamedNorm(plan.spec.name, plan.function)


def _torch_functional(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return functional.rms_norm(input, weight.shape, weight, eps)
