"""The public operator and its torch solution: verdicts on every kind of argument, and values."""

from __future__ import annotations

import math
import types

import pytest
import torch

import xllm_kernel
from xllm_kernel.domain import TensorFacts
from xllm_kernel.errors import ConfigurationError, DomainError
from xllm_kernel.ops import rms_norm
from xllm_kernel.ops.rms_norm.domain import SIMD_DOMAIN, TORCH_DOMAIN
from xllm_kernel.registry import KernelRegistry

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
NAN, INF = math.nan, math.inf


@pytest.fixture
def bound(fresh: KernelRegistry):
    return xllm_kernel.initialize(device="cpu", overrides={"rms_norm": "torch"})["rms_norm"]


def _reference(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """The formula in float64 from the exact bits, with eps as float32 holds it."""
    eps32 = torch.tensor(eps, dtype=torch.float32).double()
    x, w = x.double(), w.double()
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps32) * w


def _assert_rounded_once(y: torch.Tensor, expected: torch.Tensor) -> None:
    """Allow half an ULP for the one rounding; float32 itself rounds about four times on the way."""
    ulps = 4.0 if y.dtype is torch.float32 else 0.51
    limits = torch.finfo(y.dtype)
    tolerance = ulps * limits.eps * expected.abs() + limits.smallest_normal
    assert bool(((y.double() - expected).abs() <= tolerance).all())


def test_before_initialize_says_what_to_call(fresh: KernelRegistry) -> None:
    with pytest.raises(ConfigurationError, match=r"rms_norm: .*xllm_kernel\.initialize\(device="):
        rms_norm(torch.ones(2, 4), torch.ones(4), 1e-6)
    with pytest.raises(ConfigurationError, match=r"xllm_kernel\.initialize"):
        xllm_kernel.prepare_rms_norm()


def test_prepare_returns_the_published_plan(bound) -> None:
    assert xllm_kernel.prepare_rms_norm() is bound
    assert isinstance(bound.function, types.FunctionType)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 5, 64), (129,), (4, 2048)])
def test_values_are_within_one_rounding_of_the_formula(bound, dtype, shape) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=generator).to(dtype)
    w = torch.randn(shape[-1], generator=generator).to(dtype)
    y = rms_norm(x, w, 1e-6)
    assert (y.dtype, y.shape, y.is_contiguous()) == (dtype, x.shape, True)
    _assert_rounded_once(y, _reference(x, w, 1e-6))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 64), (2, 0, 64), (0, 1)])
def test_empty_rows_give_an_empty_output(bound, dtype, shape) -> None:
    y = rms_norm(torch.empty(shape, dtype=dtype), torch.ones(shape[-1], dtype=dtype), 1e-6)
    assert (y.shape, y.dtype) == (torch.Size(shape), dtype)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.repeat(1, 3)[:, 8:72],
        lambda x: x.t().contiguous().t(),
        lambda x: x[0].expand(5, 64),
        lambda x: x[::2],
        lambda x: torch.cat([x, x], 1).view(-1, 2, 64)[:, 1],
    ],
)
def test_views_are_read_where_they_lie(bound, make) -> None:
    x = make(torch.randn(6, 64, generator=torch.Generator().manual_seed(2)))
    before = x.clone()
    y = rms_norm(x, torch.ones(64), 1e-6)
    assert y.is_contiguous()
    _assert_rounded_once(y, _reference(before, torch.ones(64), 1e-6))
    assert torch.equal(x, before)
    assert y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


