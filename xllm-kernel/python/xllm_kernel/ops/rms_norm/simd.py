"""RMSNorm by the package's own C++ kernels, through torch's stable ABI or a builtin around it."""

from __future__ import annotations

import torch

from xllm_kernel import fastcall, register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.ops.backend_support import ROW_GUARANTEES, load_kernels
from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT
from xllm_kernel.ops.rms_norm.domain import SIMD_DOMAIN

_NAME = "cpu.simd.rms_norm"
_WHO = f"rms_norm [{_NAME}]"


def _fake_rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return an output of the right shape, dtype and strides, after the bridge's own checks."""
    SIMD_DOMAIN.check(_NAME, input=input, weight=weight, eps=eps)
    return torch.empty(input.shape, dtype=input.dtype, device=input.device)


_BUILD = load_kernels(_WHO)

rms_norm = register_kernel(
    name=_NAME,
    contract=RMS_NORM_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=SIMD_DOMAIN.text,
    solution="simd",
    priority=10,
    domain=SIMD_DOMAIN,
    guarantees=ROW_GUARANTEES,
    build=_BUILD,
)(fastcall.bind(register_custom_op("simd_rms_norm", fake_impl=_fake_rms_norm, no_derivatives=_WHO)))
