"""Clauses that operations on rows with a weight share; names roles of arguments, no operation."""

from __future__ import annotations

from xllm_kernel.clauses import (
    DeviceIs,
    DtypeIn,
    ElementsAtMost,
    Extent,
    ExtentMultiple,
    FloatIn,
    FormatIn,
    Rank,
    RowsReach,
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
# What a device stores row by row: tensors of one or two, four, three, five dimensions.
_PLAIN_FORMATS = ("ND", "NCHW", "NCL", "NCDHW")
# Of launchers whose kernels count in 32 bits, hold a row in a core's buffer and have no partial
# vectors.
LAUNCHER_ROWS_AND_WEIGHT: tuple[Clause, ...] = (
    Rank("input", 1),
    DtypeIn("input", ("float16", "bfloat16")),
    Rank("weight", 1, exact=True),
    SameDtype("weight", "input"),
    ExtentMultiple("input", -1, "width", 64, 8192),
    SameExtent("weight", 0, "input", -1, "width"),
    DeviceIs("input", "npu"),
    SameDevice("weight", "input"),
    FormatIn("input", _PLAIN_FORMATS),
    FormatIn("weight", _PLAIN_FORMATS),
    ElementsAtMost("input", 2**32 - 1),
    RowsReach("input", 2**32 - 1),
)
EPS = FloatIn("eps", 0.0, FLOAT32_MAX)


def like_input(argument: str) -> tuple[Clause, ...]:
    """Require the input's shape, dtype and device of another tensor."""
    return (
        SameShape(argument, "input"),
        SameDtype(argument, "input"),
        SameDevice(argument, "input"),
    )