F32 = torch.float32
VERDICTS = [
    ("input.rank", torch.ones(()), torch.ones(1), 1e-6, "at least 1 dimension, got 0"),
    ("input.dtype", torch.ones(2, 4, dtype=torch.int32), torch.ones(4), 1e-6, "got int32"),
    ("input.dtype", torch.ones(2, 4, dtype=torch.float64), torch.ones(4), 1e-6, "got float64"),
    ("weight.rank", torch.ones(2, 4), torch.ones(1, 4), 1e-6, "exactly 1 dimension, got 2"),
    ("weight.rank", torch.ones(2, 4), torch.ones(()), 1e-6, "exactly 1 dimension, got 0"),
    (
        "weight.dtype",
        torch.ones(2, 4, dtype=torch.bfloat16),
        torch.ones(4, dtype=torch.float16),
        1e-6,
        "weight.dtype must be float32 or equal input.dtype (bfloat16), got float16",
    ),
    ("input.width", torch.ones(2, 0), torch.ones(0), 1e-6, "must be at least 1, got 0"),
    (
        "weight.width",
        torch.ones(2, 4096),
        torch.ones(2048),
        1e-6,
        "weight.shape[0] must equal input.shape[-1] (4096), got 2048",
    ),
    ("input.device", torch.ones(2, 4, device="meta"), torch.ones(4), 1e-6, "cpu, got meta"),
    ("weight.device", torch.ones(2, 4), torch.ones(4, device="meta"), 1e-6, "(cpu), got meta"),
    ("eps", torch.ones(2, 4), torch.ones(4), -1e-6, "eps must be finite, at least 0"),
    ("eps", torch.ones(2, 4), torch.ones(4), NAN, "got nan"),
    ("eps", torch.ones(2, 4), torch.ones(4), INF, "got inf"),
    ("eps", torch.ones(2, 4), torch.ones(4), 1e39, "got 1e+39"),
]


@pytest.mark.parametrize(("clause", "x", "w", "eps", "seen"), VERDICTS)
def test_arguments_outside_the_domain_name_the_clause(bound, clause, x, w, eps, seen) -> None:
    with pytest.raises(DomainError) as caught:
        rms_norm(x, w, eps)
    assert caught.value.clause == clause
    assert str(caught.value).startswith("rms_norm [cpu.torch.rms_norm]: ")
    assert seen in str(caught.value)
    assert f"(clause {clause})" in str(caught.value)
    for domain in (TORCH_DOMAIN, SIMD_DOMAIN):
        facts = {"input": TensorFacts.of(x), "weight": TensorFacts.of(w), "eps": eps}
        assert domain.violation(facts).clause == clause


@pytest.mark.parametrize(
    ("x", "w", "eps", "clause"),
    [
        (None, torch.ones(4), 1e-6, "input.type"),
        (torch.ones(2, 4), None, 1e-6, "weight.type"),
        (torch.ones(2, 4), torch.ones(4), None, "eps.type"),
        (torch.ones(2, 4), torch.ones(4), "1e-6", "eps.type"),
    ],
)
def test_missing_arguments_name_the_clause(bound, x, w, eps, clause) -> None:
    with pytest.raises(DomainError) as caught:
        rms_norm(x, w, eps)
    assert caught.value.clause == clause


def test_the_quick_yes_of_the_torch_solution_never_contradicts_the_clauses(bound) -> None:
    from xllm_kernel.ops.rms_norm.torch import _plainly_inside

    for clause, x, w, eps, _ in VERDICTS:
        assert not _plainly_inside(x, w, eps), clause
    assert _plainly_inside(torch.ones(2, 4), torch.nn.Parameter(torch.ones(4)), 1e-6)
    assert _plainly_inside(torch.ones(2, 4).half(), torch.ones(4), 1e-6)


def test_simd_domain_adds_the_stride_clauses() -> None:
    wide = torch.empty(8, 16)
    cases = {
        "input.stride": (wide.t(), torch.ones(8)),
        "weight.stride": (wide, torch.ones(32)[::2]),
    }
    for clause, (x, w) in cases.items():
        facts = {"input": TensorFacts.of(x), "weight": TensorFacts.of(w), "eps": 1e-6}
        assert TORCH_DOMAIN.violation(facts) is None
        assert SIMD_DOMAIN.violation(facts).clause == clause
