"""The timing stage on devices that exist only in a test, whose true costs are known."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import led
import pytest
from test_benchmark_statistics import VirtualClock

from xllm_kernel.benchmark import timing
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import HOT, Steady, _Submitting
from xllm_kernel.numerics.case_run import MeasurementError
from xllm_kernel.numerics.suite import Reset
from xllm_kernel.platforms import npu
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.platforms.npu import NpuPlatform


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


@pytest.mark.parametrize("iterations", [1, 7, 50])
def test_eager_device_times_are_a_call_and_the_enqueue_is_not_the_kernel(
    clock: VirtualClock, on_device: Callable[[float, float], FakeDevice], iterations: int
) -> None:
    device = on_device(5.0, 10_000.0)
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
    told = led.run(CpuPlatform(), eager(lambda: clock.spend(2_000)), clock)
    assert (told.timed[0]["calls_a_replay"], told.timed[0]["iterations"]) == (1, 4)
    assert told.column("wall_us") == pytest.approx([2.0] * 3, rel=1e-3)
    assert told.column("wall_us", of="empty") == [0.00025] * 3


def test_a_sample_has_exactly_the_replays_asked_for_and_others_before_it_untimed() -> None:
    clock, calls = _TickingClock(), []
    told = led.run(CpuPlatform(), eager(lambda: calls.append(1)), clock)
    assert len(calls) == 3 * (4 + 1)
    calls.clear()
    told = led.run(CpuPlatform(), eager(lambda: calls.append(1)), clock, iterations=16)
    assert len(calls) == 3 * (16 + 3)
    assert len(told.samples) == 3


def test_a_sample_has_the_longer_pace_of_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, paces = _TickingClock(), iter([50.0, 80.0, 70.0, 50.0, 50.0, 50.0])
    monkeypatch.setattr(timing.machine, "pace", lambda: next(paces))
    told = led.run(CpuPlatform(), eager(lambda: clock.spend(2_000)), clock)
    assert [sample["pace_us"] for sample in told.samples] == [80.0, 70.0, 50.0]


def test_samples_of_long_calls_are_warmed_up_for_once_only() -> None:
    clock, calls = _TickingClock(), []

    def spend() -> None:
        calls.append(1)
        clock.spend(25_000_000)

    told = led.run(CpuPlatform(), eager(spend), clock, iterations=1)
    assert len(told.samples) == 3
    assert len(calls) == 3 + 1


def test_calibration_makes_samples_of_a_millisecond_and_a_long_call_one_by_itself() -> None:
    clock = _TickingClock()
    quick = led.run(CpuPlatform(), eager(lambda: clock.spend(2_000)), clock, iterations=None)
    slow = led.run(CpuPlatform(), eager(lambda: clock.spend(5_000_000)), clock, iterations=None)
    assert 500 <= quick.timed[0]["iterations"] <= 650
    assert slow.timed[0]["iterations"] == 1


@pytest.mark.parametrize("interrupted", [{0}, {1}, {0, 1}, {0, 2}])
def test_interrupted_calls_do_not_pass_for_slow_ones(interrupted: set[int]) -> None:
    samples: list[int] = []

    class Held:
        """Takes 1 us a call; 30 ms more in some of the first samples."""

        calls, iterations, warms, reset_before = 1, None, True, None

        def sample(self, count: int) -> dict[str, float]:
            held = 30_000.0 if len(samples) in interrupted else 0.0
            samples.append(count)
            return {"wall_us": 1.0 + held / count}

        def idle(self, count: int) -> dict[str, float]:
            return {"wall_us": 0.0}

    assert 1000 <= timing.calibrated(Held()) <= 1300


@pytest.mark.parametrize(("before", "low", "high"), [("every call", 250, 330), (None, 1000, 1300)])
def test_what_is_put_back_between_calls_counts_in_a_samples_length(
    before: str | None, low: int, high: int
) -> None:
    """A switch between calls is not told from one within: a long sample would have it always."""

    class PutBack:
        calls, iterations, warms, reset_before = 1, None, True, before

        def sample(self, count: int) -> dict[str, float]:
            return {"wall_us": 1.0, "reset_us": 3.0}

        def idle(self, count: int) -> dict[str, float]:
            return {"wall_us": 0.0}

    assert low <= timing.calibrated(PutBack()) <= high


def test_a_submission_with_arguments_put_back_before_each_is_calibrated() -> None:
    class Queue:
        def measure(self, captured: Any, count: int, clock: Any) -> dict[str, float]:
            return {"host_enqueue_us": 2.0, "wall_us": 9.0}

        def synchronize(self) -> None: ...

    reset = Reset(lambda: None, every_call=True)
    captured = Captured(1, lambda: None, list)
    steady = Steady(Queue(), captured, reset, time.perf_counter_ns)  # type: ignore[arg-type]
    assert 500 <= timing.calibrated(_Submitting(steady)) <= 650


def test_calibration_ends_even_where_calls_take_no_time() -> None:
    class Nothing:
        calls, iterations, warms, reset_before = 1, None, True, None

        def sample(self, count: int) -> dict[str, float]:
            return {"wall_us": 1e-9}

        def idle(self, count: int) -> dict[str, float]:
            return {"wall_us": 0.0}

    assert timing.calibrated(Nothing()) >= 1 << 20


def test_timing_keeps_the_collector_out_and_lets_it_in_again() -> None:
    seen = set()
    led.run(CpuPlatform(), eager(lambda: seen.add(gc.isenabled())), _TickingClock())
    assert seen == {False}
    assert gc.isenabled()


def test_timing_under_a_standing_clock_gives_no_figures() -> None:
    with pytest.raises(MeasurementError, match="raise --iterations"):
        led.run(CpuPlatform(), eager(lambda: None), VirtualClock())


def test_timing_refuses_operators_that_mutate() -> None:
    stage = Timing((HOT,))
    assert stage.refusal(led.plan()) is None
    refusal = stage.refusal(led.plan(mutates=("residual",)))
    assert refusal is not None
    assert "mutates residual" in refusal
