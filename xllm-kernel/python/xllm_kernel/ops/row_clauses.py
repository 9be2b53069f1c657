"""Clauses that operations on rows with a weight share; names roles of arguments, no operation."""

from __future__ import annotations

from xllm_kernel.clauses import (
    DeviceIs,
    DtypeIn,
    Extent,
    FloatIn,
    Rank,
    SameDevice,
    SameDtype,
    SameExtent,
    SameShape,
)
from xllm_kernel.domain import FLOAT32_MAX, Clause

ROWS_AND_WEIGHT: tuple[Clause, ...] = (
    Rank("input", 1),
    DtypeIn("input", ("float32", "float16", "bfloat16")),
    Rank("weight", 1, exact=True),
    SameDtype("weight", "input", always="float32"),
    Extent("input", -1, "width", 1),
    SameExtent("weight", 0, "input", -1, "width"),
    DeviceIs("input", "cpu"),
    SameDevice("weight", "input"),
)
EPS = FloatIn("eps", 0.0, FLOAT32_MAX)


def like_input(argument: str) -> tuple[Clause, ...]:
    """Require the input's shape, dtype and device of another tensor."""
    return (
        SameShape(argument, "input"),
        SameDtype(argument, "input"),
        SameDevice(argument, "input"),
    )
