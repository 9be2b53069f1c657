"""What every RMSNorm on an NPU must do outside of graphs; each scenario raises if it does not.

They take the callable as an argument, so that planted faults go through them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from norm_data import EPS, NAN, MemoryUse, Subject, assert_norm, bits, draw, draw_pair, layouts
from torch._subclasses.fake_tensor import FakeTensorMode

SHAPES = ((1, 64), (3, 128), (16, 6144), (128, 512), (2, 8192), (1, 1, 1, 64))

# Calls whose work the host queues long before the device, or the queue's own thread, does it.
BACKLOG = 64

# Calls between two looks at memory.
BURST = 50


def values_of_every_dtype_and_shape(subject: Subject) -> None:
    for pair in subject.dtypes:
        for shape in SHAPES:
            x, w = draw_pair(shape, pair)
            before = bits(x), bits(w)
            y = subject.function(x, w, EPS)
            assert_norm(y, x, w, EPS, f"{pair} {shape}")
            assert torch.equal(bits(x), before[0]), "the input changed"
            assert torch.equal(bits(w), before[1]), "the weight changed"
            assert y.data_ptr() not in (x.data_ptr(), w.data_ptr())


def values_of_every_layout(subject: Subject) -> None:
    for dtype, weight_dtype in subject.dtypes:
        for name, x in layouts(dtype):
            w = draw(x.shape[-1:], weight_dtype, seed=2).npu()
            before = bits(x)
            assert_norm(subject.function(x, w, EPS), x, w, EPS, f"{dtype} {name}")
            assert torch.equal(bits(x), before), f"{name}: the input changed"


def values_of_strided_weights(subject: Subject) -> None:
    for dtype, weight_dtype in subject.dtypes:
        for name, x in layouts(dtype):
            w = draw((2 * x.shape[-1],), weight_dtype).npu()[::2]
            assert_norm(subject.function(x, w, EPS), x, w, EPS, f"{dtype} {name}")


def empty_rows_give_an_empty_output(subject: Subject) -> None:
    for dtype, weight_dtype in subject.dtypes:
        for shape in ((0, 64), (3, 0, 128)):
            x = torch.empty(shape, dtype=dtype, device="npu")
            y = subject.function(x, torch.ones(shape[-1], dtype=weight_dtype, device="npu"), EPS)
            assert (y.shape, y.dtype, y.device) == (x.shape, dtype, x.device)


def eps_counts(subject: Subject) -> None:
    """The mean square is 2**-10: each of these shows, even in bfloat16."""
    for dtype, weight_dtype in subject.dtypes:
        x = torch.full((4, 256), 2.0**-5, dtype=dtype, device="npu")
        w = torch.ones(256, dtype=weight_dtype, device="npu")
        for eps in (0.0, 2.0**-12, 2.0**-9, 1.0):
            assert_norm(subject.function(x, w, eps), x, w, eps, f"{dtype} eps={eps}")


def a_call_follows_queued_work(subject: Subject) -> None:
    """The input gets its values last, after a backlog; who overtakes the queue may read NaN.

    Whether it does is a matter of luck; the simulator knows which thread submitted.
    """
    for pair in subject.dtypes:
        source, w = draw_pair((64, 512), pair)
        x = torch.full_like(source, NAN)
        before = subject.launches()
        for _ in range(BACKLOG):
            x.mul_(1.0)
        x.copy_(source)
        y = subject.function(x, w, EPS)
        threads = subject.submitting_threads(before)
        assert_norm(y, source, w, EPS, f"{pair}")
        assert len(threads) <= 1, f"the call was not submitted by the queue: threads {threads}"


def a_call_does_not_wait_for_the_device(subject: Subject) -> None:
    """No thread of the process does, for any layout; only the simulator can tell."""
    simulator = subject.simulator
    if simulator is None:
        pytest.skip("only the simulated runtime's trace shows who waited")
    for dtype, weight_dtype in subject.dtypes:
        made = [(x, draw(x.shape[-1:], weight_dtype).npu()) for _, x in layouts(dtype)]
        torch.npu.synchronize()
        before = simulator.waits()
        torch.npu.synchronize()
        asked = simulator.waits()[len(before) :]
        for x, w in made:
            subject.function(x, w, EPS)
        torch.npu.synchronize()
        seen = simulator.waits()[len(before) + len(asked) :]
        assert seen == asked, f"a call waited: {seen} where a synchronisation has {asked}"


def a_call_runs_on_the_callers_stream(subject: Subject) -> None:
    """Both neighbours are on a side stream; who runs elsewhere races with them."""
    for pair in subject.dtypes:
        source, w = draw_pair((64, 512), pair)
        side = torch.npu.Stream()
        torch.npu.synchronize()
        with torch.npu.stream(side):
            x = torch.full_like(source, NAN)
            for _ in range(BACKLOG):
                x.mul_(1.0)
            x.copy_(source)
            y = subject.function(x, w, EPS) * 1.0
        side.synchronize()
        assert_norm(y, source, w, EPS, f"{pair}")


def calls_on_alternating_streams_stay_apart(subject: Subject) -> None:
    """The stream is the one at the call, though the next call's stands when its turn comes."""
    streams = [torch.npu.Stream() for _ in range(3)]
    for pair in subject.dtypes:
        made = [draw_pair((8, 512), pair, seed) for seed in range(24)]
        torch.npu.synchronize()
        outputs = []
        for number, (x, w) in enumerate(made):
            with torch.npu.stream(streams[number % 3]):
                outputs.append(subject.function(x * 1.0, w, EPS))
        torch.npu.synchronize()
        for y, (x, w) in zip(outputs, made, strict=True):
            assert_norm(y, x, w, EPS, f"{pair}")


