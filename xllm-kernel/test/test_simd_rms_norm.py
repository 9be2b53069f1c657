"""cpu.simd.rms_norm through its torch operator: verdicts, fakes, views, and the promised bits."""

from __future__ import annotations

import importlib.util
import math
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from conftest import need_native
from torch._subclasses.fake_tensor import FakeTensorMode

import xllm_kernel
from xllm_kernel import fastcall
from xllm_kernel.errors import DomainError
from xllm_kernel.ops.rms_norm.domain import SIMD_DOMAIN
from xllm_kernel.registry import KernelRegistry, PreparedKernel

need_native()

NAME = "cpu.simd.rms_norm"
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
Arguments = tuple[torch.Tensor, torch.Tensor, float]


@pytest.fixture
def plan(fresh: KernelRegistry) -> PreparedKernel:
    return xllm_kernel.initialize(device="cpu", overrides={"rms_norm": NAME})["rms_norm"]


@pytest.fixture
def overload(plan: PreparedKernel) -> Callable[..., torch.Tensor]:
    return torch.ops.xllm_kernel.simd_rms_norm.default


@pytest.fixture(params=["bound", "operator"])
def op(
    request: pytest.FixtureRequest, plan: PreparedKernel, overload: Callable[..., torch.Tensor]
) -> Callable[..., torch.Tensor]:
    """What a model holds, and the operator itself: where a builtin was built they differ."""
    return plan.function if request.param == "bound" else overload


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def _random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.int32 if tensor.dtype is torch.float32 else torch.int16)


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(_bits(a), _bits(b))


def test_plan_function_is_the_operator_or_its_builtin(
    plan: PreparedKernel, overload: Callable[..., torch.Tensor]
) -> None:
    built = importlib.util.find_spec("xllm_kernel._build.fastcall") is not None
    assert plan.function is (fastcall.bind(overload) if built else overload)
    assert getattr(plan.function, "__self__", overload) is overload
    assert plan.spec.priority == 10
    assert plan.spec.domain is SIMD_DOMAIN


