"""The guarded C builtin around cpu.simd.rms_norm: what it takes itself, and what it hands on."""

from __future__ import annotations

import gc
import importlib.util
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from fastcall_spy import Spy
from test_simd_rms_norm import DTYPES, INSIDE, NAME, OUTSIDE, _random, _same_bits
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import xllm_kernel
from xllm_kernel import fastcall
from xllm_kernel.registry import KernelRegistry

if importlib.util.find_spec("xllm_kernel._build.fastcall") is None:
    pytest.skip("builtins absent: ./dev build", allow_module_level=True)

Call = Callable[..., torch.Tensor]
OPERATOR = "xllm_kernel.simd_rms_norm.default"


@pytest.fixture
def bound(fresh: KernelRegistry) -> Call:
    function = xllm_kernel.initialize(device="cpu", overrides={"rms_norm": NAME})[
        "rms_norm"
    ].function
    assert isinstance(function, BuiltinFunctionType)
    return function


@pytest.fixture
def overload(bound: Call) -> Call:
    return torch.ops.xllm_kernel.simd_rms_norm.default


@pytest.fixture
def spy(bound: Call) -> Spy:
    return Spy("rms_norm")


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _pair(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    return _random(*shape, dtype=dtype, seed=1), _random(shape[-1], dtype=dtype, seed=2)


# ---------------------------------------------------------------- what is bound


def test_receipt_names_the_builtin_and_its_operator(bound: Call, overload: Call) -> None:
    assert bound.__self__ is overload  # type: ignore[attr-defined]
    entry = xllm_kernel.receipts()["rms_norm"].entry
    assert entry == (
        f"C builtin xllm_kernel._build.fastcall_native.simd_rms_norm over torch operator {OPERATOR}"
    )


def test_bound_again_the_same_builtin(bound: Call, overload: Call) -> None:
    assert fastcall.bind(overload) is bound


def test_operator_without_a_builtin_named(spy: Spy) -> None:
    from xllm_kernel._build import fastcall as marker

    native = fastcall._load(marker.MANIFEST, Path(marker.__file__).parent)
    with pytest.raises(LookupError, match="no builtin is named 'simd_nothing'"):
        native.bind("simd_nothing", spy)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- plain calls


@pytest.mark.parametrize("case", INSIDE)
def test_inside_the_domain_same_bits_as_the_operator(
    bound: Call, overload: Call, case: str
) -> None:
    x, w, eps = INSIDE[case]()
    ours, theirs = bound(x, w, eps), overload(x, w, eps)
    assert _same_bits(ours, theirs)
    assert (ours.stride(), ours.dtype, ours.device) == (
        theirs.stride(),
        theirs.dtype,
        theirs.device,
    )
    assert not ours.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(1,), (1, 512), (63, 513), (64, 512), (65, 512), (5, 7, 3, 400), (1, 40000), (700, 513)],
)
def test_shapes_around_the_grain_same_bits_as_the_operator(
    bound: Call, overload: Call, spy: Spy, dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x, w = _pair(*shape, dtype=dtype)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert _same_bits(bound(x, w, 1e-6), overload(x, w, 1e-6))
    finally:
        torch.set_num_threads(before)
    assert spy.takes(x, w, 1e-6)


@pytest.mark.parametrize("case", [c for c in INSIDE if c != "eps integer"])
def test_inside_the_domain_taken_without_the_operator(spy: Spy, case: str) -> None:
    assert spy.takes(*INSIDE[case]())


def test_integer_eps_handed_on(spy: Spy) -> None:
    assert not spy.takes(*INSIDE["eps integer"]())


def test_keywords_taken_in_every_order(spy: Spy) -> None:
    x, w = _pair(3, 40)
    expected = spy.builtin(x, w, 1e-6)
    for result in (
        spy.builtin(x, w, eps=1e-6),
        spy.builtin(x, eps=1e-6, weight=w),
        spy.builtin(eps=1e-6, input=x, weight=w),
    ):
        assert _same_bits(result, expected)
    assert spy.calls == 0
    made_at_run_time = {"".join(["e", "ps"]): 1e-6}
    assert _same_bits(spy.builtin(x, w, **made_at_run_time), expected)


# ---------------------------------------------------------------- errors: the operator's own


@pytest.mark.parametrize("case", OUTSIDE)
def test_outside_the_domain_the_operators_error(bound: Call, overload: Call, case: str) -> None:
    messages = []
    for function in (bound, overload):
        with pytest.raises(RuntimeError) as caught:
            function(*OUTSIDE[case][1]())
        assert type(caught.value) is RuntimeError
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert f"(clause {OUTSIDE[case][0]})" in messages[0]


WRONG_CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple[tuple, dict[str, Any]]]] = {
    "nothing": lambda x, w: ((), {}),
    "one": lambda x, w: ((x,), {}),
    "two": lambda x, w: ((x, w), {}),
    "four": lambda x, w: ((x, w, 1e-6, 1), {}),
    "nine": lambda x, w: ((x, w, 1e-6, 1, 2, 3, 4, 5, 6), {}),
    "unknown keyword": lambda x, w: ((x, w), {"epsilon": 1e-6}),
    "keyword too many": lambda x, w: ((x, w, 1e-6), {"out": x}),
    "given twice": lambda x, w: ((x, w), {"input": x}),
    "given twice, complete": lambda x, w: ((x, w, 1e-6), {"input": x}),
    "input None": lambda x, w: ((None, w, 1e-6), {}),
    "input a list": lambda x, w: (([1.0], w, 1e-6), {}),
    "weight a float": lambda x, w: ((x, 1.0, 1e-6), {}),
    "eps None": lambda x, w: ((x, w, None), {}),
    "eps a string": lambda x, w: ((x, w, "1e-6"), {}),
    "eps complex": lambda x, w: ((x, w, 1j), {}),
    "eps beyond every float": lambda x, w: ((x, w, 10**400), {}),
    "eps a tensor that needs a gradient": lambda x, w: (
        (x, w, torch.ones(2, requires_grad=True)),
        {},
    ),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls_the_operators_error(bound: Call, overload: Call, case: str) -> None:
    arguments, keywords = WRONG_CALLS[case](*_pair(3, 4))
    caught = []
    for function in (bound, overload):
        with pytest.raises(Exception) as error:
            function(*arguments, **keywords)
        caught.append((type(error.value), str(error.value)))
    assert caught[0] == caught[1]


def test_freed_storage_the_operators_error(bound: Call, overload: Call) -> None:
    x, w = _pair(3, 4)
    x.untyped_storage().resize_(0)
    for function in (bound, overload):
        with pytest.raises(RuntimeError, match=r"must not be null \(clause kernel\)"):
            function(x, w, 1e-6)


@pytest.mark.parametrize("name", ["input", "weight"])
@pytest.mark.parametrize("leaf", [True, False])
def test_gradient_needed_refused_never_detached(bound: Call, name: str, leaf: bool) -> None:
    tensors = dict(zip(("input", "weight"), _pair(3, 4), strict=True))
    tensors[name].requires_grad_()
    if not leaf:
        tensors[name] = tensors[name] * 2
    with pytest.raises(RuntimeError, match=rf"clause {name}\.gradient"):
        bound(**tensors, eps=1e-6)
    with torch.no_grad():
        assert not bound(**tensors, eps=1e-6).requires_grad


def test_parameter_taken_where_no_gradient_is_needed(spy: Spy) -> None:
    x, w = _pair(3, 40)
    trained, fixed = torch.nn.Parameter(w), torch.nn.Parameter(w, requires_grad=False)
    assert spy.takes(x, fixed, 1e-6)
    with torch.no_grad():
        assert spy.takes(x, trained, 1e-6)
        assert spy.takes(torch.nn.Parameter(x), trained, 1e-6)
    with torch.inference_mode():
        assert spy.takes(x, trained, 1e-6)


def test_inference_mode_taken_and_its_output_an_inference_tensor(spy: Spy) -> None:
    x, w = _pair(3, 40)
    with torch.inference_mode():
        inside = spy.builtin(x, w, 1e-6)
        inference_x = x.clone()
        again = spy.builtin(inference_x, w, 1e-6)
    assert inside.is_inference()
    assert again.is_inference()
    outside = spy.builtin(inference_x, w, 1e-6)
    assert not outside.is_inference()
    assert spy.calls == 0
    assert _same_bits(inside, outside)


# ---------------------------------------------------------------- handed on to the operator


class PlainSubclass(torch.Tensor):
    pass


class Recorder(torch.Tensor):
    """A subclass that answers for every function."""

    seen: list[object] = []  # noqa: RUF012 (emptied by the test)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})


def test_subclass_handed_on_and_kept(spy: Spy, bound: Call) -> None:
    x, w = _pair(3, 40)
    expected = bound(x, w, 1e-6)
    for arguments in ((x.as_subclass(PlainSubclass), w), (x, w.as_subclass(PlainSubclass))):
        result = bound(*arguments, 1e-6)
        assert type(result) is PlainSubclass
        assert _same_bits(result.as_subclass(torch.Tensor), expected)
        assert not spy.takes(*arguments, 1e-6)


def test_subclass_with_torch_function_asked(bound: Call, overload: Call) -> None:
    x, w = _pair(3, 40)
    Recorder.seen.clear()
    result = bound(x.as_subclass(Recorder), w, 1e-6)
    assert overload in Recorder.seen
    assert type(result) is Recorder


class FunctionRecorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


class DispatchRecorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [FunctionRecorder, DispatchRecorder])
def test_modes_see_the_operator(bound: Call, overload: Call, mode: type) -> None:
    x, w = _pair(3, 40)
    expected = bound(x, w, 1e-6)
    with mode() as recorder:
        bound(x, w, eps=1e-6)
        result = bound(x, w, 1e-6)
    assert recorder.seen.count(overload) == 2
    assert _same_bits(result, expected)


