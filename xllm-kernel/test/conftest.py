"""Fixtures of the common tests: a process state of their own, and named skips."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from operation_builder import OperationBuilder

import xllm_kernel
from xllm_kernel import catalog
from xllm_kernel.registry import KernelRegistry

PACKAGE_ROOT = Path(__file__).resolve().parents[1]
REPOSITORY_ROOT = PACKAGE_ROOT.parent

# Tests of a device have a process for each backend; they run where the command line names them.
collect_ignore = ["npu"]


def need(module: str, *, extra: str | None = None) -> None:
    """Skip the calling test or module where an optional package is missing, naming it."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs the optional package '{extra or module}'", allow_module_level=True)


def need_native() -> None:
    """Skip where the imported package has no C++ kernels, naming the command that builds them."""
    folder = Path(xllm_kernel.__file__).parent
    if not (folder / "_build" / "simd.py").is_file():
        pytest.skip("native build absent: ./dev build", allow_module_level=True)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Let every test draw the same, alone or after others, in every run."""
    import torch  # npu/conftest.py says what is wrong where it cannot be

    random.seed(11)
    torch.manual_seed(11)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> KernelRegistry:
    """An empty registry, no imported backend and no override; the process's own comes back."""
    for name in list(os.environ):
        if name.startswith("XLLM_KERNEL_"):
            monkeypatch.delenv(name)
    for definition in catalog.operations().values():
        for backend in definition.backends:
            monkeypatch.delitem(sys.modules, backend.module, raising=False)
    registry = KernelRegistry()
    monkeypatch.setattr(KernelRegistry, "_instance", registry)
    return registry


@pytest.fixture
def build_operations(
    fresh: KernelRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OperationBuilder]:
    """Write throw-away operations as importable modules and make them the only catalogue."""
    builder = OperationBuilder(tmp_path, monkeypatch)
    yield builder
    builder.forget()


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python code or modules in a process of its own, without overrides from outside."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XLLM_KERNEL_")}
        environment.update(env or {})
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=timeout,
            cwd=REPOSITORY_ROOT,
            check=False,
        )

    return run
