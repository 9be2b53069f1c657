"""Where arguments lie: what surrounds them, and that a step outside is seen or fatal."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from xllm_kernel.numerics import memory
from xllm_kernel.numerics.memory import Layout, guarded, place, poisoned
from xllm_kernel.numerics.storage import ArgumentGuard, storage_bytes

VIEW = Layout(offset=3, gap=5)
LAYOUTS = [Layout(), Layout(gap=1), Layout(offset=1), VIEW]


def filled(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)


def dies(touch: Callable[[], object]) -> bool:
    """Say whether a touch of memory ends a process that makes it."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        touch()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", [*memory.SIDES, None])
def test_placed_tensor_has_the_values_and_the_strides_that_its_layout_says(
    side: str | None, layout: Layout
) -> None:
    given = filled(4, 3, 7, dtype=torch.float16)
    if side is None:
        placed = place(given, "cpu", layout)
    else:
        with guarded(side):
            placed = place(given, "cpu", layout)
    assert placed.equal(given)
    assert placed.stride() == layout.strides((4, 3, 7)) == (3 * (7 + layout.gap), 7 + layout.gap, 1)


def test_strides_of_few_dimensions() -> None:
    assert Layout(gap=2).strides(()) == ()
    assert Layout(gap=2).strides((5,)) == (1,)
    assert Layout(gap=2).strides((3, 5)) == (7, 1)
    assert Layout().strides((0, 5)) == (5, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", memory.SIDES)
def test_everything_around_the_elements_is_poison(side: str, layout: Layout) -> None:
    with guarded(side):
        placed = place(filled(3, 5), "cpu", layout)
    everything = storage_bytes(placed).clone()
    mine = torch.zeros_like(everything, dtype=torch.bool)
    view = torch.empty(0, dtype=torch.int32)
    marks = mine.to(torch.uint8)
    view.set_(marks.untyped_storage(), placed.storage_offset(), (3, 5), placed.stride()).fill_(-1)
    assert everything[marks == 0].unique().tolist() == [memory.POISON]
    assert (marks != 0).sum() == 3 * 5 * 4


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 1024), (1, 4096)])
def test_an_element_past_the_guarded_end_is_fatal(shape: tuple[int, ...]) -> None:
    with guarded("end"):
        placed = place(filled(*shape, dtype=torch.float16), "cpu")
    end = placed.data_ptr() + 2 * placed.numel()
    assert not dies(lambda: ctypes.string_at(end - 2, 2))
    assert dies(lambda: ctypes.string_at(end, 1))
    assert dies(lambda: ctypes.memset(end, 0, 1))


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 1024), (1, 4096)])
def test_an_element_before_the_guarded_start_is_fatal(shape: tuple[int, ...]) -> None:
    with guarded("start"):
        placed = place(filled(*shape, dtype=torch.float16), "cpu")
    start = placed.data_ptr()
    assert not dies(lambda: ctypes.string_at(start, 2))
    assert dies(lambda: ctypes.string_at(start - 1, 1))
    assert dies(lambda: ctypes.memset(start - 1, 0, 1))


@pytest.mark.parametrize(("side", "step"), [("end", -1), ("start", 15)])
def test_a_write_on_the_unguarded_side_is_seen(side: str, step: int) -> None:
    with guarded(side):
        placed = place(filled(3, 5), "cpu")
    guard = ArgumentGuard({"x": placed}, mutates=("x",))
    assert guard.stray() is None
    ctypes.memset(placed.data_ptr() + 4 * step, 0, 4)
    reason = guard.stray()
    assert reason is not None
    assert ("before the first" if step < 0 else "past the last") in reason
    guard.restore()
    assert guard.stray() is None


def test_guarding_ends_with_its_block_even_where_that_raises() -> None:
    with pytest.raises(ZeroDivisionError), guarded("start"):
        raise ZeroDivisionError
    # Without a guard the storage holds the elements and nothing else.
    assert place(filled(3), "cpu").untyped_storage().nbytes() == 12


def test_empty_tensors_can_be_placed() -> None:
    for side in memory.SIDES:
        with guarded(side):
            assert place(torch.zeros(0, 8), "cpu").shape == (0, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_poison_is_nan_in_every_dtype(dtype: torch.dtype) -> None:
    tensor = poisoned((2, 3), dtype)
    assert tensor.isnan().all()
    assert tensor.is_contiguous()
    assert poisoned((0, 3), dtype).shape == (0, 3)


def test_memory_is_given_back() -> None:
    """Each region is three mappings at least; a leak of a thousand would show."""
    maps = Path("/proc/self/maps")
    before = len(maps.read_text().splitlines())
    for _ in range(1000):
        with guarded("end"):
            place(filled(3, 5), "cpu")
    assert len(maps.read_text().splitlines()) < before + 100
