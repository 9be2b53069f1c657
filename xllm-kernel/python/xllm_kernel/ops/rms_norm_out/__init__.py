"""RMSNorm into the caller's buffer: contract, backends, public function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xllm_kernel.catalog import Operation
from xllm_kernel.ops.cpu_backends import cpu_backends
from xllm_kernel.registry import KernelRegistry, OpContract, PreparedKernel

if TYPE_CHECKING:
    import torch

RMS_NORM_OUT_CONTRACT = OpContract(
    operation="rms_norm_out",
    version=1,
    mutates=("output",),
    aliases_inputs=False,
    numerical_mode="tolerance",
    conventions=(
        "formula: x / sqrt(mean(x * x) + eps) * weight over the last dimension",
        "precision: eps and everything before the output in float32",
        "rounding: once to the output dtype, after the weight",
        "output: the caller's, overwritten whole and never read; gaps between its rows untouched",
        "aliasing: output apart from input and weight; nothing is returned",
        "nonfinite: a NaN makes its row NaN; an infinity its own element NaN and its row's rest 0",
        "overflow: a row whose sum of squares exceeds float32 gives 0",
    ),
)

OPERATION = Operation(RMS_NORM_OUT_CONTRACT, cpu_backends("rms_norm_out"))


def prepare_rms_norm_out() -> PreparedKernel:
    """Return the published plan; its ``function`` may be kept for the worker's lifetime.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``, or on a device without a backend.
    """
    return KernelRegistry.get().prepared("rms_norm_out")


def rms_norm_out(
    output: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, eps: float
) -> None:
    """Write x / sqrt(mean(x^2) + eps) * weight of each row of the input into a buffer.

    Args:
        output: receives the result; the input's shape, dtype and device, last stride 1, its rows
            apart from each other, its memory apart from the other arguments'.
        input: ``[..., width]``; which dtypes and strides are accepted, the chosen implementation's
            domain says.
        weight: ``[width]``.
        eps: finite and not negative; rounded to float32.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``.
        DomainError: for arguments outside the implementation's domain, naming the clause; an
            implementation in C++ raises RuntimeError with the same message. Nothing was written.
    """
    prepare_rms_norm_out().function(output, input, weight, eps)
