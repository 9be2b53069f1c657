"""RMSNorm by PyTorch's own operator: what a processor has without any build of ours."""

from __future__ import annotations

import torch

from xllm_kernel import register_kernel
from xllm_kernel.domain import FLOAT32_MAX
from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT
from xllm_kernel.ops.rms_norm.by_torch import normalise
from xllm_kernel.ops.rms_norm.domain import TORCH_DOMAIN

_NAME = "cpu.torch.rms_norm"
_DTYPES = frozenset((torch.float32, torch.float16, torch.bfloat16))


@register_kernel(
    name=_NAME,
    contract=RMS_NORM_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=TORCH_DOMAIN.text,
    solution="torch",
    priority=0,
    domain=TORCH_DOMAIN,
)
def rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Check the arguments, then call ``torch.nn.functional.rms_norm``.

    PyTorch computes in float32 and rounds once, after the weight, as the contract asks.
    """
    if not _plainly_inside(input, weight, eps):
        TORCH_DOMAIN.check(_NAME, input=input, weight=weight, eps=eps)
    return normalise(input, weight, eps)


def _plainly_inside(input: torch.Tensor, weight: torch.Tensor, eps: float) -> bool:
    """Say yes to the common call in a tenth of the time that the clauses take.

    A yes must imply that every clause holds; a no only sends the call through the clauses.
    """
    return (
        type(input) is torch.Tensor
        and isinstance(weight, torch.Tensor)
        and type(eps) is float
        and input.dtype in _DTYPES
        and (weight.dtype is input.dtype or weight.dtype is torch.float32)
        and weight.dim() == 1
        and input.dim() >= 1
        and 0 < weight.shape[0] == input.shape[-1]
        and input.is_cpu
        and weight.is_cpu
        and 0.0 <= eps <= FLOAT32_MAX
    )
