"""RMSNorm by the vendor's operator on an NPU; schema, checks and fake stay torch_npu's."""

from __future__ import annotations

import torch
import torch_npu

from xllm_kernel import register_kernel
from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT

_npu_rms_norm = torch_npu.npu_rms_norm


@register_kernel(
    name="npu.xllm_native.rms_norm",
    contract=RMS_NORM_CONTRACT,
    device="npu",
    execution_modes=("eager", "aclgraph"),
    input_domain="what torch_npu.npu_rms_norm accepts",
    solution="native",
    priority=10,
)
def rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the vendor's normalised output, the first of its two."""
    output: torch.Tensor = _npu_rms_norm(input, weight, epsilon=eps)[0]
    return output
