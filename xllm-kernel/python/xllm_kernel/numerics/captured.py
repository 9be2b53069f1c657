"""Cases recorded from a running model: a directory of safetensors files, one call a file.

Knows the files' form only; which tensors and numbers a call has, the suite says.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xllm_kernel.errors import ConfigurationError, DependencyAbsentError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded call.

    Attributes:
        path: the file.
        facts: its metadata, strings.
        shapes: extents by tensor name.
        dtypes: dtype names by tensor name, as PyTorch spells them.
    """

    path: Path
    facts: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]

    @property
    def name(self) -> str:
        """File name without its ending: stable, and unique in its directory."""
        return self.path.name.removesuffix(".safetensors")

    def load(self) -> dict[str, torch.Tensor]:
        """Read the tensors to the CPU."""
        from safetensors.torch import load_file

        return load_file(str(self.path))


def recordings(directory: Path, operation: str, tensors: tuple[str, ...]) -> list[Recording]:
    """Describe the recorded calls in a directory, in order of their file names.

    Args:
        directory: holds ``*.safetensors``.
        operation: what the files must say they recorded.
        tensors: names of the tensors that each must hold.

    Raises:
        DependencyAbsentError: without the ``safetensors`` package.
        ConfigurationError: for a directory without recordings, and for a file that is none of this
            operation.
    """
    if importlib.util.find_spec("safetensors") is None:
        raise DependencyAbsentError(
            "--inputs: the package 'safetensors' is needed to read recorded inputs, it was not "
            "found; install it, or this package with its extra 'inputs'"
        )
    paths = sorted(directory.glob("*.safetensors"))
    if not paths:
        raise ConfigurationError(
            f"--inputs: a directory with *.safetensors files is needed, got '{directory}'"
        )
    return [_describe(path, operation, tensors) for path in paths]


def _describe(path: Path, operation: str, tensors: tuple[str, ...]) -> Recording:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            facts = dict(file.metadata() or {})
            names = set(file.keys())
            if facts.get("operation") != operation or names != set(tensors):
                raise ConfigurationError(
                    f"--inputs: {path} must record a call of {operation} with the tensors "
                    f"{', '.join(tensors)}, it records {facts.get('operation')!r} with "
                    f"{', '.join(sorted(names)) or 'none'}"
                )
            slices = {name: file.get_slice(name) for name in tensors}
            return Recording(
                path=path,
                facts=facts,
                shapes={name: tuple(s.get_shape()) for name, s in slices.items()},
                dtypes={name: _dtype_name(s.get_dtype()) for name, s in slices.items()},
            )
    except (SafetensorError, OSError) as error:
        raise ConfigurationError(f"--inputs: {path} cannot be read: {error}") from error


def _dtype_name(tag: str) -> str:
    return {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}.get(tag, tag)