def calls_from_two_threads_stay_apart(subject: Subject) -> None:
    """Each thread has a current stream of its own, and one queue takes the work of both."""
    streams = [torch.npu.Stream() for _ in range(2)]
    for pair in subject.dtypes:
        made = [draw_pair((8, 512), pair, seed) for seed in range(24)]
        torch.npu.synchronize()

        def work(first: int, made: Sequence[Sequence[torch.Tensor]] = made) -> list[torch.Tensor]:
            with torch.npu.stream(streams[first]):
                return [subject.function(x * 1.0, w, EPS) for x, w in made[first::2]]

        with ThreadPoolExecutor(2) as pool:
            outputs = list(pool.map(work, range(2)))
        torch.npu.synchronize()
        for first in range(2):
            for y, (x, w) in zip(outputs[first], made[first::2], strict=True):
                assert_norm(y, x, w, EPS, f"{pair}, thread {first}")


def arguments_may_be_freed_right_after_the_call(subject: Subject) -> None:
    """Poison takes the memory of each argument while its work is still queued."""
    for pair in subject.dtypes:
        for strided in (False, True):
            made = [draw_pair((8, 512), pair, seed) for seed in range(24)]
            torch.npu.synchronize()
            outputs = []
            for source, weight in made:
                x = (source * 1.0).t().contiguous().t() if strided else source * 1.0
                w = weight * 1.0
                outputs.append(subject.function(x, w, EPS))
                del x, w
                for _ in range(3):
                    torch.full_like(source, NAN)
                torch.full_like(weight, NAN)
            for y, (x, w) in zip(outputs, made, strict=True):
                assert_norm(y, x, w, EPS, f"{pair} strided={strided}")


def copies_of_strided_arguments_stay_apart(subject: Subject) -> None:
    """The stream has no free memory to begin with: a copy given back early is the next one's."""
    for dtype, weight_dtype in subject.dtypes:
        x = draw((128, 24), dtype).npu().t()
        w = draw((256,), weight_dtype).npu()[::2]
        torch.npu.synchronize()
        torch.npu.empty_cache()
        side = torch.npu.Stream()
        with torch.npu.stream(side):
            y = subject.function(x, w, EPS)
        side.synchronize()
        assert_norm(y, x, w, EPS, f"{dtype}")


def recorded_arguments_may_be_freed_early(subject: Subject) -> None:
    """A side stream reads what the default stream made and gives back; record_stream keeps it."""
    side = torch.npu.Stream()
    for pair in subject.dtypes:
        made = [draw_pair((8, 512), pair, seed) for seed in range(24)]
        torch.npu.synchronize()
        outputs = []
        for source, w in made:
            x = source * 1.0
            side.wait_stream(torch.npu.current_stream())
            with torch.npu.stream(side):
                outputs.append(subject.function(x, w, EPS))
            x.record_stream(side)
            del x
            torch.full_like(source, NAN)
        torch.npu.synchronize()
        for y, (x, w) in zip(outputs, made, strict=True):
            assert_norm(y, x, w, EPS, f"{pair}")


