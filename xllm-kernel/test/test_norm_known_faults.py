"""What norms were publicly reported to get wrong in values and memory, asked of every form.

By every solution of the processor; verdicts on the same occasions are in test_domains_known_faults.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from conftest import need_native
from simd_family import ALL, DTYPES, Form, case, random, same_bits

import xllm_kernel
from xllm_kernel.numerics.storage import overlap
from xllm_kernel.numerics.ulp import format_of, ulp_error
from xllm_kernel.registry import KernelRegistry

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Norm:
    """One form of the norm, by one solution.

    Attributes:
        solution: by whom it is.
        form: names its arguments and those that it writes.
        call: what a model holds.
    """

    solution: str
    form: Form
    call: Callable[..., Any]

    def run(self, given: dict[str, Any]) -> torch.Tensor:
        """Call it with what it takes of a case and return the norm, wherever that stands."""
        made = self.call(**self.form.pick(given))
        if isinstance(made, torch.Tensor):
            return made
        norm: torch.Tensor = given[self.form.writes[0]] if made is None else made[0]
        return norm

    def of(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return the norm of some rows, which stay as they are: with a residual of zeros."""
        given = {"input": x.clone(), "residual": torch.zeros_like(x)}
        given |= {"output": torch.full_like(x, NAN), "weight": weight, "eps": eps}
        return self.run(given)


@pytest.fixture(params=[f"{solution}.{name}" for solution in ("torch", "simd") for name in ALL])
def norm(request: pytest.FixtureRequest, fresh: KernelRegistry) -> Norm:
    solution, _, name = request.param.partition(".")
    if solution == "simd":
        need_native()
    plan = xllm_kernel.initialize(device="cpu", overrides={name: solution})[name]
    assert plan.spec.solution == solution
    return Norm(solution, ALL[name], plan.function)


def _normalised(form: Form, given: dict[str, Any]) -> torch.Tensor:
    """Return whose norm is asked for: the input, or its rounded sum with the residual."""
    x: torch.Tensor = given["input"]
    if "residual" not in form.arguments:
        return x.clone()
    return (x.float() + given["residual"].float()).to(x.dtype)


