"""RMSNorm by xlite's launchers on an NPU, through the package's own bridge."""

from __future__ import annotations

import torch
import torch_npu  # noqa: F401 (makes the device; importing it is what may fail)

from xllm_kernel import register_kernel
from xllm_kernel.custom_ops import register_custom_op
from xllm_kernel.ops.rms_norm import RMS_NORM_CONTRACT
from xllm_kernel.ops.rms_norm.domain import XLITE_DOMAIN
from xllm_kernel.ops.xlite_support import LAUNCHERS, load_bridge, prove

_NAME = "npu.xlite.rms_norm"
_WHO = f"rms_norm [{_NAME}]"


def _fake_rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return an output of the right shape, dtype and strides, after the bridge's own checks."""
    XLITE_DOMAIN.check(_NAME, input=input, weight=weight, eps=eps)
    return torch.empty(input.shape, dtype=input.dtype, device=input.device)


def _prove(dtype: str) -> None:
    """Normalise one row whose result is known: the mean square is (1 + 49) / 2 = 25.

    With eps 11 under the root of 36, values 1 and 7 by weights 6 and 12 give 1 and 14, which both
    dtypes hold; any argument that gets lost gives something else.
    """
    probe = torch.ops.xllm_kernel.xlite_rms_norm_probe.default
    given = ([1.0, 7.0] * 32, [6.0, 12.0] * 32)
    prove(_WHO, dtype, given, [1.0, 14.0] * 32, lambda *tensors: probe(*tensors, 11.0))


_BUILD, _CAVEATS = load_bridge(_WHO)
_OPERATOR = register_custom_op("xlite_rms_norm", fake_impl=_fake_rms_norm, no_derivatives=_WHO)
for _dtype in LAUNCHERS:
    _prove(_dtype)

rms_norm = register_kernel(
    name=_NAME,
    contract=RMS_NORM_CONTRACT,
    device="npu",
    execution_modes=("eager", "aclgraph"),
    input_domain=XLITE_DOMAIN.text,
    solution="xlite",
    priority=0,
    domain=XLITE_DOMAIN,
    build=_BUILD,
    caveats=_CAVEATS,
)(_OPERATOR)
