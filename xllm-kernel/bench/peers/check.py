"""Whether a call's outputs are right, before anything is timed.

A gross check: it tells a wrong result from a less accurate one, and says how far off each is.
"""

from __future__ import annotations

import torch

from peers.operation import Buffers, Call, PeerError, Tensors

# In steps of the dtype at 1. One rounding is off by half of one; several roundings, in another
# order, by more. What a library gets wrong is off by far more.
LIMIT_STEPS = 2.0

# Elements a piece: temporaries stay in the cache, and torch starts no threads for so few, which
# would wait for each other on a busy machine.
_PIECE = 1 << 15


def check(call: Call, buffers: Buffers, expected: Tensors) -> float:
    """Call once and compare with the expected outputs.

    Returns:
        The largest relative error, in steps of the dtype at 1.

    Raises:
        PeerError: for a wrong result.
    """
    buffers.reset()
    results = call.results(call.run())
    if len(results) != len(expected):
        raise PeerError(f"wrong: must give {len(expected)} outputs, gave {len(results)}")
    errors = [_largest_error(got, want) for got, want in zip(results, expected, strict=True)]
    if not max(errors) <= LIMIT_STEPS:
        raise PeerError(
            f"wrong: a relative error may be {LIMIT_STEPS:g} steps of the dtype, "
            f"the largest is {max(errors):.3g}"
        )
    return max(errors)


def _largest_error(got: torch.Tensor, want: torch.Tensor) -> float:
    if got.shape != want.shape:
        raise PeerError(f"wrong: shape must be {list(want.shape)}, got {list(got.shape)}")
    step = torch.finfo(got.dtype).eps
    largest = 0.0
    pieces = zip(got.flatten().split(_PIECE), want.flatten().split(_PIECE), strict=True)
    for result, exact in pieces:
        error = (result.double() - exact).abs_()
        # Zero where the exact result is zero is right, anything else there infinitely wrong.
        relative = (error / exact.abs()).where(error != 0, 0.0)
        largest = max(largest, float(relative.nan_to_num_(nan=torch.inf).max()) / step)
    return largest
