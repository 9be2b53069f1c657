"""Root-mean-square normalisation over the last dimension: contract, backends, public function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xllm_kernel.artifacts import XLITE_BUILD_COMMAND
from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.ops.cpu_backends import cpu_backends
from xllm_kernel.registry import KernelRegistry, OpContract, PreparedKernel

if TYPE_CHECKING:
    import torch

RMS_NORM_CONTRACT = OpContract(
    operation="rms_norm",
    version=1,
    mutates=(),
    aliases_inputs=False,
    numerical_mode="tolerance",
    conventions=(
        "formula: x / sqrt(mean(x * x) + eps) * weight over the last dimension",
        "precision: eps and everything before the output in float32",
        "rounding: once to the output dtype, after the weight",
        "output: fresh, contiguous, with the input's shape and dtype",
        "nonfinite: a NaN makes its row NaN; an infinity its own element NaN and its row's rest 0",
        "overflow: a row whose sum of squares exceeds float32 gives 0",
    ),
)

OPERATION = Operation(
    RMS_NORM_CONTRACT,
    (
        BackendModule(
            module="xllm_kernel.ops.rms_norm.native",
            device="npu",
            requires=("torch", "torch_npu"),
            implementations=("npu.xllm_native.rms_norm",),
            hint="install torch_npu for this device",
        ),
        BackendModule(
            module="xllm_kernel.ops.rms_norm.xlite",
            device="npu",
            requires=("torch", "torch_npu", "xlite", "xllm_kernel._build.xlite"),
            implementations=("npu.xlite.rms_norm",),
            hint=f"install torch_npu and xlite, and build the bridge to it: {XLITE_BUILD_COMMAND}",
        ),
        *cpu_backends("rms_norm"),
    ),
)


def prepare_rms_norm() -> PreparedKernel:
    """Return the published plan; its ``function`` may be kept for the worker's lifetime.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``, or on a device without a backend.
    """
    return KernelRegistry.get().prepared("rms_norm")


def rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalise each row by its root mean square and scale it: x / sqrt(mean(x^2) + eps) * weight.

    Args:
        input: ``[..., width]``; which dtypes and strides are accepted, the chosen implementation's
            domain says.
        weight: ``[width]``.
        eps: finite and not negative, rounded to float32; a vendor's operator may not check it.

    Returns:
        A fresh tensor of the input's shape and dtype.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``.
        DomainError: for arguments outside the implementation's domain, naming the clause; an
            implementation in C++ raises RuntimeError with the same message.
    """
    output: torch.Tensor = prepare_rms_norm().function(input, weight, eps)
    return output
