"""Residual addition and RMSNorm of its result, fresh outputs: contract, backends, function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xllm_kernel.catalog import Operation
from xllm_kernel.ops.cpu_backends import cpu_backends
from xllm_kernel.registry import KernelRegistry, OpContract, PreparedKernel

if TYPE_CHECKING:
    import torch

FUSED_ADD_RMS_NORM_CONTRACT = OpContract(
    operation="fused_add_rms_norm",
    version=1,
    mutates=(),
    aliases_inputs=False,
    numerical_mode="tolerance",
    conventions=(
        "sum: input + residual in float32, rounded to the dtype once",
        "norm: of the rounded sum, the one that is carried on, not of the float32 one",
        "formula: s / sqrt(mean(s * s) + eps) * weight over the last dimension, s the rounded sum",
        "precision: eps and everything between the sum and the norm in float32",
        "rounding: the norm once to the dtype, after the weight",
        "output: the pair (norm, sum), both fresh, contiguous, with the input's shape and dtype",
        "nonfinite: a sum beyond the dtype's range is infinite; a NaN makes its row's norm NaN; "
        "an infinite one its own element's norm NaN and its row's rest 0",
        "overflow: a row whose sum of squares exceeds float32 has a norm of 0",
    ),
)

OPERATION = Operation(FUSED_ADD_RMS_NORM_CONTRACT, cpu_backends("fused_add_rms_norm"))


def prepare_fused_add_rms_norm() -> PreparedKernel:
    """Return the published plan; its ``function`` may be kept for the worker's lifetime.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``, or on a device without a backend.
    """
    return KernelRegistry.get().prepared("fused_add_rms_norm")


def fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a residual, and normalise each row of the rounded sum by its root mean square.

    Args:
        input: ``[..., width]``; which dtypes and strides are accepted, the chosen implementation's
            domain says.
        residual: like the input.
        weight: ``[width]``.
        eps: finite and not negative; rounded to float32.

    Returns:
        The norm and the sum, fresh tensors of the input's shape and dtype.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``.
        DomainError: for arguments outside the implementation's domain, naming the clause; an
            implementation in C++ raises RuntimeError with the same message.
    """
    norm, total = prepare_fused_add_rms_norm().function(input, residual, weight, eps)
    return norm, total
