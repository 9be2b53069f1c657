"""Fixtures of the NPU tests: a device with a host's operators and bound kernels. Build nothing.

A run without a device ends with status 3 and the reason: skips alone would look like success.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from npu_host import host_library
from simulator import Simulator, find_simulator

import xllm_kernel
from xllm_kernel.registry import PreparedKernel

pytest.register_assert_rewrite("scenarios", "graph_scenarios")

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


def _end(reason: str) -> NoReturn:
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

    try:
        library = host_library(simulated=simulator is not None)
    except FileNotFoundError as error:
        _end(str(error))
    torch.ops.load_library(str(library))
    xllm_kernel.initialize(device="npu")
    return torch.device("npu", 0)


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
