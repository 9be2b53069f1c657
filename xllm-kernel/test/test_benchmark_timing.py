"""The timing stage on devices that exist only in a test, whose true costs are known."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from test_benchmark_statistics import VirtualClock

from xllm_kernel.benchmark.sampling import Sampling
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.numerics.case_run import MeasurementError
from xllm_kernel.platforms import npu
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.platforms.npu import NpuPlatform
from xllm_kernel.registry import KernelSpec, OpContract, PreparedKernel


class FakeDevice:
    """A queue in front of a device: submitting costs the host little, running takes long."""

    def __init__(self, clock: VirtualClock, enqueue_us: float, kernel_us: float) -> None:
        self._clock = clock
        self._enqueue_ns, self._kernel_ns = int(enqueue_us * 1e3), int(kernel_us * 1e3)
        self._done_at = 0
        self.synchronisations = 0
        self.synchronisation_ns = 0

    def submit(self, kernels: int = 1) -> None:
        self._clock.spend(self._enqueue_ns)
        self._done_at = max(self._done_at, self._clock.now) + kernels * self._kernel_ns

    def synchronize(self) -> None:
        self.synchronisations += 1
        self._clock.now = max(self._clock.now, self._done_at) + self.synchronisation_ns

    def Event(self, enable_timing: bool) -> _FakeEvent:  # noqa: N802 (the framework's name)
        return _FakeEvent(self)

    @property
    def queue_end(self) -> int:
        return max(self._clock.now, self._done_at)


class _FakeEvent:
    def __init__(self, device: FakeDevice) -> None:
        self._device, self._at = device, 0

    def record(self) -> None:
        self._at = self._device.queue_end

    def elapsed_time(self, later: _FakeEvent) -> float:
        return (later._at - self._at) / 1e6


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def on_device(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> Callable[[float, float], FakeDevice]:
    def make(enqueue_us: float, kernel_us: float) -> FakeDevice:
        device = FakeDevice(clock, enqueue_us, kernel_us)
        monkeypatch.setattr(npu, "_npu", lambda: device)
        return device

    return make


def _run(clock: VirtualClock, captured: Captured, iterations: int) -> Any:
    stage = Timing(Sampling(iterations=iterations, repeats=3), clock)
    return stage.run(NpuPlatform(), captured)


@pytest.mark.parametrize("iterations", [1, 7, 50])
def test_eager_device_times_are_a_call_and_the_enqueue_is_not_the_kernel(
    clock: VirtualClock, on_device: Callable[[float, float], FakeDevice], iterations: int
) -> None:
    device = on_device(5.0, 10_000.0)
    with pytest.raises(MeasurementError):  # the empty callable takes no virtual time
        _run(clock, eager(device.submit), iterations)
    sample = NpuPlatform().measure(eager(device.submit), iterations, clock)
    assert sample["host_enqueue_us"] == 5.0
    assert sample["device_interval_us"] == pytest.approx(10_000.0, rel=1e-3)
    assert sample["wall_us"] >= 10_000.0


@pytest.mark.parametrize("iterations", [1, 7, 50])
def test_graph_replays_are_divided_by_their_calls(
    clock: VirtualClock, on_device: Callable[[float, float], FakeDevice], iterations: int
) -> None:
    device = on_device(5.0, 1_000.0)
    captured = Captured(calls=64, replay=lambda: device.submit(64), outputs=lambda: [None] * 64)
    sample = NpuPlatform().measure(captured, iterations, clock)
    assert sample["device_interval_us"] == pytest.approx(1_000.0, rel=1e-3)
    assert sample["wall_us"] == pytest.approx(1_000.0, rel=1e-3)
    assert sample["host_enqueue_us"] == 5.0 / 64


def test_work_from_before_the_sample_is_in_no_figure(
    clock: VirtualClock, on_device: Callable[[float, float], FakeDevice]
) -> None:
    device = on_device(5.0, 1_000.0)
    device.submit(50)
    sample = NpuPlatform().measure(eager(device.submit), 10, clock)
    assert sample["device_interval_us"] == pytest.approx(1_000.0, rel=1e-2)
    assert sample["wall_us"] == pytest.approx(1_000.0, rel=1e-2)


def test_waiting_for_the_device_is_in_no_device_interval(
    clock: VirtualClock, on_device: Callable[[float, float], FakeDevice]
) -> None:
    device = on_device(5.0, 1_000.0)
    device.synchronisation_ns = 30_000_000
    sample = NpuPlatform().measure(eager(device.submit), 10, clock)
    assert device.synchronisations > 0
    assert sample["device_interval_us"] == pytest.approx(1_000.0, rel=1e-2)
    assert sample["host_enqueue_us"] == 5.0


class _TickingClock(VirtualClock):
    """Each look at the clock costs a nanosecond, so that nothing takes no time at all."""

    def __call__(self) -> int:
        self.now += 1
        return self.now


def test_timing_reports_the_case_and_the_empty_callable_side_by_side() -> None:
    clock = _TickingClock()
    stage = Timing(Sampling(iterations=4, repeats=3), clock)
    result = stage.run(CpuPlatform(), eager(lambda: clock.spend(2_000)))
    assert (result["calls_a_replay"], result["iterations"], result["repeats"]) == (1, 4, 3)
    assert result["wall_us"]["median"] == pytest.approx(2.0, rel=1e-3)
    assert len(result["wall_us"]["samples"]) == 3
    assert result["empty_callable"]["wall_us"]["median"] == 0.00025
    assert len(result["empty_callable"]["wall_us"]["samples"]) == 3


def test_timing_calls_the_case_exactly_as_often_as_asked() -> None:
    calls = []
    Timing(Sampling(iterations=4, repeats=3)).run(CpuPlatform(), eager(lambda: calls.append(1)))
    assert len(calls) == 12


def test_timing_keeps_the_collector_out_and_lets_it_in_again() -> None:
    seen = set()
    Timing(Sampling(iterations=2, repeats=2)).run(
        CpuPlatform(), eager(lambda: seen.add(gc.isenabled()))
    )
    assert seen == {False}
    assert gc.isenabled()


def test_timing_under_a_standing_clock_gives_no_figures() -> None:
    stage = Timing(Sampling(iterations=4, repeats=3), VirtualClock())
    with pytest.raises(MeasurementError, match="raise --iterations"):
        stage.run(CpuPlatform(), eager(lambda: None))


def _plan(**contract: Any) -> PreparedKernel:
    spec = KernelSpec("n", OpContract("op", **contract), "cpu", ("eager",), "", "s")
    return PreparedKernel(spec, lambda: None, 1, ())


def test_timing_refuses_operators_that_mutate() -> None:
    stage = Timing(Sampling())
    assert stage.refusal(_plan()) is None
    refusal = stage.refusal(_plan(mutates=("residual",)))
    assert refusal is not None
    assert "mutates residual" in refusal
