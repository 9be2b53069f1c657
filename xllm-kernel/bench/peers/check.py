"""Whether a call's outputs are right: a gross check.

It tells a wrong result from a less accurate one, and says how far off the outputs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from peers.rows import BLOCK_ROWS, EVERY, judged

if TYPE_CHECKING:
    import torch

# In steps of the dtype at 1, of the exact value or, where that is smaller, of the smallest normal
# number: below it numbers lie evenly, as far apart as there. One rounding is off by half of one;
# several roundings, in another order, by more. What a library gets wrong is off by far more.
LIMIT_STEPS = 2.0

# Elements a piece: temporaries stay in the cache, and torch starts no threads for so few, which
# would wait for each other on a busy machine.
_PIECE = 1 << 15


def judge(results: Sequence[torch.Tensor], like: torch.Tensor, expected: Any) -> dict[str, Any]:
    """Compare a call's outputs with what they must be.

    Args:
        results: of the call.
        like: a tensor of the shape and dtype that each must have.
        expected: each in float64, the rows of a block that repeats.

    Returns:
        A verdict; ``max_error_steps`` is the largest relative error, in steps of the dtype at 1
        (of results below the smallest normal number, relative to that).
    """
    wrong = _structure(results, like, len(expected))
    if wrong is not None:
        return {"status": "failed", "reason": f"wrong: {wrong}"}
    rows = judged(*like.shape)
    error = max(_largest_error(g, w, rows) for g, w in zip(results, expected, strict=True))
    every = len(rows) == like.shape[0]
    verdict: dict[str, Any] = {
        "status": "passed",
        "max_error_steps": error,
        "limit_steps": LIMIT_STEPS,
        "rows": "all"
        if every
        else f"{len(rows)}: the first {BLOCK_ROWS}, the last, every {EVERY}th",
    }
    if not error <= LIMIT_STEPS:
        verdict["status"] = "failed"
        verdict["reason"] = (
            f"wrong: a relative error may be {LIMIT_STEPS:g} steps of the dtype, the largest is "
            f"{error:.3g}"
        )
    return verdict


def _structure(results: Sequence[torch.Tensor], like: torch.Tensor, count: int) -> str | None:
    if len(results) != count:
        return f"must give {count} outputs, gave {len(results)}"
    for got in results:
        if got.shape != like.shape:
            return f"shape must be {list(like.shape)}, got {list(got.shape)}"
        if got.dtype != like.dtype:
            return f"dtype must be {like.dtype}, got {got.dtype}"
    return None


def _largest_error(got: torch.Tensor, block: torch.Tensor, rows: Sequence[int]) -> float:
    import torch

    step, least = torch.finfo(got.dtype).eps, torch.finfo(got.dtype).smallest_normal
    count = max(1, _PIECE // got.shape[1])
    largest = 0.0
    for begin in range(0, len(rows), count):
        some = torch.tensor(rows[begin : begin + count])
        exact = block[some % block.shape[0]]
        error = (got[some].double() - exact).abs_()
        # Zero where the exact result is zero is right, anything else there infinitely wrong.
        scale = exact.abs().clamp_(min=least).where(exact != 0, 0.0)
        relative = (error / scale).where(error != 0, 0.0)
        largest = max(largest, float(relative.nan_to_num_(nan=torch.inf).max()) / step)
    return largest
