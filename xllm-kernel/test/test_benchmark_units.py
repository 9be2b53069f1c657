"""What a sample of each regime times, on devices whose true costs are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import led
import pytest
import torch
from test_benchmark_timing import FakeDevice, _TickingClock

from xllm_kernel.benchmark import units
from xllm_kernel.benchmark.units import COLD, ENQUEUE, GRAPH, HOT, RegimeAbsentError, unit
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.case_run import CaseEndedError, Subject
from xllm_kernel.numerics.suite import PreparedCase, Reset, Work
from xllm_kernel.platforms import npu
from xllm_kernel.platforms.captured import eager
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.platforms.npu import NpuPlatform

CACHE = 1 << 20


class _Cached(CpuPlatform):
    """A processor whose last cache holds a mebibyte."""

    def last_level_cache_bytes(self) -> int | None:
        return CACHE


class _Case:
    """Makes cases whose call takes 1 us on data in a cache, and 9 us otherwise."""

    case_id, parameters = "touch", {}

    def __init__(self, clock: _TickingClock, size: int, right: bool = True) -> None:
        self.clock, self.size, self.right = clock, size, right
        self.prepared = 0
        self.cached: set[int] = set()
        self.calls: list[int] = []
        self.resets = 0

    def unsupported_reason(self, plan: Any) -> None:
        return None

    def prepare(self, plan: Any) -> PreparedCase:
        number = self.prepared
        self.prepared += 1

        def call() -> None:
            self.calls.append(number)
            self.clock.spend(1_000 if number in self.cached else 9_000)
            self.cached.add(number)

        def reset() -> None:
            self.resets += 1
            self.cached.add(number)

        wrong = not self.right and number > 0
        verdict = {"status": "failed", "reason": "a wrong copy"} if wrong else {"status": "passed"}
        return PreparedCase(call, lambda f: verdict, reset=Reset(reset), work=Work(self.size, 0, 0))


def _subject(case: _Case, platform: CpuPlatform) -> Subject:
    prepared = case.prepare(None)
    return Subject(platform, led.plan(), "eager", case, prepared, eager(prepared.function))


@pytest.fixture
def emptied(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Case], list[int]]:
    """Let filling the caches take 700 us and leave nothing of a case in them."""

    def plant(case: _Case) -> list[int]:
        fills: list[int] = []

        def filler(size: int, device: str) -> Callable[[], None]:
            def fill() -> None:
                fills.append(size)
                case.clock.spend(700_000)
                case.cached.clear()

            return fill

        monkeypatch.setattr(units, "_filler", filler)
        return fills

    return plant


def test_cold_and_hot_give_the_two_known_values(
    emptied: Callable[[_Case], list[int]],
) -> None:
    clock = _TickingClock()
    case = _Case(clock, CACHE // 2)
    fills = emptied(case)
    subject = _subject(case, _Cached())
    hot = unit(HOT, subject, clock)
    cold = unit(COLD, subject, clock)
    hot.sample(1)
    assert hot.sample(8)["wall_us"] == pytest.approx(1.0, rel=1e-2)
    assert cold.sample(7)["wall_us"] == pytest.approx(9.0, rel=1e-2)
    assert set(fills) == {3 * CACHE + 1}


def test_rotation_is_in_no_figure_but_its_own_and_a_sample_asked_for_is_exact(
    emptied: Callable[[_Case], list[int]],
) -> None:
    clock = _TickingClock()
    case = _Case(clock, CACHE // 2)
    fills = emptied(case)
    cold = unit(COLD, _subject(case, _Cached()), clock)
    assert cold.iterations == 7  # 3 MiB and a byte in pieces of half a MiB
    case.calls.clear()
    columns = cold.sample(9)
    assert len(case.calls) == 9
    assert case.calls == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert len(fills) == 2
    assert columns["wall_us"] == pytest.approx(9.0, rel=1e-2)
    assert columns["rotation_us"] == pytest.approx(2 * 700 / 9, rel=1e-2)
    assert cold.idle(9)["wall_us"] < 0.1


def test_what_calls_write_is_put_back_before_the_caches_are_filled(
    emptied: Callable[[_Case], list[int]],
) -> None:
    clock = _TickingClock()
    case = _Case(clock, CACHE // 2)
    emptied(case)
    cold = unit(COLD, _subject(case, _Cached()), clock)
    case.resets = 0
    assert cold.sample(7)["wall_us"] == pytest.approx(9.0, rel=1e-2)
    assert case.resets == 7
    assert cold.reset_before == "every turn of the buffers"


def test_a_case_larger_than_the_caches_needs_no_copy(emptied: Any) -> None:
    case = _Case(_TickingClock(), 4 * CACHE)
    emptied(case)
    unit(COLD, _subject(case, _Cached()), case.clock)
    assert case.prepared == 1


def test_filling_writes_more_than_three_times_the_cache() -> None:
    fill = units._filler(3 * CACHE + 1, "cpu")
    memory = fill()
    assert isinstance(memory, torch.Tensor)
    assert memory.nbytes > 3 * CACHE
    assert int(memory.min()) == int(memory.max()) == 1


def test_a_copy_that_is_wrong_ends_the_case(emptied: Any) -> None:
    case = _Case(_TickingClock(), CACHE, right=False)
    emptied(case)
    with pytest.raises(CaseEndedError, match="a wrong copy") as ended:
        unit(COLD, _subject(case, _Cached()), case.clock)
    assert ended.value.status == "failed"


def test_cold_without_a_known_cache_is_absent_with_the_reason() -> None:
    class Hidden(CpuPlatform):
        def last_level_cache_bytes(self) -> int | None:
            return None

    case = _Case(_TickingClock(), 8)
    with pytest.raises(RegimeAbsentError, match="last-level cache"):
        unit(COLD, _subject(case, Hidden()), case.clock)


def test_enqueue_on_a_device_is_the_submission_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _TickingClock()
    device = FakeDevice(clock, 5.0, 10_000.0)
    monkeypatch.setattr(npu, "_npu", lambda: device)
    subject = led.subject(NpuPlatform(), eager(device.submit))
    columns = unit(ENQUEUE, subject, clock).sample(4)
    assert columns == {"wall_us": pytest.approx(5.0, rel=1e-3)}


def test_enqueue_on_the_processor_is_the_call_that_has_nothing_to_do() -> None:
    clock = _TickingClock()
    full = led.subject(CpuPlatform(), eager(lambda: clock.spend(50_000)))
    with pytest.raises(RegimeAbsentError, match="no call without work"):
        unit(ENQUEUE, full, clock)
    nothing = PreparedCase(lambda: clock.spend(300), lambda f: {"status": "passed"})
    prepared = replace(full.prepared, without_work=lambda: nothing)
    steady = unit(ENQUEUE, replace(full, prepared=prepared), clock)
    assert steady.sample(100)["wall_us"] == pytest.approx(0.3, rel=1e-2)


@pytest.mark.parametrize(
    ("names", "mode"), [((HOT, GRAPH), "eager"), ((COLD,), "compile"), ((ENQUEUE,), "aclgraph")]
)
def test_a_regime_of_another_mode_is_refused(names: tuple[str, ...], mode: str) -> None:
    with pytest.raises(ConfigurationError, match=f"mode '{mode}' has"):
        units.check_regimes(names, mode)


def test_every_mode_has_its_own_regime_where_none_is_asked_for() -> None:
    for mode, regime in (("eager", HOT), ("compile", GRAPH), ("aclgraph", GRAPH)):
        assert units.default_regime(mode) == regime
        units.check_regimes((regime,), mode)
