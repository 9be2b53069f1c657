"""Residual addition and RMSNorm in place by PyTorch's operators; one operator to a compiler."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.domain import is_traced
from xllm_kernel.ops.backend_support import refuse_gradients, refuse_inference_tensors
from xllm_kernel.ops.fused_add_rms_norm_inplace import FUSED_ADD_RMS_NORM_INPLACE_CONTRACT
from xllm_kernel.ops.fused_add_rms_norm_inplace.domain import TORCH_DOMAIN
from xllm_kernel.ops.rms_norm.by_torch import normalise

_NAME = "cpu.torch.fused_add_rms_norm_inplace"
_WHO = f"fused_add_rms_norm_inplace [{_NAME}]"


def _compute(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)
    refuse_gradients(_WHO, input=input, residual=residual, weight=weight)
    refuse_inference_tensors(_WHO, input=input, residual=residual)
    residual.add_(input)
    input.copy_(normalise(residual, weight, eps))


def _fake(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Make the kernel's own checks; nothing is returned."""
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)


# Inductor fuses the steps, and then normalises the sum before it is rounded: against the contract.
# It leaves an operator as it is.
_opaque = register_custom_op(
    "torch_fused_add_rms_norm_inplace",
    _compute,
    mutates_args=("input", "residual"),
    dispatch_key="CPU",
    fake_impl=_fake,
    no_derivatives=_WHO,
)


@register_kernel(
    name=_NAME,
    contract=FUSED_ADD_RMS_NORM_INPLACE_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=TORCH_DOMAIN.text,
    solution="torch",
    priority=0,
    domain=TORCH_DOMAIN,
)
def fused_add_rms_norm_inplace(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> None:
    """Check the arguments, add in place, copy what ``torch.nn.functional.rms_norm`` returns."""
    if is_traced():
        _opaque(input, residual, weight, eps)
    else:
        _compute(input, residual, weight, eps)