HANDED_ON: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default device": lambda: torch.device("cpu"),
    "function mode": FunctionRecorder,
    "dispatch mode": DispatchRecorder,
    "profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    "python dispatcher": lambda: torch._dispatch.python.enable_python_dispatcher(),
}


@pytest.mark.parametrize("case", HANDED_ON)
def test_thread_with_a_mode_handed_on_same_bits(spy: Spy, case: str) -> None:
    x, w = _pair(3, 40)
    expected = spy.builtin(x, w, 1e-6)
    assert spy.takes(x, w, 1e-6)
    with HANDED_ON[case]():
        before = spy.calls
        result = spy.builtin(x, w, 1e-6)
        assert spy.calls == before + 1
    assert _same_bits(result, expected)
    assert spy.takes(x, w, 1e-6)  # and afterwards it works itself again


@pytest.mark.parametrize("mode", [nullcontext, torch.no_grad, torch.inference_mode])
def test_thread_without_a_mode_taken(spy: Spy, mode: Callable[[], Any]) -> None:
    with mode():
        assert spy.takes(*_pair(3, 40), 1e-6)


def test_negative_view_handed_on_with_its_sign(bound: Call, spy: Spy) -> None:
    x, w = _pair(3, 40)
    assert _same_bits(bound(torch._neg_view(x), w, 1e-6), bound(-x, w, 1e-6))
    assert not spy.takes(torch._neg_view(x), w, 1e-6)


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_mkldnn])
def test_other_layouts_the_operators_error(
    bound: Call, overload: Call, convert: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    x, w = _pair(3, 4)
    other, messages = convert(x), []
    for function in (bound, overload):
        with pytest.raises(RuntimeError) as caught:
            function(other, w, 1e-6)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_meta_tensors_the_named_error(bound: Call) -> None:
    x, w = _pair(3, 4)
    with pytest.raises(RuntimeError, match=r"must be on device cpu, got meta \(clause input"):
        bound(x.to("meta"), w.to("meta"), 1e-6)


def test_fake_tensors_shape_and_no_data(bound: Call) -> None:
    x, w = _pair(3, 5, 40)
    with FakeTensorMode() as mode:
        fake = bound(mode.from_tensor(x), mode.from_tensor(w), 1e-6)
    assert type(fake).__name__ == "FakeTensor"
    assert (fake.shape, fake.stride(), fake.dtype) == (x.shape, (200, 40, 1), x.dtype)


def test_fake_tensors_after_their_mode_handed_on(spy: Spy) -> None:
    mode = FakeTensorMode()
    x, w = (mode.from_tensor(t) for t in _pair(3, 40))
    assert not spy.takes(x, w, 1e-6)


def test_vmap_row_by_row(bound: Call) -> None:
    x, w = _pair(6, 40)
    mapped = torch.vmap(lambda row: bound(row, w, 1e-6))(x)
    assert _same_bits(mapped, bound(x, w, 1e-6))


def test_functionalised_same_bits(bound: Call) -> None:
    x, w = _pair(3, 40)
    expected = bound(x, w, 1e-6)
    assert _same_bits(torch.func.functionalize(lambda a: bound(a, w, 1e-6))(x), expected)
    wrapped = bound(torch._to_functional_tensor(x), torch._to_functional_tensor(w), 1e-6)
    torch._sync(wrapped)
    assert _same_bits(torch._from_functional_tensor(wrapped), expected)


def test_dual_tensor_handed_on_and_refused(spy: Spy) -> None:
    x, w = _pair(3, 40)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        for mode in (torch.enable_grad, torch.no_grad):
            with mode(), pytest.raises(RuntimeError, match=r"clause input\.tangent"):
                spy.builtin(dual, w, 1e-6)
    assert spy.calls == 2
    assert spy.takes(x, w, 1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_jit_trace_records_the_operator(bound: Call) -> None:
    x, w = _pair(3, 40)
    traced = torch.jit.trace(lambda a: bound(a, w, 1e-6), (x,))
    assert "xllm_kernel::simd_rms_norm" in str(traced.graph)
    other = _random(5, 40, seed=7)
    assert _same_bits(traced(other), bound(other, w, 1e-6))


# How the operator shows: while callbacks observe operators (torch.profiler, the autograd
# profiler, an execution trace), the builtin hands every call to the operator, whose dispatch they
# see. A profile therefore counts each call once, by the operator's name, and times the slower way.
def test_profiler_counts_every_call_and_only_in_its_own_time(bound: Call) -> None:
    x, w = _pair(3, 40)
    bound(x, w, 1e-6)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(61):
            bound(x, w, 1e-6)
    bound(x, w, 1e-6)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["xllm_kernel::simd_rms_norm"] == 61


# ---------------------------------------------------------------- traced


class Model(torch.nn.Module):
    """Holds the binding as a model does."""

    def __init__(self, norm: Call, width: int) -> None:
        super().__init__()
        self.norm = norm
        self.weight = torch.nn.Parameter(_random(width, seed=2), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + 1, self.weight, eps=1e-6) * 2


@pytest.fixture
def compile_anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("compile_anew")
@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_whole_the_operator_in_its_graph(
    bound: Call, overload: Call, dynamic: bool, backend: str
) -> None:
    graphs: list[torch.fx.GraphModule] = []

    def record(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    model = Model(bound, 40)
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=record)
    for rows in (3, 5, 9):
        x = _random(rows, 40, seed=rows)
        assert _same_bits(compiled(x), model(x))
    assert overload in {node.target for node in graphs[0].graph.nodes}
    if dynamic:
        assert len(graphs) == 1


@pytest.mark.usefixtures("compile_anew")
def test_compiled_by_inductor_same_bits(bound: Call) -> None:
    w = _random(40, seed=2)

    @partial(torch.compile, fullgraph=True)
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return bound(x, w, 1e-6)

    x = _random(3, 40)
    assert _same_bits(compiled(x), bound(x, w, 1e-6))


@pytest.mark.usefixtures("compile_anew")
def test_compiled_partial_of_the_binding(bound: Call) -> None:
    x, w = _pair(3, 40)
    norm = partial(bound, weight=w, eps=1e-6)
    compiled = torch.compile(lambda a: norm(a), fullgraph=True, backend="aot_eager")
    assert _same_bits(compiled(x), bound(x, w, 1e-6))


@pytest.mark.usefixtures("compile_anew")
@pytest.mark.parametrize("strict", [True, False])
def test_exported_the_operator_in_its_graph(bound: Call, overload: Call, strict: bool) -> None:
    model, x = Model(bound, 40), _random(3, 40)
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},), strict=strict)
    assert overload in {node.target for node in program.graph.nodes}
    for count in (3, 7):
        other = _random(count, 40, seed=count)
        assert _same_bits(program.module()(other), model(other))


