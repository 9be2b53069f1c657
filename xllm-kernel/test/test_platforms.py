"""Platforms: names, absent frameworks, eager capture, and the timer under a virtual clock."""

from __future__ import annotations

import pytest

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.platforms import get_platform


class VirtualClock:
    """A nanosecond clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.mark.parametrize("device", ["gpu", "cpu:0", "", "NPU"])
def test_get_platform_of_an_unknown_device_lists_the_known(device: str) -> None:
    with pytest.raises(ConfigurationError, match="device must be one of cpu, npu, got"):
        get_platform(device)


def test_get_platform_names_modes_and_evidence() -> None:
    cpu, npu = get_platform("cpu"), get_platform("npu")
    assert (cpu.name, cpu.execution_modes, cpu.evidence) == ("cpu", ("eager", "compile"), "cpu")
    assert (npu.name, npu.execution_modes) == ("npu", ("eager", "aclgraph"))


@pytest.mark.parametrize(
    ("device", "blocked", "message"),
    [
        ("cpu", "torch", "the module 'torch' must be installed"),
        ("npu", "torch_npu", "absent: torch_npu"),
    ],
)
def test_require_names_the_missing_module(run_python, device, blocked, message) -> None:
    code = (
        f"import sys; sys.modules[{blocked!r}] = None\n"
        f"from xllm_kernel.platforms import get_platform; get_platform({device!r}).require()"
    )
    done = run_python("-c", code)
    assert done.returncode == 1
    assert "DependencyAbsentError" in done.stderr
    assert message in done.stderr


def test_environment_tells_processor_threads_and_torch() -> None:
    import torch

    facts = get_platform("cpu").environment()
    assert facts["torch"] == torch.__version__
    assert facts["threads"] == torch.get_num_threads()
    assert facts["device_name"]
    assert facts["affinity"] >= 1


def test_capture_eager_calls_the_supplied_function() -> None:
    calls = []
    captured = get_platform("cpu").capture(lambda: calls.append(1) or len(calls), "eager")
    assert captured.calls == 1
    captured.replay()
    captured.replay()
    assert (
        captured.outputs() == captured.outputs() == [2]
    )  # the last replay's; asking calls nothing


@pytest.mark.parametrize("iterations", [1, 7, 50])
def test_measure_divides_the_interval_by_the_calls(iterations: int) -> None:
    clock = VirtualClock()

    def kernel() -> None:
        clock.now += 1_500  # 1.5 us

    cpu = get_platform("cpu")
    columns = cpu.measure(cpu.capture(kernel, "eager"), iterations, clock)
    assert columns == {"wall_us": 1.5}
    assert clock.now == 1_500 * iterations
