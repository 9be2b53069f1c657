"""Save what the model feeds its norms, one safetensors file a call.

Change nothing on the way: a recorder passes every call through to the norm that it wraps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from model import Norm
from safetensors.torch import save_file


@dataclass(frozen=True, slots=True)
class NormCall:
    """Hold copies of one call's arguments: input `[tokens, hidden]`, weight `[hidden]`, eps."""

    name: str
    input: torch.Tensor
    weight: torch.Tensor
    eps: float


class Recorder:
    """Stand in for a norm and keep a copy of its arguments."""

    def __init__(self, norm: Norm, names: Sequence[str]) -> None:
        """Wrap a norm.

        Args:
            norm: the callable that does the work.
            names: the norms of one forward pass, in the order of their calls.
        """
        self._norm = norm
        self._names = names
        self._pending: Iterator[str] = iter(())
        self.calls: list[NormCall] = []

    def begin(self, phase: str) -> None:
        """Name the forward pass that comes next, e.g. `prefill`."""
        self._pending = iter([f"{phase}.{name}" for name in self._names])

    def __call__(self, input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Copy the arguments, then call the norm."""
        self.calls.append(NormCall(next(self._pending), input.clone(), weight.clone(), eps))
        return self._norm(input, weight, eps)


def save_calls(calls: Sequence[NormCall], directory: Path, source: str) -> list[Path]:
    """Write recorded calls, in order, and remove the captures that were there before.

    Args:
        calls: what a recorder kept.
        directory: where to write; it is created.
        source: the model's name, for the files' metadata.

    Returns:
        The files, `<ordinal>.<name>.safetensors`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.glob("[0-9][0-9][0-9].*.safetensors"):
        stale.unlink()
    paths = []
    for ordinal, call in enumerate(calls):
        path = directory / f"{ordinal:03d}.{call.name}.safetensors"
        facts = {"operation": "rms_norm", "eps": repr(call.eps), "name": call.name}
        save_file({"input": call.input, "weight": call.weight}, path, facts | {"source": source})
        paths.append(path)
    return paths
