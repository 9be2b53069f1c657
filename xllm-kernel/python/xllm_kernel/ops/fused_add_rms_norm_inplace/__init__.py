"""Residual addition and RMSNorm in place: contract, backends, public function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xllm_kernel.catalog import Operation
from xllm_kernel.ops.cpu_backends import cpu_backends
from xllm_kernel.registry import KernelRegistry, OpContract, PreparedKernel

if TYPE_CHECKING:
    import torch

FUSED_ADD_RMS_NORM_INPLACE_CONTRACT = OpContract(
    operation="fused_add_rms_norm_inplace",
    version=1,
    mutates=("input", "residual"),
    aliases_inputs=False,
    numerical_mode="tolerance",
    conventions=(
        "sum: input + residual in float32, rounded to the dtype once",
        "norm: of the rounded sum, the one that is carried on, not of the float32 one",
        "formula: s / sqrt(mean(s * s) + eps) * weight over the last dimension, s the rounded sum",
        "precision: eps and everything between the sum and the norm in float32",
        "rounding: the norm once to the dtype, after the weight",
        "output: input becomes the norm and residual the sum; nothing is returned",
        "aliasing: input, residual and weight lie apart in memory, and so do the rows of input and "
        "those of residual; gaps between rows stay untouched",
        "nonfinite: a sum beyond the dtype's range is infinite; a NaN makes its row's norm NaN; "
        "an infinite one its own element's norm NaN and its row's rest 0",
        "overflow: a row whose sum of squares exceeds float32 has a norm of 0",
    ),
)

OPERATION = Operation(
    FUSED_ADD_RMS_NORM_INPLACE_CONTRACT, cpu_backends("fused_add_rms_norm_inplace")
)


def prepare_fused_add_rms_norm_inplace() -> PreparedKernel:
    """Return the published plan; its ``function`` may be kept for the worker's lifetime.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``, or on a device without a backend.
    """
    return KernelRegistry.get().prepared("fused_add_rms_norm_inplace")


def fused_add_rms_norm_inplace(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> None:
    """Add the input to the residual, and put the normalised rows of the rounded sum into the input.

    Args:
        input: ``[..., width]``, last stride 1, rows apart; becomes the norm.
        residual: like the input; becomes the sum. No two arguments may share memory.
        weight: ``[width]``.
        eps: finite and not negative; rounded to float32.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``.
        DomainError: for arguments outside the implementation's domain, naming the clause; an
            implementation in C++ raises RuntimeError with the same message. Nothing was written.
    """
    prepare_fused_add_rms_norm_inplace().function(input, residual, weight, eps)