def test_profiler_counts_the_calls(op: Callable[..., torch.Tensor]) -> None:
    x, w = _random(4, 64), _random(64)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(5):
            op(x, w, 1e-6)
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["xllm_kernel::simd_rms_norm"] == 5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (129,), (3, 7), (2, 5, 64), (2, 3, 4, 100), (300, 513)])
def test_values_within_one_rounding_of_the_formula(
    op: Callable[..., torch.Tensor], dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    x, w = _random(*shape, dtype=dtype, seed=1), _random(shape[-1], dtype=dtype, seed=2)
    y = op(x, w, 1e-6)
    eps = torch.tensor(1e-6).double()
    x64, w64 = x.double(), w.double()
    expected = x64 / torch.sqrt((x64 * x64).mean(-1, keepdim=True) + eps) * w64
    # Half an ULP for the one rounding; float32 itself: root, reciprocal, two products, and half of
    # what 64 lanes of at most 9 additions and their tree lose.
    ulps = 10.0 if dtype is torch.float32 else 0.51
    allowed = ulps * torch.finfo(dtype).eps * expected.abs() + torch.finfo(dtype).smallest_normal
    assert bool(((y.double() - expected).abs() <= allowed).all())


# ---------------------------------------------------------------- inside the domain


def _expanded() -> torch.Tensor:
    return _random(1, 40).expand(5, 40)


INSIDE: dict[str, Callable[[], Arguments]] = {
    "dense": lambda: (_random(3, 40), _random(40), 1e-6),
    "one row": lambda: (_random(40), _random(40), 1e-6),
    "no rows": lambda: (_random(0, 40), _random(40), 1e-6),
    "no rows inside": lambda: (_random(3, 0, 2, 40), _random(40), 1e-6),
    "float16": lambda: (_random(3, 40).half(), _random(40).half(), 1e-6),
    "bfloat16": lambda: (_random(3, 40).bfloat16(), _random(40).bfloat16(), 1e-6),
    "row slice": lambda: (_random(5, 120)[:, 40:80], _random(40), 1e-6),
    "latent view": lambda: (_random(17, 576)[:, :512], _random(512), 1e-6),
    "split qkv": lambda: (_random(6, 3 * 80).split(80, 1)[1].view(6, 2, 40), _random(40), 1e-6),
    "transposed leading": lambda: (_random(3, 5, 40).transpose(0, 1), _random(40), 1e-6),
    "permuted leading": lambda: (_random(2, 3, 4, 40).permute(2, 0, 1, 3), _random(40), 1e-6),
    "expanded": lambda: (_expanded(), _random(40), 1e-6),
    "expanded twice": lambda: (_random(40).expand(4, 5, 40), _random(40), 1e-6),
    "every other row": lambda: (_random(10, 40)[::2], _random(40), 1e-6),
    "overlapping rows": lambda: (_random(60).as_strided((4, 40), (3, 1)), _random(40), 1e-6),
    "odd offset": lambda: (_random(401)[1:].view(10, 40), _random(41)[1:], 1e-6),
    "odd offset, 16 bits": lambda: (
        _random(401).half()[1:].view(10, 40),
        _random(41).half()[1:],
        1e-6,
    ),
    "huge stride of one row": lambda: (
        _random(40).as_strided((1, 40), (2**61, 1)),
        _random(40),
        1e-6,
    ),
    "width 1, stride 7": lambda: (_random(5, 7)[:, :1].transpose(0, 1)[:, :1], _random(1), 1e-6),
    "weight of one, stride 3": lambda: (_random(5, 1), _random(7)[::7], 1e-6),
    "many dimensions": lambda: (_random(*[1] * 69, 2, 40), _random(40), 1e-6),
    "eps 0": lambda: (_random(3, 40), _random(40), 0.0),
    "eps -0": lambda: (_random(3, 40), _random(40), -0.0),
    "eps integer": lambda: (_random(3, 40), _random(40), 1),
    "eps below float32": lambda: (_random(3, 40), _random(40), 1e-60),
    "eps largest": lambda: (_random(3, 40), _random(40), torch.finfo(torch.float32).max),
}


@pytest.mark.parametrize("case", INSIDE)
def test_inside_the_domain_as_the_dense_copy(op: Callable[..., torch.Tensor], case: str) -> None:
    x, w, eps = INSIDE[case]()
    before = x.clone(), w.clone()
    SIMD_DOMAIN.check(NAME, input=x, weight=w, eps=eps)
    y = op(x, w, eps)
    assert _same_bits(y, op(x.contiguous(), w.contiguous(), eps))
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    assert y.is_contiguous()
    assert _same_bits(x, before[0])
    assert _same_bits(w, before[1])


@pytest.mark.parametrize("case", INSIDE)
def test_fake_agrees_with_real(op: Callable[..., torch.Tensor], case: str) -> None:
    x, w, eps = INSIDE[case]()
    real = op(x, w, eps)
    with FakeTensorMode() as mode:
        fake = op(mode.from_tensor(x), weight=mode.from_tensor(w), eps=eps)
    assert (fake.shape, fake.dtype, fake.device) == (real.shape, real.dtype, real.device)
    assert fake.stride() == real.stride()


def test_arguments_positional_and_by_keyword_same_bits(op: Callable[..., torch.Tensor]) -> None:
    x, w = _random(3, 40), _random(40)
    one = op(x, w, 1e-6)
    assert _same_bits(one, op(input=x, weight=w, eps=1e-6))
    assert _same_bits(one, op(x, eps=1e-6, weight=w))


@pytest.mark.parametrize("missing", ["input", "weight"])
def test_none_in_place_of_a_tensor_names_the_argument(
    op: Callable[..., torch.Tensor], missing: str
) -> None:
    arguments = {"input": torch.ones(2, 4), "weight": torch.ones(4), "eps": 1e-6}
    with pytest.raises(RuntimeError, match=rf"{missing} must be a tensor, got NoneType \(clause"):
        op(**(arguments | {missing: None}))


def test_output_fresh_every_time(op: Callable[..., torch.Tensor]) -> None:
    x, w = _random(3, 1), _random(1)
    outputs = [op(x, w, 1e-6) for _ in range(100)]
    addresses = {tensor.untyped_storage().data_ptr() for tensor in (x, w, *outputs)}
    assert len(addresses) == 102


# ---------------------------------------------------------------- outside the domain

OUTSIDE: dict[str, tuple[str, Callable[[], Arguments]]] = {
    "0-d": ("input.rank", lambda: (torch.tensor(1.0), _random(1), 1e-6)),
    "int64": ("input.dtype", lambda: (torch.ones(3, 4, dtype=torch.int64), _random(4), 1e-6)),
    "float64": ("input.dtype", lambda: (_random(3, 4).double(), _random(4).double(), 1e-6)),
    "weight 0-d": ("weight.rank", lambda: (_random(3, 1), torch.tensor(1.0), 1e-6)),
    "weight 2-d": ("weight.rank", lambda: (_random(3, 4), _random(1, 4), 1e-6)),
    "weight narrower type": ("weight.dtype", lambda: (_random(3, 4), _random(4).half(), 1e-6)),
    "weight other half": (
        "weight.dtype",
        lambda: (_random(3, 4).half(), _random(4).bfloat16(), 1e-6),
    ),
    "width 0": ("input.width", lambda: (_random(3, 0), _random(0), 1e-6)),
    "width 0, no rows": ("input.width", lambda: (_random(0, 0), _random(0), 1e-6)),
    "weight short": ("weight.width", lambda: (_random(3, 4096), _random(2048), 1e-6)),
    "weight of one": ("weight.width", lambda: (_random(3, 4), _random(1), 1e-6)),
    "weight short, no rows": ("weight.width", lambda: (_random(0, 4), _random(5), 1e-6)),
    "transposed": ("input.stride", lambda: (_random(4, 3).t(), _random(4), 1e-6)),
    "every other column": ("input.stride", lambda: (_random(3, 8)[:, ::2], _random(4), 1e-6)),
    "expanded columns": ("input.stride", lambda: (_random(3, 1).expand(3, 4), _random(4), 1e-6)),
    "every other column, no rows": (
        "input.stride",
        lambda: (_random(8).as_strided((0, 4), (8, 2)), _random(4), 1e-6),
    ),
    "weight strided": ("weight.stride", lambda: (_random(3, 4), _random(8)[::2], 1e-6)),
    "weight expanded": ("weight.stride", lambda: (_random(3, 4), _random(1).expand(4), 1e-6)),
    "eps negative": ("eps", lambda: (_random(3, 4), _random(4), -1e-6)),
    "eps negative, no rows": ("eps", lambda: (_random(0, 4), _random(4), -1.0)),
    "eps nan": ("eps", lambda: (_random(3, 4), _random(4), math.nan)),
    "eps -nan": ("eps", lambda: (_random(3, 4), _random(4), -math.nan)),
    "eps inf": ("eps", lambda: (_random(3, 4), _random(4), math.inf)),
    "eps -inf": ("eps", lambda: (_random(3, 4), _random(4), -math.inf)),
    "eps over float32": ("eps", lambda: (_random(3, 4), _random(4), 3.5e38)),
    "eps tiny negative": ("eps", lambda: (_random(3, 4), _random(4), -5e-324)),
    # Several clauses at once: the first counts.
    "rank before dtype": ("input.rank", lambda: (torch.tensor(1), _random(2, 2), -1.0)),
    "dtype before weight": ("input.dtype", lambda: (_random(3, 4).int(), _random(2, 2), -1.0)),
    "weight rank before dtype": (
        "weight.rank",
        lambda: (_random(3, 4).half(), _random(2, 2), -1.0),
    ),
    "weight dtype before width": ("weight.dtype", lambda: (_random(3, 0), _random(4).half(), -1.0)),
    "width before stride": ("weight.width", lambda: (_random(4, 3).t(), _random(6)[::2], -1.0)),
    "stride before eps": ("input.stride", lambda: (_random(4, 3).t(), _random(8)[::2], -1.0)),
    "weight stride before eps": ("weight.stride", lambda: (_random(3, 4), _random(8)[::2], -1.0)),
}


def _domain_error(arguments: Arguments) -> DomainError:
    x, w, eps = arguments
    with pytest.raises(DomainError) as caught:
        SIMD_DOMAIN.check(NAME, input=x, weight=w, eps=eps)
    return caught.value


def _bridge_message(op: Callable[..., torch.Tensor], arguments: Arguments) -> str:
    with pytest.raises(RuntimeError) as caught:
        op(*arguments)
    assert type(caught.value) is RuntimeError
    return str(caught.value)


@pytest.mark.parametrize("case", OUTSIDE)
def test_bridge_refuses_in_the_domains_words(op: Callable[..., torch.Tensor], case: str) -> None:
    clause, make = OUTSIDE[case]
    expected = _domain_error(make())
    assert expected.clause == clause
    assert _bridge_message(op, make()) == str(expected)


@pytest.mark.parametrize("case", OUTSIDE)
def test_fake_refuses_in_the_domains_words(op: Callable[..., torch.Tensor], case: str) -> None:
    x, w, eps = OUTSIDE[case][1]()
    with FakeTensorMode() as mode, pytest.raises(DomainError) as caught:
        op(mode.from_tensor(x), mode.from_tensor(w), eps)
    assert str(caught.value) == str(_domain_error((x, w, eps)))


@pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:torch.quantize_per_tensor")
def test_every_other_dtype_refused_by_its_name(op: Callable[..., torch.Tensor]) -> None:
    tried = 0
    for dtype in sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str):
        if dtype in DTYPES:
            continue
        try:
            x = torch.empty(2, 4, dtype=dtype)
        except (RuntimeError, NotImplementedError):
            continue  # torch itself has no such tensor
        weight = torch.empty(4, dtype=dtype)
        assert _bridge_message(op, (x, weight, 1e-6)) == str(_domain_error((x, weight, 1e-6)))
        mixed = _random(2, 4), weight, 1e-6
        assert _bridge_message(op, mixed) == str(_domain_error(mixed))
        tried += 1
    assert tried >= 20


