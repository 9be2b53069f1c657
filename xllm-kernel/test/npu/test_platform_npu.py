"""The platform itself on a device: capture, timers, facts, and runs that meet a failing graph."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from processes import REPOSITORY_ROOT, Command, run_all, text_of

from xllm_kernel.numerics.invariants import checks as invariance
from xllm_kernel.numerics.invariants.checks import Subject
from xllm_kernel.numerics.suite import Trial
from xllm_kernel.platforms.npu import CALLS_A_GRAPH, NpuPlatform
from xllm_kernel.registry import KernelSpec, OpContract, PreparedKernel

BENCHMARK = ("-m", "xllm_kernel.benchmark", "--implementation", "npu.xllm_native.rms_norm")
BENCHMARK += ("--device", "npu", "--mode", "aclgraph", "--rows", "1", "2", "--widths", "64")
BENCHMARK += ("--dtypes", "float16", "--warmup", "1", "--iterations", "2", "--repeats", "2")
# Which fault the simulated runtime is given, and the stage in which the run must end.
FAULTS = {"capture_end:1": "capture", "replay:1": "replay"}


@pytest.fixture
def platform() -> NpuPlatform:
    npu = NpuPlatform()
    npu.require()
    return npu


def test_evidence_and_facts_name_the_simulator_or_the_device(platform, simulator) -> None:
    facts = platform.environment()
    simulated = simulator is not None
    assert platform.evidence == ("simulated" if simulated else "device")
    assert facts["simulated"] is simulated
    if simulated:
        assert (facts["simulator"], "npu_smi" in facts) == (simulator.version, False)
    assert facts["device_name"].startswith("Ascend")
    assert facts["device_count"] >= 1
    assert facts["cann"][0].isdigit()
    assert 0 <= facts["memory_bytes"]["in_use"] <= facts["memory_bytes"]["total"]


def test_capture_holds_64_independent_calls_and_replays_on_changed_inputs(platform) -> None:
    x = torch.arange(64.0, device="npu")
    captured = platform.capture(lambda: x * 2, "aclgraph")
    for factor in (1, 3):
        x.copy_(torch.arange(64.0) * factor)
        captured.replay()
        platform.synchronize()
        outputs = captured.outputs()
        assert len({output.data_ptr() for output in outputs}) == CALLS_A_GRAPH
        for output in outputs:
            assert torch.equal(output.cpu(), torch.arange(64.0) * factor * 2)


def test_captured_outputs_stay_where_they_are_whatever_is_allocated_since(platform) -> None:
    x = torch.ones(64, device="npu")
    captured = platform.capture(lambda: x + 1, "aclgraph")
    torch.npu.empty_cache()
    others = [torch.zeros(64, device="npu") for _ in range(4 * CALLS_A_GRAPH)]
    captured.replay()
    platform.synchronize()
    assert all(torch.equal(output.cpu(), torch.full((64,), 2.0)) for output in captured.outputs())
    assert all(not other.cpu().any() for other in others)


def test_capture_takes_a_stream_of_its_own_and_puts_the_callers_back(platform) -> None:
    before, seen = torch.npu.current_stream(), []
    x = torch.ones(64, device="npu")

    def function() -> torch.Tensor:
        seen.append(torch.npu.current_stream())
        return x + 1

    platform.capture(function, "aclgraph")
    assert len(seen) == 1 + CALLS_A_GRAPH
    assert len(set(seen)) == 1
    assert seen[0] not in (before, torch.npu.default_stream())
    assert torch.npu.current_stream() == before


def _subject(kernel: Callable[[torch.Tensor], torch.Tensor]) -> Subject:
    contract = OpContract("double")
    spec = KernelSpec("npu.test.double", contract, "npu", ("eager", "aclgraph"), "", "test")
    trial = Trial("float32", ("x",), lambda: {"x": torch.arange(320.0).view(40, 8)}, dict)
    return Subject(PreparedKernel(spec, kernel, 1, ()), trial)


def test_stream_and_graph_are_certified_and_a_dependency_on_either_found(platform) -> None:
    before = torch.npu.current_stream()

    def dependent(x: torch.Tensor) -> torch.Tensor:
        return x * (2 if torch.npu.current_stream() == before else 3)

    honest = _subject(lambda x: x * 2)
    assert invariance.stream(honest, platform) is None
    assert invariance.mode(honest, platform, "aclgraph") is None
    assert "on another stream" in str(invariance.stream(_subject(dependent), platform))
    assert "in mode aclgraph" in str(invariance.mode(_subject(dependent), platform, "aclgraph"))
    assert torch.npu.current_stream() == before


def test_timers_count_what_the_device_does(platform) -> None:
    x = torch.ones(1 << 16, device="npu")
    captured = platform.capture(lambda: x + 1, "aclgraph")
    sample = platform.measure(captured, 3, time.perf_counter_ns)
    assert set(sample) == {"host_enqueue_us", "device_interval_us", "wall_us"}
    assert all(value > 0 for value in sample.values())
    assert sample["wall_us"] >= sample["host_enqueue_us"]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, simulator) -> dict[str, tuple]:
    """What the benchmark did where a graph fails, a process a fault: it spoils the device."""
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    folder = tmp_path_factory.mktemp("faulty")
    reports = {fault: folder / f"{number}.json" for number, fault in enumerate(FAULTS)}
    synchronising = folder / "synchronising.py"
    synchronising.write_text(SYNCHRONISING)
    commands = [
        Command((*BENCHMARK, "--output", str(report)), {"ASCEND_SIM_FAULT": fault})
        for fault, report in reports.items()
    ]
    *done, last = run_all([*commands, Command((str(synchronising),))])
    found = {fault: (one, reports[fault]) for fault, one in zip(FAULTS, done, strict=True)}
    return {**found, "synchronising": (last, None)}


@pytest.mark.parametrize("fault", FAULTS)
def test_failing_graph_is_reported_and_raised_and_ends_the_run(faulty, fault: str) -> None:
    done, path = faulty[fault]
    assert done.returncode == 4, text_of(done)
    report = json.loads(Path(path).read_text())
    assert report["status"] == "error"
    assert report["evidence"] == "simulated"
    first, second = report["rows"]
    assert (first["status"], first["stage"]) == ("error", FAULTS[fault])
    assert first["traceback"]
    assert second["status"] == "not_run"
    assert all(row["timings"] is None and "simulated_timings" not in row for row in report["rows"])


# A call that waits for the device cannot be captured; the error must name it, not only the graph.
SYNCHRONISING = """
import torch
from xllm_kernel.platforms.npu import NpuPlatform
npu, x = NpuPlatform(), torch.ones(64, device="npu")
npu.synchronize()
def waits():
    y = x + 1
    torch.npu.current_stream().synchronize()
    return y
before = torch.npu.current_stream()
try:
    npu.capture(waits, "aclgraph")
except RuntimeError as error:
    print("RAISED", str(error).replace("\\n", " "))
print("STREAM", torch.npu.current_stream() == before)
"""


def test_call_that_waits_while_captured_is_named(faulty) -> None:
    done, _ = faulty["synchronising"]
    assert done.returncode == 0, text_of(done)
    (raised,) = [line for line in done.stdout.splitlines() if line.startswith("RAISED")]
    assert "107027" in raised, raised
    assert "STREAM True" in done.stdout


def test_worker_serves_from_the_device(simulator) -> None:
    done = Command((str(REPOSITORY_ROOT / "examples/worker.py"), "--device", "npu")).run()
    assert done.returncode == 0, text_of(done)
    assert done.stdout.count(": right") == 2
