"""Operator layer for model serving: one API and one contract an operation, chosen before serving.

Importing the package imports no framework and no device SDK.
"""

from xllm_kernel.ops.fused_add_rms_norm import prepare_fused_add_rms_norm
from xllm_kernel.ops.fused_add_rms_norm_inplace import prepare_fused_add_rms_norm_inplace
from xllm_kernel.ops.rms_norm import prepare_rms_norm
from xllm_kernel.ops.rms_norm_out import prepare_rms_norm_out
from xllm_kernel.receipts import receipts
from xllm_kernel.registry import (
    KernelRegistry,
    KernelSpec,
    OpContract,
    PreparedKernel,
    register_kernel,
)
from xllm_kernel.runtime import initialize
from xllm_kernel.version import __version__

__all__ = [
    "KernelRegistry",
    "KernelSpec",
    "OpContract",
    "PreparedKernel",
    "__version__",
    "initialize",
    "prepare_fused_add_rms_norm",
    "prepare_fused_add_rms_norm_inplace",
    "prepare_rms_norm",
    "prepare_rms_norm_out",
    "receipts",
    "register_kernel",
]
