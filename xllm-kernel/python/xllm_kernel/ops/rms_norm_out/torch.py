"""RMSNorm into the caller's buffer by PyTorch's operator and a copy: it has no ``out`` form."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.ops.backend_support import refuse_gradients, refuse_inference_tensors
from xllm_kernel.ops.rms_norm.by_torch import normalise
from xllm_kernel.ops.rms_norm_out import RMS_NORM_OUT_CONTRACT
from xllm_kernel.ops.rms_norm_out.domain import TORCH_DOMAIN

_NAME = "cpu.torch.rms_norm_out"


@register_kernel(
    name=_NAME,
    contract=RMS_NORM_OUT_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=TORCH_DOMAIN.text,
    solution="torch",
    priority=0,
    domain=TORCH_DOMAIN,
)
def rms_norm_out(
    output: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, eps: float
) -> None:
    """Check the arguments, call ``torch.nn.functional.rms_norm``, copy its result."""
    TORCH_DOMAIN.check(_NAME, output=output, input=input, weight=weight, eps=eps)
    who = f"rms_norm_out [{_NAME}]"
    refuse_gradients(who, output=output, input=input, weight=weight)
    refuse_inference_tensors(who, output=output)
    output.copy_(normalise(input, weight, eps))
