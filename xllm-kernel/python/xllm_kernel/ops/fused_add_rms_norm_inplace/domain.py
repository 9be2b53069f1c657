"""Input domains of the CPU implementations."""

from __future__ import annotations

from xllm_kernel.clauses import Apart, RowsApart, UnitStride
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.ops.row_clauses import EPS, ROWS_AND_WEIGHT, like_input

_MEMORY: tuple[Clause, ...] = (
    RowsApart("input"),
    RowsApart("residual"),
    Apart("input", "residual"),
    Apart("input", "weight"),
    Apart("residual", "weight"),
)
_WRITTEN: tuple[Clause, ...] = (UnitStride("input"), UnitStride("residual"))


def _domain(*clauses: Clause) -> Domain:
    arguments = ("input", "residual", "weight")
    return Domain("fused_add_rms_norm_inplace", arguments, ("eps",), clauses)


TORCH_DOMAIN = _domain(*ROWS_AND_WEIGHT, *like_input("residual"), *_WRITTEN, EPS, *_MEMORY)
SIMD_DOMAIN = _domain(
    *ROWS_AND_WEIGHT,
    *like_input("residual"),
    *_WRITTEN,
    UnitStride("weight"),
    EPS,
    *_MEMORY,
)
