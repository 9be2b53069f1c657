"""Operator layer for model serving: one API and one contract an operation, chosen before serving.

Importing the package imports no framework and no device SDK.
"""

from xllm_kernel.ops.rms_norm import prepare_rms_norm
from xllm_kernel.receipts import receipts
from xllm_kernel.registry import (
    KernelRegistry,
    KernelSpec,
    OpContract,
    PreparedKernel,
    register_kernel,
)
from xllm_kernel.runtime import initialize

__version__ = "0.1.0"

__all__ = [
    "KernelRegistry",
    "KernelSpec",
    "OpContract",
    "PreparedKernel",
    "__version__",
    "initialize",
    "prepare_rms_norm",
    "receipts",
    "register_kernel",
]