# ---------------------------------------------------------------- threads, references, the GIL


@pytest.mark.parametrize("kind", ["plain", "keywords", "handed on", "refused"])
def test_references_stable(bound: Call, kind: str) -> None:
    x, w = _pair(1, 512)
    eps = float("1e-6")

    def call() -> None:
        if kind == "plain":
            bound(x, w, eps)
        elif kind == "keywords":
            bound(x, eps=eps, weight=w)
        elif kind == "handed on":
            bound(x, w, True)
        else:
            with pytest.raises(RuntimeError):
                bound(x, x, eps)

    def counts() -> tuple[int, ...]:
        return tuple(map(sys.getrefcount, (x, w, eps, bound, bound.__self__)))  # type: ignore[attr-defined]

    call()
    gc.collect()  # what earlier tests compiled may hold the binding
    before = counts()
    for _ in range(100_000 if kind in ("plain", "keywords") else 2_000):
        call()
    assert counts() == before


def test_outputs_freed(bound: Call) -> None:
    x, w = _pair(8, 4096)  # 128 KiB an output, below the grain
    large, narrow = _pair(16, 4096)

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(100):
        bound(x, w, 1e-6), bound(large, narrow, 1e-6)
    before = peak()
    for _ in range(2_000):
        bound(x, w, 1e-6), bound(large, narrow, 1e-6)
    # 750 MiB went through; what stays is the allocator's own slack.
    assert peak() - before < 64 * 1024


