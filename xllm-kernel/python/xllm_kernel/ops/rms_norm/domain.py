"""Input domains of the CPU implementations; a vendor's operator checks its own."""

from __future__ import annotations

from xllm_kernel.domain import (
    FLOAT32_MAX,
    Clause,
    DeviceIs,
    Domain,
    DtypeIn,
    Extent,
    FloatIn,
    Rank,
    SameDevice,
    SameDtype,
    SameExtent,
    UnitStride,
)

_SHARED: tuple[Clause, ...] = (
    Rank("input", 1),
    DtypeIn("input", ("float32", "float16", "bfloat16")),
    Rank("weight", 1, exact=True),
    SameDtype("weight", "input"),
    Extent("input", -1, "width", 1),
    SameExtent("weight", 0, "input", -1, "width"),
    DeviceIs("input", "cpu"),
    SameDevice("weight", "input"),
)
_EPS = FloatIn("eps", 0.0, FLOAT32_MAX)


def _domain(*clauses: Clause) -> Domain:
    return Domain("rms_norm", ("input", "weight"), ("eps",), clauses)


TORCH_DOMAIN = _domain(*_SHARED, _EPS)
SIMD_DOMAIN = _domain(*_SHARED, UnitStride("input"), UnitStride("weight"), _EPS)
