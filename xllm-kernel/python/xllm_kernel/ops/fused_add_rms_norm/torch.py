"""Residual addition and RMSNorm by two of PyTorch's operators."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.ops.fused_add_rms_norm import FUSED_ADD_RMS_NORM_CONTRACT
from xllm_kernel.ops.fused_add_rms_norm.domain import TORCH_DOMAIN

_NAME = "cpu.torch.fused_add_rms_norm"


@register_kernel(
    name=_NAME,
    contract=FUSED_ADD_RMS_NORM_CONTRACT,
    device="cpu",
    execution_modes=("eager",),
    input_domain=TORCH_DOMAIN.text,
    solution="torch",
    priority=0,
    domain=TORCH_DOMAIN,
)
def fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Check the arguments, add, call ``torch.nn.functional.rms_norm`` on the sum.

    PyTorch adds 16-bit values in float32 and rounds once. Both outputs come out contiguous
    whatever the strides of the arguments, as the contract asks.
    """
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)
    total = torch.add(input, residual).contiguous()
    return torch.nn.functional.rms_norm(total, weight.shape, weight, eps), total
