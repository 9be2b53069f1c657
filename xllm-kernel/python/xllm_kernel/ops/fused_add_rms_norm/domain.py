"""Input domains of the CPU implementations."""

from __future__ import annotations

from xllm_kernel.clauses import UnitStride
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.ops.row_clauses import EPS, ROWS_AND_WEIGHT, like_input


def _domain(*clauses: Clause) -> Domain:
    return Domain("fused_add_rms_norm", ("input", "residual", "weight"), ("eps",), clauses)


TORCH_DOMAIN = _domain(*ROWS_AND_WEIGHT, *like_input("residual"), EPS)
SIMD_DOMAIN = _domain(
    *ROWS_AND_WEIGHT,
    *like_input("residual"),
    UnitStride("input"),
    UnitStride("residual"),
    UnitStride("weight"),
    EPS,
)