def unrecorded_arguments_may_be_freed_early(subject: Subject) -> None:
    """As above, but nobody records: for an implementation that does so itself."""
    side = torch.npu.Stream()
    for pair in subject.dtypes:
        made = [draw_pair((8, 512), pair, seed) for seed in range(24)]
        torch.npu.synchronize()
        outputs = []
        for source, weight in made:
            x, w = source * 1.0, weight * 1.0
            side.wait_stream(torch.npu.current_stream())
            with torch.npu.stream(side):
                outputs.append(subject.function(x, w, EPS))
            del x, w
            torch.full_like(source, NAN)
            torch.full_like(weight, NAN)
        torch.npu.synchronize()
        for y, (x, w) in zip(outputs, made, strict=True):
            assert_norm(y, x, w, EPS, f"{pair}")


def memory_stays_over_1000_calls(subject: Subject) -> None:
    """In bursts, each of which may have no more in flight than was held once before."""
    dtype, weight_dtype = subject.dtypes[0]
    inputs = dict(layouts(dtype))
    for name in ("contiguous", "columns of a wider buffer", "transposed"):
        x = inputs[name]
        w = draw(x.shape[-1:], weight_dtype).npu()
        held = [subject.function(x, w, EPS) for _ in range(3 * BURST)]
        del held
        before = MemoryUse.now()
        for _ in range(1000 // BURST):
            for _ in range(BURST):
                subject.function(x, w, EPS)
            before.assert_no_growth(name)


def fakes_agree_with_outputs(subject: Subject) -> None:
    """Shape, dtype, device; strides for dense inputs, of which the vendor's fake knows more."""
    for dtype, weight_dtype in subject.dtypes:
        for shape in (*SHAPES, (0, 64), (5, 7, 64)):
            x = torch.zeros(shape, dtype=dtype, device="npu")
            y = subject.function(x, torch.ones(shape[-1], dtype=weight_dtype, device="npu"), EPS)
            with FakeTensorMode() as mode:
                fake = subject.function(
                    mode.from_tensor(x),
                    torch.empty(shape[-1], dtype=weight_dtype, device="npu"),
                    EPS,
                )
            assert (fake.shape, fake.dtype, fake.device) == (y.shape, y.dtype, y.device)
            assert fake.stride() == y.stride()


def compiled_calls_equal_eager_ones(subject: Subject) -> None:
    def twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return subject.function(subject.function(x, w, EPS) * 2.0, w, EPS)

    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        compiled = torch.compile(twice, backend=backend, fullgraph=True)
        for pair in subject.dtypes:
            x, w = draw_pair((16, 512), pair)
            assert torch.equal(bits(compiled(x, w)), bits(twice(x, w))), f"{backend} {pair}"


EAGER: tuple[Callable[[Subject], None], ...] = (
    values_of_every_dtype_and_shape,
    values_of_every_layout,
    values_of_strided_weights,
    empty_rows_give_an_empty_output,
    eps_counts,
    a_call_follows_queued_work,
    a_call_runs_on_the_callers_stream,
    calls_on_alternating_streams_stay_apart,
    calls_from_two_threads_stay_apart,
    arguments_may_be_freed_right_after_the_call,
    copies_of_strided_arguments_stay_apart,
    recorded_arguments_may_be_freed_early,
    memory_stays_over_1000_calls,
    fakes_agree_with_outputs,
    compiled_calls_equal_eager_ones,
)


def a_call_on_another_device_leaves_the_current_one(subject: Subject, other: str) -> None:
    """Also on a side stream of that device, and after a refusal."""
    for pair in subject.dtypes:
        x, w = draw_pair((64, 512), pair, device=other)
        side = torch.npu.Stream(device=other)
        torch.npu.synchronize(other)
        assert torch.npu.current_device() == 0
        assert_norm(subject.function(x, w, EPS), x, w, EPS, f"{pair}")
        assert torch.npu.current_device() == 0
        with torch.npu.stream(side), torch.npu.device(0):
            late = torch.full_like(x, NAN)
            for _ in range(BACKLOG):
                late.mul_(1.0)
            late.copy_(x)
            y = subject.function(late, w, EPS)
            assert torch.npu.current_device() == 0
        torch.npu.synchronize(other)
        assert_norm(y, x, w, EPS, f"{pair}, on a side stream")


def an_unsupported_processor_is_refused(subject: Subject) -> None:
    """Of a device for which the launchers have no kernels: they would write nothing."""
    x, w = draw_pair((4, 128), subject.dtypes[0])
    with pytest.raises(RuntimeError, match="processor"):
        subject.function(x, w, EPS)