def test_eight_threads_at_once_same_bits(bound: Call, overload: Call) -> None:
    inputs = [_random(rows, 513, seed=rows) for rows in (1, 3, 63, 65, 130, 200, 2, 64)]
    w = _random(513, seed=99)
    expected = [overload(x, w, 1e-6) for x in inputs]
    start, wrong = threading.Barrier(8), []

    def call(n: int) -> None:
        start.wait()
        for round_ in range(100):
            place = (n + round_) % 8
            if not _same_bits(bound(inputs[place], w, 1e-6), expected[place]):
                wrong.append((n, place))

    workers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


class Counter:
    """Counts in a thread that runs only while others let go of the GIL."""

    def __enter__(self) -> Counter:
        self.count, self._stop, self._before = 0, False, sys.getswitchinterval()
        # Nobody is made to let go: what the counter gets, it was given.
        sys.setswitchinterval(1000.0)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        while self.count == 0:
            time.sleep(0.001)
        return self

    def _run(self) -> None:
        while not self._stop:
            self.count += 1
            time.sleep(0)

    def __exit__(self, *exception: object) -> None:
        sys.setswitchinterval(self._before)
        self._stop = True
        self._thread.join()


# An output is kept while the counter is read, for PyTorch lets go of the GIL when it frees one.
@pytest.mark.usefixtures("one_thread")
def test_long_kernel_lets_other_threads_run(bound: Call, spy: Spy) -> None:
    x, w = _pair(2048, 4096)
    assert spy.takes(x, w, 1e-6)
    with Counter() as counter:
        for _ in range(1000):  # a busy machine may need many
            before = counter.count
            kept = bound(x, w, 1e-6)
            if counter.count > before:
                break
            del kept
        assert counter.count > before


def test_short_kernel_keeps_the_gil(bound: Call) -> None:
    x, w = _pair(1, 512)
    with Counter() as counter:
        before = counter.count
        kept = [bound(x, w, 1e-6) for _ in range(2000)]
        assert counter.count == before
    assert len(kept) == 2000
