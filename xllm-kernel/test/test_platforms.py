"""Platforms: names, absent frameworks, eager capture, and the timer under a virtual clock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.platforms import get_platform
from xllm_kernel.platforms.processor import frequency_governor, last_level_cache_bytes


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
    assert facts["affinity"] == len(facts["cpus"]) >= 1
    assert facts["cpus"] == sorted(os.sched_getaffinity(0))
    assert facts["governor"] == frequency_governor(facts["cpus"])
    assert facts["last_level_cache_bytes"] == last_level_cache_bytes()


def _describe(cpus: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = cpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpus


def _cache(index: int, level: str, kind: str, size: str) -> dict[str, str]:
    folder = f"cpu0/cache/index{index}"
    named = {"level": level, "type": kind, "size": size}
    return {f"{folder}/{name}": f"{text}\n" for name, text in named.items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        (_cache(0, "1", "Data", "32K") | _cache(1, "1", "Instruction", "64K"), 32 << 10),
        (_cache(0, "3", "Unified", "32768K") | _cache(1, "2", "Unified", "1024K"), 32 << 20),
        (_cache(0, "2", "Unified", "2M") | _cache(1, "3", "Instruction", "9M"), 2 << 20),
        (_cache(0, "2", "Unified", "4096"), 4096),
        (_cache(0, "2", "Unified", ""), None),
        (_cache(0, "", "Unified", "1M"), None),
        ({"cpu0/cache/index0/level": "1"}, None),
    ],
)
def test_last_level_cache_is_the_outermost_that_holds_data(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    assert last_level_cache_bytes(_describe(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("governors", "expected"),
    [
        ([], None),
        (["performance", "performance"], "performance"),
        (["schedutil", "performance"], "performance, schedutil"),
    ],
)
def test_frequency_governor_names_those_of_the_processors(
    tmp_path: Path, governors: list[str], expected: str | None
) -> None:
    files = {f"cpu{i}/cpufreq/scaling_governor": f"{name}\n" for i, name in enumerate(governors)}
    files["cpu7/cpufreq/scaling_governor"] = "powersave\n"  # not one of ours
    assert frequency_governor([0, 1], _describe(tmp_path, files)) == expected


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