@pytest.mark.parametrize("where", ["input", "weight", "both"])
def test_other_device_refused_by_its_name(op: Callable[..., torch.Tensor], where: str) -> None:
    x = _random(3, 4).to("meta" if where in ("input", "both") else "cpu")
    w = _random(4).to("meta" if where in ("weight", "both") else "cpu")
    with pytest.raises(DomainError) as caught:
        op(x, w, 1e-6)
    assert str(caught.value) == str(_domain_error((x, w, 1e-6)))


def test_other_device_refused_by_the_bridge_in_the_same_words(
    plan: PreparedKernel, run_python: Callable[..., object]
) -> None:
    """Without the fake, which answers for meta tensors once registered."""
    from xllm_kernel._build import simd

    library = f"{simd.__file__.rpartition('/')[0]}/{simd.MANIFEST['library']}"
    code = (
        f"import torch; torch.ops.load_library({library!r})\n"
        "op = torch.ops.xllm_kernel.simd_rms_norm.default\n"
        "for a, b in (('meta', 'meta'), ('meta', 'cpu'), ('cpu', 'meta')):\n"
        "    try: op(torch.ones(3, 4, device=a), torch.ones(4, device=b), 1e-6)\n"
        "    except RuntimeError as error: print(error)\n"
    )
    done = run_python("-c", code)
    expected = [
        str(_domain_error((torch.ones(3, 4, device=a), torch.ones(4, device=b), 1e-6)))
        for a, b in (("meta", "meta"), ("meta", "cpu"), ("cpu", "meta"))
    ]
    assert done.stdout.splitlines() == expected  # type: ignore[attr-defined]


