"""AMD's extension of PyTorch, which registers operators when imported."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import torch

from peers.libraries.installed import version

NAME = "zentorch"


@dataclass(frozen=True, slots=True)
class Zentorch:
    """Its operators, by name."""

    version: str
    ops: Any


def load() -> Zentorch:
    """Import the extension."""
    found = version("zentorch")
    importlib.import_module("zentorch")
    return Zentorch(found, torch.ops.zentorch)
