"""Input domains of the package's implementations; a vendor's operator checks its own."""

from __future__ import annotations

from xllm_kernel.clauses import UnitStride
from xllm_kernel.domain import Clause, Domain
from xllm_kernel.ops.row_clauses import EPS, LAUNCHER_ROWS_AND_WEIGHT, ROWS_AND_WEIGHT


def _domain(*clauses: Clause) -> Domain:
    return Domain("rms_norm", ("input", "weight"), ("eps",), clauses)


TORCH_DOMAIN = _domain(*ROWS_AND_WEIGHT, EPS)
SIMD_DOMAIN = _domain(*ROWS_AND_WEIGHT, UnitStride("input"), UnitStride("weight"), EPS)
XLITE_DOMAIN = _domain(*LAUNCHER_ROWS_AND_WEIGHT, EPS)