def test_refusal_carries_neither_backtrace_nor_path(op: Callable[..., torch.Tensor]) -> None:
    message = _bridge_message(op, (_random(3, 4096), _random(2048), 1e-6))
    assert message == (
        "rms_norm [cpu.simd.rms_norm]: weight.shape[0] must equal input.shape[-1] (4096), got 2048 "
        "(clause weight.width)"
    )


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("name", ["input", "weight"])
@pytest.mark.parametrize("leaf", [True, False])
def test_gradient_needed_refused_never_detached(
    op: Callable[..., torch.Tensor], name: str, leaf: bool
) -> None:
    tensors = {"input": _random(3, 4), "weight": _random(4)}
    tensors[name].requires_grad_()
    if not leaf:
        tensors[name] = tensors[name] * 2
    wanted = f"{name} must not require a gradient .*no_grad.*clause {name}.gradient"
    with pytest.raises(RuntimeError, match=wanted):
        op(**tensors, eps=1e-6)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = {k: mode.from_tensor(v) for k, v in tensors.items()}
        with pytest.raises(RuntimeError, match=wanted):
            op(**fakes, eps=1e-6)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradient_off_parameters_fine(
    op: Callable[..., torch.Tensor], mode: Callable[[], torch.no_grad]
) -> None:
    weight = torch.nn.Parameter(_random(40))
    with mode():
        y = op(_random(3, 40) + 0, weight, 1e-6)
    assert not y.requires_grad
    assert _same_bits(y, op(_random(3, 40), weight.detach(), 1e-6))


@pytest.mark.parametrize(
    "case", ["dense", "bfloat16", "row slice", "expanded", "no rows", "transposed leading"]
)
def test_opcheck_finds_nothing(overload: Callable[..., torch.Tensor], case: str) -> None:
    result = torch.library.opcheck(overload, INSIDE[case]())
    assert set(result.values()) == {"SUCCESS"}
    assert len(result) == 4


