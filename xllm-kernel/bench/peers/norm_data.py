"""Inputs and expected outputs of the norms over rows; times nothing."""

from __future__ import annotations

import torch

from peers.operation import Case

EPS = 1e-5

_SEED = 5309


def rows(case: Case, count: int) -> torch.Tensor:
    """Return ``count`` tensors of a case's shape as one, their values +-[0.5, 2)."""
    generator = torch.Generator().manual_seed(_SEED)
    shape = (count, case.rows, case.width)
    dtype = getattr(torch, case.dtype)
    made = torch.empty(shape, dtype=dtype)
    for piece in made.flatten().split(1 << 20):
        size = torch.rand(piece.shape, generator=generator) * 1.5 + 0.5
        sign = torch.randint(0, 2, piece.shape, generator=generator) * 2 - 1
        piece.copy_(size * sign)
    return made


def weight(case: Case) -> torch.Tensor:
    """Return a weight of values in [0.25, 0.5)."""
    generator = torch.Generator().manual_seed(_SEED + 1)
    made = torch.rand(case.width, generator=generator) * 0.25 + 0.25
    return made.to(getattr(torch, case.dtype))
