"""Residual addition and RMSNorm in place, in one pass, by the package's own C++ kernels."""

from __future__ import annotations

import torch

from xllm_kernel import fastcall, register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.ops.backend_support import ROW_GUARANTEES, load_kernels
from xllm_kernel.ops.fused_add_rms_norm_inplace import FUSED_ADD_RMS_NORM_INPLACE_CONTRACT
from xllm_kernel.ops.fused_add_rms_norm_inplace.domain import SIMD_DOMAIN

_NAME = "cpu.simd.fused_add_rms_norm_inplace"
_WHO = f"fused_add_rms_norm_inplace [{_NAME}]"


def _fake(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Make the bridge's own checks; nothing is returned."""
    SIMD_DOMAIN.check(_NAME, input=input, residual=residual, weight=weight, eps=eps)


_BUILD = load_kernels(_WHO)

fused_add_rms_norm_inplace = register_kernel(
    name=_NAME,
    contract=FUSED_ADD_RMS_NORM_INPLACE_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=SIMD_DOMAIN.text,
    solution="simd",
    priority=10,
    domain=SIMD_DOMAIN,
    guarantees=(*ROW_GUARANTEES, "equals_parts"),
    build=_BUILD,
)(
    fastcall.bind(
        register_custom_op("simd_fused_add_rms_norm_inplace", fake_impl=_fake, no_derivatives=_WHO)
    )
)
