"""RMSNorm by the package's own C++ kernels, through torch's stable ABI or a builtin around it."""

from __future__ import annotations

from pathlib import Path

import torch

from xllm_kernel import artifacts, fastcall, register_kernel
from xllm_kernel._build import simd as _build
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.errors import ConfigurationError, DomainError
from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT
from xllm_kernel.ops.rms_norm.domain import SIMD_DOMAIN

_NAME = "cpu.simd.rms_norm"


def _fake_rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return an output of the right shape, dtype and strides, after the bridge's own checks."""
    SIMD_DOMAIN.check(_NAME, input=input, weight=weight, eps=eps)
    for name, tensor in (("input", input), ("weight", weight)):
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise DomainError(
                f"rms_norm [{_NAME}]: {name} must not require a gradient in grad mode, for there "
                f"is no backward; call it under torch.no_grad() (clause {name}.gradient)",
                clause=f"{name}.gradient",
            )
    return torch.empty(input.shape, dtype=input.dtype, device=input.device)


artifacts.load(
    _build.MANIFEST,
    Path(_build.__file__).parent,
    torch_version=torch.__version__,
    load_library=torch.ops.load_library,
)
try:
    # Fixes the level of the process, so that no call has to.
    torch.ops.xllm_kernel.simd_level.default()
except RuntimeError as error:
    raise ConfigurationError(f"rms_norm [{_NAME}]: {error}") from error

rms_norm = register_kernel(
    name=_NAME,
    contract=RMS_NORM_CONTRACT,
    device="cpu",
    execution_modes=("eager",),
    input_domain=SIMD_DOMAIN.text,
    solution="simd",
    priority=10,
    domain=SIMD_DOMAIN,
    guarantees=(
        "a row's bits do not depend on the other rows, their number or the row's place",
        "a row's bits do not depend on the number of threads",
        "a row's bits do not depend on strides or on the alignment of its address",
        "bits do not depend on the SIMD level",
        "repeated calls give the same bits",
        "subnormal values are kept",
        "every NaN of an output is the positive quiet NaN without payload",
    ),
)(fastcall.bind(register_custom_op("simd_rms_norm", fake_impl=_fake_rms_norm)))
