"""Public operators, one name each."""

from xllm_kernel.ops.rms_norm import rms_norm

__all__ = ["rms_norm"]
