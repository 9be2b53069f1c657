"""Residual addition and RMSNorm in place by PyTorch's operators and a copy."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.ops.backend_support import refuse_gradients, refuse_inference_tensors
from xllm_kernel.ops.fused_add_rms_norm_inplace import FUSED_ADD_RMS_NORM_INPLACE_CONTRACT
from xllm_kernel.ops.fused_add_rms_norm_inplace.domain import TORCH_DOMAIN

_NAME = "cpu.torch.fused_add_rms_norm_inplace"


@register_kernel(
    name=_NAME,
    contract=FUSED_ADD_RMS_NORM_INPLACE_CONTRACT,
    device="cpu",
    execution_modes=("eager",),
    input_domain=TORCH_DOMAIN.text,
    solution="torch",
    priority=0,
    domain=TORCH_DOMAIN,
)
def fused_add_rms_norm_inplace(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> None:
    """Check the arguments, add in place, copy what ``torch.nn.functional.rms_norm`` returns."""
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)
    who = f"fused_add_rms_norm_inplace [{_NAME}]"
    refuse_gradients(who, input=input, residual=residual, weight=weight)
    refuse_inference_tensors(who, input=input, residual=residual)
    residual.add_(input)
    input.copy_(torch.nn.functional.rms_norm(residual, weight.shape, weight, eps))