# ---------------------------------------------------------------- promised bits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 513])
def test_row_same_bits_alone_and_in_every_batch(
    op: Callable[..., torch.Tensor],
    threads: Callable[[int], None],
    dtype: torch.dtype,
    width: int,
) -> None:
    row, w = _random(width, dtype=dtype, seed=3), _random(width, dtype=dtype, seed=4)
    alone = op(row, w, 1e-6)
    for batch in (2, 255, 256, 257, 1000):
        x = _random(batch, width, dtype=dtype, seed=batch)
        for place in (0, batch // 2, batch - 1):
            x[place] = row
        for count in (1, 2, 4, 8):
            threads(count)
            y = op(x, w, 1e-6)
            for place in (0, batch // 2, batch - 1):
                assert _same_bits(y[place], alone), (batch, place, count)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeats_and_thread_counts_same_bits(
    op: Callable[..., torch.Tensor], threads: Callable[[int], None], dtype: torch.dtype
) -> None:
    x, w = _random(600, 513, dtype=dtype, seed=5), _random(513, dtype=dtype, seed=6)
    threads(1)
    first = op(x, w, 1e-6)
    for count in (1, 2, 3, 4, 8):
        threads(count)
        assert all(_same_bits(op(x, w, 1e-6), first) for _ in range(20)), count


@pytest.mark.parametrize("dtype", DTYPES)
def test_alignment_and_strides_same_bits(
    op: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    w = _random(200, dtype=dtype, seed=7)
    dense = _random(50, 200, dtype=dtype, seed=8)
    first = op(dense, w, 1e-6)
    for offset in range(33):
        for stride in (200, 201, 300):
            storage = torch.full((offset + 50 * stride,), math.nan, dtype=dtype)
            view = storage.as_strided((50, 200), (stride, 1), offset)
            view.copy_(dense)
            shifted = torch.cat([torch.zeros(offset, dtype=dtype), w])[offset:]
            assert _same_bits(op(view, shifted, 1e-6), first), (offset, stride)


def test_nan_row_leaves_the_other_rows_alone(op: Callable[..., torch.Tensor]) -> None:
    x, w = _random(200, 300, seed=9), _random(300, seed=10)
    clean = op(x, w, 1e-6)
    x[77, 123] = math.nan
    y = op(x, w, 1e-6)
    assert bool(y[77].isnan().all())
    assert set(_bits(y[77]).tolist()) == {0x7FC00000}
    assert _same_bits(y[:77], clean[:77])
    assert _same_bits(y[78:], clean[78:])


def test_infinity_own_element_nan_rest_zero(op: Callable[..., torch.Tensor]) -> None:
    x = _random(1, 40)
    x[0, 7] = -math.inf
    y = op(x, torch.ones(40), 1e-6)
    assert bool(y[0, 7].isnan())
    y[0, 7] = 0
    assert bool((y == 0).all())


def test_callers_threads_at_once_same_bits(op: Callable[..., torch.Tensor]) -> None:
    inputs = [_random(130, 513, seed=n) for n in range(8)]
    w = _random(513, seed=99)
    expected = [op(x, w, 1e-6) for x in inputs]
    wrong: list[int] = []

    def call(n: int) -> None:
        for _ in range(30):
            if not _same_bits(op(inputs[n], w, 1e-6), expected[n]):
                wrong.append(n)

    workers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_levels_same_bits(plan: PreparedKernel, run_python: Callable[..., object]) -> None:
    code = (
        "import hashlib, torch, xllm_kernel\n"
        "op = xllm_kernel.initialize(device='cpu')['rms_norm'].function\n"
        "print(torch.ops.xllm_kernel.simd_level())\n"
        "for dtype in (torch.float32, torch.float16, torch.bfloat16):\n"
        "    g = torch.Generator().manual_seed(1)\n"
        "    x = torch.randn(9, 777, generator=g).to(dtype)\n"
        "    w = torch.randn(777, generator=g).to(dtype)\n"
        "    y = op(x, w, 1e-6)\n"
        "    print(hashlib.sha256(bytes(y.view(torch.uint8).flatten().tolist())).hexdigest())\n"
    )
    from xllm_kernel._build import simd

    printed = {}
    for level in simd.MANIFEST["levels"]:
        done = run_python("-c", code, env={"XLLM_KERNEL_SIMD_LEVEL": level})
        if "processor or operating system lacks" in done.stderr:  # type: ignore[attr-defined]
            continue  # this machine cannot say anything about that level
        name, *digests = done.stdout.splitlines()  # type: ignore[attr-defined]
        assert name == level
        printed[level] = digests
    assert "scalar" in printed
    assert all(digests == printed["scalar"] for digests in printed.values())
