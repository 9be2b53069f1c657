"""The probe: which passes a work is held against, over which memory, in which time.

Most tests give it functions with a clock of their own; no test looks at a real time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import PACKAGE_ROOT

from xllm_kernel.benchmark.ceilings import probe as module
from xllm_kernel.benchmark.ceilings.memory import Buffer, Ring
from xllm_kernel.benchmark.ceilings.probe import GRAIN, CeilingsAbsentError, Probe, traffic
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.suite import Work

CACHE = 1 << 20


class Machine:
    """A library's functions: a byte of a buffer takes a nanosecond, an operation a tenth of one."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[int, ...]]] = []

    def __call__(self, name: str, *arguments: int) -> float:
        self.calls.append((name, arguments))
        *_, size, _threads, _repetitions = arguments
        return size * (1e-10 if name in ("fma", "dot") else 1e-9)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def probe(machine: Machine) -> Iterator[Probe]:
    probe = Probe(machine, "level", has_dot=True, cache_bytes=CACHE)
    yield probe
    probe.close()


# ---------------------------------------------------------------- which passes


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (Work(0, 0, 7), {}),
        (Work(100, 0, 7), {"read": (("read", 100),)}),
        (
            Work(110, 90, 7),
            {"copy": (("copy", 100),), "streaming copy": (("copy_streaming", 100),)},
        ),
        (
            Work(101, 90, 7),
            {"copy": (("copy", 96),), "streaming copy": (("copy_streaming", 96),)},
        ),
        (
            Work(200, 100, 7),
            {"copy": (("copy", 150),), "streaming copy": (("copy_streaming", 150),)},
        ),
        (
            Work(201, 100, 7),
            {
                "copy and read": (("copy", 100), ("read", 101)),
                "streaming copy and read": (("copy_streaming", 100), ("read", 101)),
            },
        ),
        (
            Work(0, 100, 7),
            {"copy": (("copy", 50),), "streaming copy": (("copy_streaming", 50),)},
        ),
        (
            Work(110, 90, 7, in_place=True),
            {
                "update": (("update", 100),),
                "copy": (("copy", 100),),
                "streaming copy": (("copy_streaming", 100),),
            },
        ),
    ],
)
def test_traffic_moves_the_works_bytes(work: Work, expected: dict[str, object]) -> None:
    assert traffic(work) == expected


@pytest.mark.parametrize(
    ("work", "has_dot", "expected"),
    [
        (Work(0, 0, 0), True, []),
        (Work(8, 0, 0), True, ["read"]),
        (Work(0, 0, 8), True, ["fma"]),
        (Work(8, 0, 8), True, ["read", "fma"]),
        (Work(0, 0, 8, arithmetic="dot"), True, ["dot"]),
        (Work(0, 0, 8, arithmetic="dot"), False, ["fma"]),
    ],
)
def test_passes_of_what_the_work_has(
    machine: Machine, work: Work, has_dot: bool, expected: list[str]
) -> None:
    probe = Probe(machine, "level", has_dot=has_dot, cache_bytes=CACHE)
    passes = probe.passes(work, 1, cold=False)
    assert [one.name for one in passes] == expected
    kinds = {"read": "memory", "fma": "compute", "dot": "compute"}
    assert [one.kind for one in passes] == [kinds[name] for name in expected]
    probe.close()


# ---------------------------------------------------------------- what they do, and in which time


def test_hot_pass_same_bytes_again_and_the_time_of_one(probe: Probe, machine: Machine) -> None:
    (one,) = probe.passes(Work(1 << 20, 0, 0), 3, cold=False)
    for count in (1, 7):
        assert one.measure(count) == pytest.approx((1 << 20) / 1e3)
    calls = [arguments for _, arguments in machine.calls]
    assert [arguments[1:] for arguments in calls] == [(1 << 20, 3, 1), (1 << 20, 3, 7)]
    assert len({arguments[0] for arguments in calls}) == 1


