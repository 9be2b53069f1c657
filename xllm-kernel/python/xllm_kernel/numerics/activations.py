"""Rows that layers of a language model were fed, a few of several layers, in a file beside this.

The file is in the form of safetensors, read here with what Python has, and says in its metadata
what it is an excerpt of and under which licence. Knows no operator: see ``Excerpt.load``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PATH = Path(__file__).with_name("activations.safetensors")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What one layer of a model was fed.

    Attributes:
        name: the layer.
        shape: extents of the rows.
        eps: the model's number for such layers.
        source: the model.
    """

    name: str
    shape: tuple[int, int]
    eps: float
    source: str

    def load(self) -> dict[str, torch.Tensor]:
        """Read its tensors to the CPU, in float32.

        Returns:
            ``residual`` and ``addend``, ``[rows, width]``: the residual stream, and what the layer
            before adds to it; the layer is fed their sum. ``weight``, ``[width]``: the layer's own.
        """
        import torch

        header, start = _header()
        data = PATH.read_bytes()
        tensors = {}
        for part in ("addend", "residual", "weight"):
            entry = header[f"{self.name}/{part}"]
            begin, end = (start + at for at in entry["data_offsets"])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
            tensors[part] = flat.view(entry["shape"])
        return tensors


def excerpts() -> list[Excerpt]:
    """Describe every layer that the file has rows of, without reading those."""
    header, _ = _header()
    facts = header.pop("__metadata__")
    return [
        Excerpt(name.partition("/")[0], tuple(entry["shape"]), float(facts["eps"]), facts["source"])
        for name, entry in sorted(header.items())
        if name.endswith("/addend")
    ]


def _header() -> tuple[dict[str, Mapping[str, Any]], int]:
    """Return what the file says of its tensors, and where their bytes begin."""
    with PATH.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(size)), 8 + size
