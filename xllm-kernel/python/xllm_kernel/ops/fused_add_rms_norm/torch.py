"""Residual addition and RMSNorm by two of PyTorch's operators; one operator to a compiler."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.domain import is_traced
from xllm_kernel.ops.fused_add_rms_norm import FUSED_ADD_RMS_NORM_CONTRACT
from xllm_kernel.ops.fused_add_rms_norm.domain import TORCH_DOMAIN
from xllm_kernel.ops.rms_norm.by_torch import normalise

_NAME = "cpu.torch.fused_add_rms_norm"
_WHO = f"fused_add_rms_norm [{_NAME}]"


def _compute(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)
    total = torch.add(input, residual).contiguous()
    return normalise(total, weight, eps), total


def _fake(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs of the right shape, dtype and strides, after the kernel's own checks."""
    TORCH_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)
    norm = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    return norm, torch.empty_like(norm)


# Inductor fuses the two steps, and may then normalise the sum before it is rounded: against the
# contract. It leaves an operator as it is.
_opaque = register_custom_op(
    "torch_fused_add_rms_norm",
    _compute,
    mutates_args=(),
    dispatch_key="CPU",
    fake_impl=_fake,
    no_derivatives=_WHO,
)


@register_kernel(
    name=_NAME,
    contract=FUSED_ADD_RMS_NORM_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
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
    if is_traced():
        norm, total = _opaque(input, residual, weight, eps)
        return norm, total
    return _compute(input, residual, weight, eps)