def test_hot_copy_two_buffers_apart(probe: Probe, machine: Machine) -> None:
    copy, _ = probe.passes(Work(1 << 20, 1 << 20, 0), 1, cold=False)
    copy.measure(1)
    ((name, (destination, source, size, _, _)),) = machine.calls
    assert (name, size) == ("copy", 1 << 20)
    assert abs(destination - source) >= size


def test_hot_tiny_pass_so_many_that_the_clock_is_nothing(probe: Probe, machine: Machine) -> None:
    (one,) = probe.passes(Work(1000, 0, 0), 1, cold=False)
    assert one.measure(1) == pytest.approx(1.0)
    ((_, (_, size, _, repetitions)),) = machine.calls
    assert size == 1000
    assert size * repetitions >= 1 << 18


def test_hot_pass_of_two_parts_takes_both_times(probe: Probe, machine: Machine) -> None:
    copy, _ = probe.passes(Work(5 << 20, 1 << 20, 0), 1, cold=False)
    assert copy.measure(2) == pytest.approx((5 << 20) / 1e3)
    assert [name for name, _ in machine.calls] == ["copy", "read"]


def test_hot_pass_of_more_than_its_memory_goes_round(probe: Probe, machine: Machine) -> None:
    size = 600 << 20
    (one,) = probe.passes(Work(size, 0, 0), 1, cold=False)
    assert one.measure(1) == pytest.approx(size / 1e3)
    sizes = [arguments[1] for _, arguments in machine.calls]
    assert sum(sizes) == size
    assert max(sizes) == 256 << 20


def test_cold_passes_share_a_circle_of_three_caches(probe: Probe, machine: Machine) -> None:
    """No byte is touched again before three times the cache was, whatever pass comes next."""
    work = Work(300_000, 290_000, 0, in_place=True)
    passes = probe.passes(work, 1, cold=True)
    for _ in range(40):
        for one in passes:
            assert one.measure(1) == pytest.approx(295.0)
    last: dict[int, int] = {}  # line of the source, to what had been touched by then
    now = 0
    for _, (*_, begin, size, _threads, _repetitions) in machine.calls:
        for line in range(begin // 64, -(-(begin + size) // 64)):
            assert now - last.get(line, now - 3 * CACHE - 1) > 3 * CACHE
            last[line] = now
            now += 64
    assert now > 4 * CACHE


def test_cold_pass_larger_than_the_circle_covers_its_bytes(probe: Probe, machine: Machine) -> None:
    size = 10 * CACHE + 17
    (one,) = probe.passes(Work(size, 0, 0), 1, cold=True)
    assert one.measure(2) == pytest.approx(size / 1e3)
    assert sum(arguments[1] for _, arguments in machine.calls) == 2 * size


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [1, 1000])
def test_compute_whole_turns_and_the_time_of_the_works_operations(
    probe: Probe, machine: Machine, threads: int, count: int
) -> None:
    (one,) = probe.passes(Work(0, 0, 1_000_001), threads, cold=False)
    assert one.measure(count) == pytest.approx(1_000_001 * 1e-4)
    ((name, (operations, given, repetitions)),) = machine.calls
    assert (name, given, repetitions) == ("fma", threads, 1)
    assert operations % (GRAIN * threads) == 0
    assert 0 <= operations - 1_000_001 * count < GRAIN * threads


def test_memory_that_grew_is_found_by_earlier_passes(probe: Probe, machine: Machine) -> None:
    (small,) = probe.passes(Work(CACHE, 0, 0), 1, cold=False)
    (large,) = probe.passes(Work(64 * CACHE, 0, 0), 1, cold=False)
    small.measure(1)
    large.measure(1)
    assert machine.calls[0][1][0] == machine.calls[1][1][0]


def test_cold_pass_after_close_refused(machine: Machine) -> None:
    probe = Probe(machine, "level", has_dot=True, cache_bytes=CACHE)
    (one,) = probe.passes(Work(100, 0, 0), 1, cold=True)
    probe.close()
    with pytest.raises(ValueError, match="given back"):
        one.measure(1)


