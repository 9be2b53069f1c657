"""PyTorch, operator by operator."""

from __future__ import annotations

from dataclasses import dataclass

import torch

NAME = "torch eager"


@dataclass(frozen=True, slots=True)
class TorchEager:
    """Nothing to hold: binders call torch."""

    version: str


def load() -> TorchEager:
    """Return the version."""
    return TorchEager(torch.__version__)
