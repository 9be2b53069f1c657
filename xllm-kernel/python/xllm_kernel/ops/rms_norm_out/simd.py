"""RMSNorm into the caller's buffer by the package's own C++ kernels."""

from __future__ import annotations

import torch

from xllm_kernel import fastcall, register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.ops.backend_support import ROW_GUARANTEES, load_kernels
from xllm_kernel.ops.rms_norm_out import RMS_NORM_OUT_CONTRACT
from xllm_kernel.ops.rms_norm_out.domain import SIMD_DOMAIN

_NAME = "cpu.simd.rms_norm_out"
_WHO = f"rms_norm_out [{_NAME}]"


def _fake(output: torch.Tensor, input: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Make the bridge's own checks; nothing is returned."""
    SIMD_DOMAIN.check(_NAME, output=output, input=input, weight=weight, eps=eps)


_BUILD = load_kernels(_WHO)

rms_norm_out = register_kernel(
    name=_NAME,
    contract=RMS_NORM_OUT_CONTRACT,
    device="cpu",
    execution_modes=("eager", "compile"),
    input_domain=SIMD_DOMAIN.text,
    solution="simd",
    priority=10,
    domain=SIMD_DOMAIN,
    guarantees=(*ROW_GUARANTEES, "equals_parts"),
    build=_BUILD,
)(fastcall.bind(register_custom_op("simd_rms_norm_out", fake_impl=_fake, no_derivatives=_WHO)))