# ---------------------------------------------------------------- memory


def test_buffer_grows_and_never_shrinks() -> None:
    buffer = Buffer()
    buffer.reserve(5000)
    first = buffer.address
    buffer.reserve(100)
    assert (buffer.size, buffer.address) == (5000, first)
    buffer.reserve(100_000)
    assert buffer.size == 100_000
    buffer.close()
    assert (buffer.size, buffer.address) == (0, 0)


def test_ring_stretches_begin_at_lines_and_add_up() -> None:
    ring = Ring()
    ring.reserve(1000)
    assert list(ring.stretches(100)) == [(0, 100)]
    assert list(ring.stretches(900)) == [(128, 872), (0, 28)]
    assert list(ring.stretches(2000)) == [(64, 936), (0, 1000), (0, 64)]
    ring.close()


# ---------------------------------------------------------------- the library itself


def test_grain_is_the_headers() -> None:
    header = (PACKAGE_ROOT / "bench" / "ceilings" / "ceilings.h").read_text()
    assert re.findall(r"#define XLLM_CEILING_GRAIN (\d+)", header) == [str(GRAIN)]


@pytest.fixture(scope="module")
def real() -> Iterator[Probe]:
    try:
        probe = Probe.load()
    except CeilingsAbsentError as error:
        pytest.skip(str(error))
    yield probe
    probe.close()


@pytest.mark.parametrize("cold", [False, True])
def test_library_measures_every_pass(real: Probe, cold: bool) -> None:
    works = [
        Work(6144, 6144, 30_000, in_place=True),
        Work(100_000, 100, 1, arithmetic="dot"),
        Work(5000, 0, 0),
    ]
    for work in works:
        for one in real.passes(work, 2, cold=cold):
            assert one.measure(3) > 0


def test_library_refusal_says_why(real: Probe) -> None:
    (one,) = real.passes(Work(5000, 0, 0), 257, cold=False)
    with pytest.raises(ConfigurationError, match=r"ceilings \[read\]: .*1 to 256, got 257"):
        one.measure(1)


def test_load_forced_level_that_is_none_absent_by_name(real: Probe, run_python) -> None:
    code = (
        "from xllm_kernel.benchmark.ceilings.probe import Probe, CeilingsAbsentError\n"
        "import sys\n"
        "try: Probe.load()\n"
        "except CeilingsAbsentError as error: print(error)\n"
        "assert 'torch' not in sys.modules"
    )
    done = run_python("-c", code, env={"XLLM_KERNEL_SIMD_LEVEL": "doesnotexist"})
    assert "XLLM_KERNEL_SIMD_LEVEL" in done.stdout, done.stderr


def test_load_without_the_build_absent_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xllm_kernel._build.simd", None)
    with pytest.raises(CeilingsAbsentError, match="XLLM_KERNEL_BUILD_SIMD=1"):
        Probe.load()


def test_load_library_of_another_kind_absent_by_name(tmp_path, monkeypatch) -> None:
    other = tmp_path / module.LIBRARY
    other.write_bytes(b"\x7fELF")
    monkeypatch.setattr(module, "_find", lambda: other)
    with pytest.raises(CeilingsAbsentError, match="must be a library that loads here"):
        Probe.load()


def test_a_child_that_drops_the_memory_keeps_its_own(run_python: Callable[..., Any]) -> None:
    """A child's mapping where the parent's buffer lies must outlive the child's copy of it."""
    code = """
import gc, mmap, os
from xllm_kernel.benchmark.ceilings.memory import Buffer
buffer = Buffer()
buffer.reserve(1 << 22)
pid = os.fork()
if pid == 0:
    others = [mmap.mmap(-1, 1 << 22) for _ in range(8)]
    del buffer
    gc.collect()
    for other in others:
        other[:: mmap.PAGESIZE] = b"1" * (len(other) // mmap.PAGESIZE)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run_python("-c", code).stdout.split() == ["0"]