def _reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return the formula in float64 from the exact bits, with eps as float32 holds it."""
    x, weight = x.double(), weight.double()
    eps32 = torch.tensor(eps, dtype=torch.float32).double()
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps32) * weight


def _assert_close(y: torch.Tensor, expected: torch.Tensor, what: object = "") -> None:
    """Allow half an ULP for the one rounding; float32 itself rounds several times on the way."""
    ulps = 10.0 if y.dtype is torch.float32 else 0.51
    allowed = ulps * torch.finfo(y.dtype).eps * expected.abs()
    allowed += torch.finfo(y.dtype).smallest_normal
    assert y.shape == expected.shape, what
    assert bool(((y.double() - expected).abs() <= allowed).all()), what


# ---------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_squares_beyond_float16_give_ones(norm: Norm, dtype: torch.dtype) -> None:
    ones, step = torch.ones(4096, dtype=dtype), torch.finfo(dtype).eps
    y = norm.of(torch.full((2, 4096), 300.0, dtype=dtype), ones, 1e-6)
    assert bool(((y - 1).abs() <= step).all())
    alternating = torch.tensor([60000.0, -60000.0], dtype=dtype).repeat(2, 2048)
    y = norm.of(alternating, ones, 1e-6)
    assert bool(((y - alternating.sign()).abs() <= step).all())


def test_eps_is_neither_raised_nor_rounded_to_the_dtype(norm: Norm) -> None:
    tiny = torch.full((1, 64), 1e-3)  # mean square 1e-6
    coarse = norm.of(tiny, torch.ones(64), 1e-5)
    fine = norm.of(tiny, torch.ones(64), 1e-6)
    assert (fine / coarse)[0, 0].item() == pytest.approx(math.sqrt(11 / 2), rel=1e-5)
    half = torch.full((1, 256), math.sqrt(2e-4), dtype=torch.float16)
    y = norm.of(half, torch.ones(256, dtype=torch.float16), 1e-6).double()
    expected = _reference(half, torch.ones(256), 1e-6)
    assert bool(((y - expected).abs() <= 2e-3 * expected).all())


def test_zero_rows_give_exact_zeros(norm: Norm) -> None:
    for dtype in DTYPES:
        y = norm.of(torch.zeros(3, 70, dtype=dtype), random(70, dtype=dtype), 1e-12)
        assert torch.equal(y, torch.zeros(3, 70, dtype=dtype)), dtype


def test_spiky_row_keeps_its_small_elements(norm: Norm) -> None:
    x = torch.full((1, 8192), 0.01)
    x[0, 0] = 100.0
    expected = _reference(x, torch.ones(8192), 1e-5)
    y = norm.of(x, torch.ones(8192), 1e-5).double()
    assert bool(((y - expected).abs() <= 1e-4 * expected.abs()).all())


def test_nan_stays_in_its_row_and_infinity_in_its_element(norm: Norm) -> None:
    for dtype in DTYPES:
        x, ones = random(4, 70, dtype=dtype), torch.ones(70, dtype=dtype)
        clean = norm.of(x, ones, 1e-6)
        x[1, 33], x[2, 65] = NAN, INF
        y = norm.of(x, ones, 1e-6)
        assert bool(y[1].isnan().all()), dtype
        assert bool(y[2, 65].isnan()), dtype
        assert int(y[2].count_nonzero()) == 1, dtype
        assert same_bits(y[[0, 3]], clean[[0, 3]]), dtype


def test_row_whose_squares_exceed_float32_gives_zeros_as_the_contract_says(norm: Norm) -> None:
    x = torch.tensor([[1e18], [1e19]]).expand(2, 200).contiguous()
    y = norm.of(x, torch.ones(200), 1e-6)
    assert bool(((y[0] - 1).abs() <= 2**-22).all())
    assert torch.equal(y[1], torch.zeros(200))


def test_residual_of_zeros_gives_the_plain_norm(norm: Norm) -> None:
    plain = xllm_kernel.prepare_rms_norm()
    for dtype in DTYPES:
        x, weight = random(9, 777, dtype=dtype, seed=1), random(777, dtype=dtype, seed=2)
        wanted = plain.function(x, weight, 1e-6).double()
        y = norm.of(x, weight, 1e-6).double()
        # Another solution sums in another order, which costs float32 more than its one rounding.
        alike = dtype is not torch.float32 or plain.spec.solution == norm.solution
        assert float(ulp_error(y, wanted, 0.0, format_of(dtype)).max()) <= (1 if alike else 6)


# ---------------------------------------------------------------- memory

VIEWS: dict[str, Callable[[], torch.Tensor]] = {
    "row slice": lambda: random(6, 192)[:, 64:128],
    "split heads": lambda: random(6, 3 * 256).split(256, 1)[1].view(6, 4, 64),
    "transposed": lambda: random(64, 6).t(),
    "expanded": lambda: random(1, 64).expand(6, 64),
    "flipped": lambda: random(6, 64).flip(-1),
    "every other row": lambda: random(12, 64)[::2],
    "odd offset": lambda: random(385)[1:].view(6, 64),
}


def test_views_are_right_or_refused_by_name_and_nothing_else(norm: Norm) -> None:
    for view, make in VIEWS.items():
        written = norm.form.writes
        given = case((1,), weight=random(64, seed=5))
        given |= {name: make() for name in ("input", "residual", "output")}
        before = {name: given[name].clone() for name in norm.form.arguments[:-1]}
        wanted = _reference(_normalised(norm.form, given), given["weight"], given["eps"])
        try:
            y, refusal = norm.run(given), None
        except RuntimeError as error:
            refusal = str(error)
        if refusal is None:
            _assert_close(y, wanted, view)
        else:
            assert view in ("transposed", "expanded"), (view, refusal)
            clauses = [f"(clause {name}.{kind})" for name in before for kind in ("stride", "rows")]
            assert refusal.endswith(tuple(clauses)), view
            written = ()
        for name, tensor in before.items():
            assert name in written or same_bits(given[name], tensor), (view, name)


_WIDTHS = (1, 2, 3, 7, 9, 15, 17, 31, 33, 63, 65, 127, 129, 513, 769, 1200, 3584, 4097, 8191)
_CANARY, _CANARY_BYTES = 7.0, 64


def _between_canaries(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a copy between canaries, and the canaries as one tensor that follows the memory."""
    room = _CANARY_BYTES // tensor.element_size()
    memory = torch.full((tensor.numel() + 2 * room,), _CANARY, dtype=tensor.dtype)
    placed = memory[room:-room].view(tensor.shape)
    placed.copy_(tensor)
    return placed, memory.as_strided((2, room), (tensor.numel() + room, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_widths_are_right_and_stay_inside(norm: Norm, dtype: torch.dtype) -> None:
    for width in _WIDTHS:
        for rows in (1, 2, 7):
            given = case((rows, width), dtype)
            placed = {n: _between_canaries(given[n]) for n in norm.form.arguments[:-1]}
            before = {name: tensor.clone() for name, (tensor, _) in placed.items()}
            given |= {name: tensor for name, (tensor, _) in placed.items()}
            wanted = _reference(_normalised(norm.form, given), given["weight"], given["eps"])
            _assert_close(norm.run(given), wanted, (rows, width))
            for name, (tensor, canaries) in placed.items():
                assert bool((canaries == _CANARY).all()), (name, rows, width)
                assert name in norm.form.writes or same_bits(tensor, before[name]), name


def test_results_share_memory_with_nothing(norm: Norm) -> None:
    for shape in ((0, 40), (3, 1), (1, 1), (3, 40)):
        given = norm.form.pick(case(shape, residual=torch.zeros(shape)))
        arguments = [tensor for name, tensor in given.items() if name != "eps"]
        made = norm.call(**given)
        assert (made is None) == bool(norm.form.writes)
        results = [made] if isinstance(made, torch.Tensor) else list(made or ())
        for at, result in enumerate(results):
            others = [*arguments, *results[:at]]
            assert not any(result is other or overlap(result, other) for other in others), shape
