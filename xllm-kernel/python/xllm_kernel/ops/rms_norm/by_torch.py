"""The norm itself in PyTorch's operators, for this operation and its relatives; checks nothing."""

from __future__ import annotations

import torch


def normalise(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the RMS norm of rows, rounded once to their dtype, after the weight.

    Args:
        values: ``[..., width]``.
        weight: ``[width]``, of the same dtype or float32.
        eps: as the contract has it.
    """
    if weight.dtype is values.dtype:
        return torch.nn.functional.rms_norm(values, weight.shape, weight, eps)
    # Mixed dtypes would leave PyTorch's own kernel, with a warning, and round before the weight.
    wide = torch.nn.functional.rms_norm(values.float(), weight.shape, weight, eps)
    return wide.to(values.dtype)
