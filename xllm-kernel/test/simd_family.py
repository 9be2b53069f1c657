"""What the tests of the norm family's torch operators share: data, bits, cases on both sides.

Every case is ``input, residual, weight, eps``; an operation takes of it what it has arguments for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def random(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.int32 if tensor.dtype is torch.float32 else torch.int16)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(bits(a), bits(b))


@dataclass(frozen=True)
class Form:
    """One operation of the family.

    Attributes:
        operation: its name.
        arguments: names of its arguments in order.
        writes: names of those that it writes.
    """

    operation: str
    arguments: tuple[str, ...]
    writes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"cpu.simd.{self.operation}"

    def pick(self, case: dict[str, Any]) -> dict[str, Any]:
        return {name: case[name] for name in self.arguments}


OUT = Form("rms_norm_out", ("output", "input", "weight", "eps"), ("output",))
FUSED = Form("fused_add_rms_norm", ("input", "residual", "weight", "eps"))
INPLACE = Form(
    "fused_add_rms_norm_inplace", ("input", "residual", "weight", "eps"), ("input", "residual")
)
FORMS = {form.operation: form for form in (OUT, FUSED, INPLACE)}
ALL = {"rms_norm": Form("rms_norm", ("input", "weight", "eps")), **FORMS}


def case(
    shape: tuple[int, ...] = (3, 40),
    dtype: torch.dtype = torch.float32,
    view: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor,
    **changes: Any,
) -> dict[str, Any]:
    """Make arguments; ``view`` is applied to every tensor but the weight."""
    values = view(random(*shape, dtype=dtype, seed=1))
    made: dict[str, Any] = {
        "input": values,
        "residual": view(random(*shape, dtype=dtype, seed=2)),
        "output": view(torch.full(shape, math.nan, dtype=dtype)),
        "weight": random(values.shape[-1] if values.dim() else 1, dtype=dtype, seed=3),
        "eps": 1e-6,
    }
    return made | changes


INSIDE: dict[str, Callable[[], dict[str, Any]]] = {
    "dense": case,
    "one row": lambda: case((40,)),
    "no rows": lambda: case((0, 40)),
    "no rows inside": lambda: case((3, 0, 2, 40)),
    "float16": lambda: case(dtype=torch.float16),
    "bfloat16": lambda: case((7, 129), dtype=torch.bfloat16),
    "float16, wide weight": lambda: case(dtype=torch.float16, weight=random(40)),
    "bfloat16, wide weight": lambda: case((7, 129), torch.bfloat16, weight=random(129)),
    "four dimensions": lambda: case((2, 3, 4, 65), dtype=torch.bfloat16),
    "row slice": lambda: case((5, 120), view=lambda t: t[:, 40:80]),
    "split heads": lambda: case((6, 240), view=lambda t: t.split(80, 1)[1].view(6, 2, 40)),
    "transposed leading": lambda: case((3, 5, 40), view=lambda t: t.transpose(0, 1)),
    "permuted leading": lambda: case((2, 3, 4, 40), view=lambda t: t.permute(2, 0, 1, 3)),
    "every other row": lambda: case((10, 40), view=lambda t: t[::2]),
    "odd offset": lambda: case((401,), torch.float16, lambda t: t[1:].view(10, 40)),
    "width 1, stride 7": lambda: case((5, 7), view=lambda t: t[:, :1]),
    "many rows": lambda: case((300, 513)),
    "eps 0": lambda: case(eps=0.0),
    "eps largest": lambda: case(eps=torch.finfo(torch.float32).max),
}


def _with(name: str, make: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    return lambda: case((3, 4), **{name: make()})


def _overlapping(first: str, second: str, step: int) -> Callable[[], dict[str, Any]]:
    """Put two 3 x 4 arguments into one memory, ``step`` elements apart."""

    def make() -> dict[str, Any]:
        memory = random(40)
        return case(
            (3, 4),
            **{first: memory[step : step + 12].view(3, 4), second: memory[:12].view(3, 4)},
        )

    return make


def _weight_inside(name: str) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        memory = random(12)
        return case((3, 4), **{name: memory.view(3, 4), "weight": memory[8:]})

    return make


READ: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "0-d": ("input.rank", _with("input", lambda: torch.tensor(1.0))),
    "int64": ("input.dtype", _with("input", lambda: torch.ones(3, 4, dtype=torch.int64))),
    "weight 2-d": ("weight.rank", _with("weight", lambda: random(1, 4))),
    "weight narrower": ("weight.dtype", _with("weight", lambda: random(4).half())),
    "width 0": ("input.width", lambda: case((3, 0))),
    "weight short": ("weight.width", _with("weight", lambda: random(3))),
    "transposed": ("input.stride", _with("input", lambda: random(4, 3).t())),
    "weight strided": ("weight.stride", _with("weight", lambda: random(8)[::2])),
    "eps negative": ("eps", _with("eps", lambda: -1e-6)),
    "eps nan": ("eps", _with("eps", lambda: math.nan)),
    "eps inf": ("eps", _with("eps", lambda: math.inf)),
}


def _unlike(name: str) -> dict[str, tuple[str, Callable[[], dict[str, Any]]]]:
    return {
        f"{name} wider": (f"{name}.shape", _with(name, lambda: random(3, 5))),
        f"{name} one row": (f"{name}.shape", _with(name, lambda: random(4))),
        f"{name} broadcast": (f"{name}.shape", _with(name, lambda: random(1, 4))),
        f"{name} flat": (f"{name}.shape", _with(name, lambda: random(12))),
        f"{name} float16": (f"{name}.dtype", _with(name, lambda: random(3, 4).half())),
        f"{name} elsewhere": (f"{name}.device", _with(name, lambda: random(3, 4).to("meta"))),
        f"{name} transposed": (f"{name}.stride", _with(name, lambda: random(4, 3).t())),
    }


def _rows(name: str) -> dict[str, tuple[str, Callable[[], dict[str, Any]]]]:
    return {
        f"{name} expanded": (f"{name}.rows", _with(name, lambda: random(1, 4).expand(3, 4))),
        f"{name} rows meet": (
            f"{name}.rows",
            _with(name, lambda: random(20).as_strided((3, 4), (3, 1))),
        ),
    }


OUTSIDE: dict[str, dict[str, tuple[str, Callable[[], dict[str, Any]]]]] = {
    "rms_norm_out": READ
    | _unlike("output")
    | _rows("output")
    | {
        "output is input": ("output.apart_from_input", _overlapping("output", "input", 0)),
        "output meets input": ("output.apart_from_input", _overlapping("output", "input", 11)),
        "output meets weight": ("output.apart_from_weight", _weight_inside("output")),
    },
    "fused_add_rms_norm": READ | _unlike("residual"),
    "fused_add_rms_norm_inplace": READ
    | _unlike("residual")
    | _rows("input")
    | _rows("residual")
    | {
        "input is residual": ("input.apart_from_residual", _overlapping("input", "residual", 0)),
        "input meets residual": (
            "input.apart_from_residual",
            _overlapping("input", "residual", 11),
        ),
        "input meets weight": ("input.apart_from_weight", _weight_inside("input")),
        "residual meets weight": ("residual.apart_from_weight", _weight_inside("residual")),
    },
}
