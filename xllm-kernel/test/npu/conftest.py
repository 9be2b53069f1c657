"""Fixtures of the NPU tests: a device with a host's operators and bound kernels. Build nothing.

A run without a device ends with status 3 and the reason: skips alone would look like success.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulator import Simulator, find_simulator

import xllm_kernel
from xllm_kernel.registry import PreparedKernel

pytest.register_assert_rewrite("scenarios", "graph_scenarios")

HERE = Path(__file__).resolve().parent
REPOSITORY_ROOT = HERE.parents[2]
HOST_VARIABLE = "XLLM_KERNEL_HOST_LIBRARY"
STAND_IN = REPOSITORY_ROOT / "build/ascend-sim/host/libxllm_ops_host.so"
COULD_NOT_RUN = 3


def pytest_configure() -> None:
    """End the run where there is no device, before a test module can fail to import PyTorch."""
    for module in ("torch", "torch_npu"):
        try:
            importlib.import_module(module)
        except (ImportError, OSError, RuntimeError) as error:
            _end(
                f"{module} must import, but it raised {error.__cause__ or error}; run where CANN "
                "and a matching torch_npu are installed, or over the simulated runtime: ./dev "
                "npu-sim, then ascend-sim/run COMMAND; the common tests alone run with "
                "--ignore=xllm-kernel/test/npu"
            )
    if _npu().device_count() == 0:
        _end(
            "torch_npu must see a device, there is none; see npu-smi and ASCEND_RT_VISIBLE_DEVICES"
        )


def _end(reason: str) -> None:
    pytest.exit(f"xllm-kernel/test/npu: {reason}", returncode=COULD_NOT_RUN)


def _npu() -> Any:
    import torch

    return torch.npu


@pytest.fixture(scope="session")
def simulator() -> Simulator | None:
    """The simulated runtime; None on hardware."""
    return find_simulator()


@pytest.fixture(scope="session")
def device(simulator: Simulator | None):
    """The first NPU of a worker: the host's operators are loaded, then the kernels bound."""
    import torch

    torch.ops.load_library(str(_host_library(simulator)))
    xllm_kernel.initialize(device="npu")
    return torch.device("npu", 0)


def _host_library(simulator: Simulator | None) -> Path:
    named = os.environ.get(HOST_VARIABLE)
    if named is None and simulator is None:
        _end(
            f"{HOST_VARIABLE} must name the library with the host's operators, it is unset; the "
            "command lines of 'python -m xllm_kernel' need no host"
        )
    library = STAND_IN if named is None else Path(named)
    if not library.is_file():
        remedy = "correct it" if named else "build the stand-in host: ./dev npu-sim"
        _end(f"the host's library must be a file, there is none: {library}; {remedy}")
    return library


@pytest.fixture
def plan(request: pytest.FixtureRequest, device) -> PreparedKernel:
    """The bound plan, of the implementation that the test's file is for."""
    prepared = xllm_kernel.prepare_rms_norm()
    wanted, file = request.module.IMPLEMENTATION, request.path.name
    if prepared.spec.name != wanted:
        pytest.fail(
            f"{file} tests {wanted}, but this process is bound to {prepared.spec.name}; a process "
            f"keeps its binding, so run: XLLM_KERNEL_OVERRIDE_RMS_NORM={wanted} python -m pytest "
            f"-q xllm-kernel/test/npu/{file}"
        )
    return prepared


@pytest.fixture
def other_device(device):
    """The second NPU."""
    import torch

    if torch.npu.device_count() < 2:
        pytest.skip("needs two visible NPUs")
    return torch.device("npu", 1)


@pytest.fixture(autouse=True)
def _no_reports(simulator: Simulator | None) -> Iterator[None]:
    """Fail a test that left something on a device that no correct program does."""
    yield
    npu = _npu()
    if not npu.is_initialized():
        return
    for index in range(npu.device_count()):
        npu.synchronize(index)
    reports = simulator.take_reports() if simulator else []
    assert not reports, "\n".join(f"{r['kind']}: {r['text']}" for r in reports)
