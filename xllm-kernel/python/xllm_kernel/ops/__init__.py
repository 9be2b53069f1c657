"""Public operators, one name each."""

from xllm_kernel.ops.fused_add_rms_norm import fused_add_rms_norm
from xllm_kernel.ops.fused_add_rms_norm_inplace import fused_add_rms_norm_inplace
from xllm_kernel.ops.rms_norm import rms_norm
from xllm_kernel.ops.rms_norm_out import rms_norm_out

__all__ = ["fused_add_rms_norm", "fused_add_rms_norm_inplace", "rms_norm", "rms_norm_out"]
