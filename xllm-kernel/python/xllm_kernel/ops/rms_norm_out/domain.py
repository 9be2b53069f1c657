"""Input domains of the CPU implementations."""

from __future__ import annotations

from xllm_kernel.clauses import Apart, RowsApart, UnitStride
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.ops.row_clauses import EPS, ROWS_AND_WEIGHT, like_input

_OUTPUT: tuple[Clause, ...] = (
    *like_input("output"),
    UnitStride("output"),
    RowsApart("output"),
    Apart("output", "input"),
    Apart("output", "weight"),
)


def _domain(*clauses: Clause) -> Domain:
    return Domain("rms_norm_out", ("output", "input", "weight"), ("eps",), clauses)


TORCH_DOMAIN = _domain(*ROWS_AND_WEIGHT, EPS, *_OUTPUT)
SIMD_DOMAIN = _domain(*ROWS_AND_WEIGHT, UnitStride("input"), UnitStride("weight"), EPS, *_OUTPUT)
