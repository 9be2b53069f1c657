"""Independent references for RMSNorm and the tolerance a case earns; imports no implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from xllm_kernel.domain import FLOAT32_MAX
from xllm_kernel.numerics.tolerance import CHUNK_ELEMENTS, Earned, earn, summarize
from xllm_kernel.numerics.ulp import format_of, ulp_error

if TYPE_CHECKING:
    import torch

# 1.5 times the baseline lets another order of summation or another root pass, and fails truncation
# to a 16-bit format, whose worst error is 1.00 ULP where rounding's is 0.50.
FACTOR = 1.5

# All that a row's elements share (the sum, the root, the reciprocal) is one sample of rounding a
# row. Its worst case shows over some thousand rows; a case with fewer is redrawn until it has had
# as many, or until the redraws hold as many elements as the budget allows.
_SAMPLED_ROWS = 4096
_SAMPLED_ELEMENTS = 1 << 19

# As many partial sums as four of the widest vector registers hold.
_LANES = 64

# Its sum is a loop in Python: more elements a chunk mean fewer turns of it.
_BASELINE_CHUNK_ELEMENTS = 1 << 18

# Below, an intermediate is subnormal in float32 and an error relative to it has no bound.
_SMALLEST_NORMAL = 2.0**-126

# The smallest mean square that float32 still resolves to full precision when its terms are squares
# of float32 values: a square below 2**-126 is off by up to 2**-150.
_SMALLEST_MEAN_SQUARE = 2.0**-120


Order = Callable[["torch.Tensor"], "torch.Tensor"]
"""Sums the last dimension of squares, ``[..., width]`` to ``[..., 1]``, in float32."""


def reference(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean(x^2) + eps) * w in float64, from the inputs' exact values.

    Args:
        input: ``[..., width]``, on the CPU.
        weight: ``[width]``, on the CPU.
        eps: a float32 value.
    """
    import torch

    output = torch.empty(input.shape, dtype=torch.float64)
    scale = weight.double()
    for piece in _row_chunks(input):
        values = input[piece].double()
        mean_square = values.square().mean(-1, keepdim=True)
        output[piece] = values.div_((mean_square + eps).sqrt_()).mul_(scale)
    return output


def rounded_sum(input: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    """Return input + residual, added in float32 and rounded to the dtype once, dense.

    It is the correctly rounded exact sum: two roundings of a sum of 16-bit values equal one, since
    float32 has more than twice their bits.

    Args:
        input: on the CPU.
        residual: like it.
    """
    return (input.float() + residual.float()).to(input.dtype).contiguous()


def baseline(input: torch.Tensor, weight: torch.Tensor, eps: float, order: Order) -> torch.Tensor:
    """Return the contract's computation done the obvious way: float32 throughout, rounded once.

    Args:
        input: as for ``reference``.
        weight: as for ``reference``.
        eps: a float32 value.
        order: how the squares are summed.
    """
    import torch

    output = torch.empty_like(input, memory_format=torch.contiguous_format)
    for piece in _row_chunks(input, _BASELINE_CHUNK_ELEMENTS):
        values = input[piece].float()
        root = (order(values.square()) / values.shape[-1] + eps).sqrt()
        output[piece] = (values * root.reciprocal() * weight.float()).to(input.dtype)
    return output


def lane_sum(squares: torch.Tensor) -> torch.Tensor:
    """Sum the last dimension in float32 as a vector loop does: lanes in order, then pairwise.

    Where a row's squares are alike, or one dwarfs the rest, a lane's roundings add up instead of
    cancelling. A more careful sum alone would ask for more accuracy than the contract does.
    """
    import torch

    padding = -squares.shape[-1] % _LANES
    padded = torch.nn.functional.pad(squares, (0, padding))
    steps = padded.unflatten(-1, (-1, _LANES)).unbind(-2)
    lanes: torch.Tensor = steps[0].clone()
    for step in steps[1:]:
        lanes += step
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes


def library_sum(squares: torch.Tensor) -> torch.Tensor:
    """Sum the last dimension in float32 in the order that PyTorch chooses."""
    return squares.sum(-1, keepdim=True)


def host_reference(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return what serving hosts compare with: x * rsqrt(mean(x^2) + eps) * w, rounded once."""
    import torch

    output = torch.empty_like(input, memory_format=torch.contiguous_format)
    for piece in _row_chunks(input):
        values = input[piece].float()
        inverse = torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + eps)
        output[piece] = (values * inverse * weight.float()).to(input.dtype)
    return output


def defined_rows(input: torch.Tensor, eps: float) -> torch.Tensor | None:
    """Mark the rows whose float32 sum of squares neither overflows nor underflows.

    Outside, the contract's float32 result is another function than the formula. Rows of zeros and
    rows with nonfinite values are defined, and are marked.

    Returns:
        A mask ``[..., 1]``, or None where every row is defined.
    """
    import torch

    defined = torch.ones((*input.shape[:-1], 1), dtype=torch.bool)
    for piece in _row_chunks(input):
        squares = input[piece].double().square()
        total = squares.sum(-1, keepdim=True)
        finite = total.isfinite()
        too_large = finite & (total > FLOAT32_MAX * (1.0 - 2.0**-12))
        mean_square = total / max(1, input.shape[-1])
        too_small = (total > 0) & (mean_square + eps < _SMALLEST_MEAN_SQUARE)
        defined[piece] = ~(too_large | too_small)
    return None if bool(defined.all()) else defined


def error_scale(weight: torch.Tensor) -> torch.Tensor:
    """Return the magnitude per column below which a result's error is absolute."""
    return weight.double().abs().mul_(_SMALLEST_NORMAL).nan_to_num_(nan=0.0)


def earned(
    input: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    true: torch.Tensor,
    checked: torch.Tensor | None,
) -> Earned:
    """Measure the baseline on a case and its redraws.

    Args:
        input: the case's input, on the CPU.
        weight: its weight, on the CPU.
        eps: a float32 value.
        true: ``reference`` of them.
        checked: ``defined_rows`` of them.
    """
    scale = error_scale(weight)
    own = [
        summarize(baseline(input, weight, eps, order), true, scale, checked)
        for order in (lane_sum, library_sum)
    ]
    others = redraws(input)
    return earn(FACTOR, own, None if others is None else _errors_of(others, weight, eps, scale))


def _errors_of(
    others: torch.Tensor, weight: torch.Tensor, eps: float, scale: torch.Tensor
) -> torch.Tensor:
    """Return the baseline's errors in ULP on redraws, ``[draws, elements]``; half by each order."""
    import torch

    errors = torch.empty(others.shape, dtype=torch.float64)
    for first, order in enumerate((lane_sum, library_sum)):
        for piece in _row_chunks(others[first::2]):
            draws = others[first::2][piece]
            result = baseline(draws, weight, eps, order).double()
            true = reference(draws, weight, eps)
            found = ulp_error(result, true, scale, format_of(others.dtype))
            defined = defined_rows(draws, eps)
            errors[first::2][piece] = found if defined is None else found.where(defined, 0.0)
    return errors.flatten(1)


def redraws(input: torch.Tensor) -> torch.Tensor | None:
    """Return data sets like a low case's: the same rows scaled by factors in (1/2, 1) and rolled.

    Scaling hardly moves the exact result and moves every rounding of what a row shares; rolling
    changes the order of the sum. The scaled values are rounded to the dtype: each redraw has its
    own reference, so that nothing needs to be exact. Scaling down cannot overflow.

    Returns:
        ``[draws, ..., width]``, or None where the case itself is tall enough.
    """
    import torch

    width = input.shape[-1]
    rows = input.numel() // max(1, width)
    if rows == 0:
        return None
    count = min(_SAMPLED_ROWS // rows, _SAMPLED_ELEMENTS // (rows * width))
    if count < 2:
        return None
    number = torch.arange(1, count)
    factors = (1.0 - 0.5 * number / count).reshape(-1, *[1] * input.dim())
    scaled = (input.float() * factors).to(input.dtype)
    order = (torch.arange(width) + number[:, None]) % width
    order = order.reshape(-1, *[1] * (input.dim() - 1), width)
    return scaled.gather(-1, order.expand(scaled.shape))


def _row_chunks(input: torch.Tensor, elements: int = CHUNK_ELEMENTS) -> Iterator[slice]:
    """Yield slices of the first dimension that keep temporaries near so many elements."""
    if input.dim() < 2:
        yield slice(None)
        return
    step = max(1, elements // max(1, input.numel() // max(1, input.shape[0])))
    for start in range(0, input.shape[0], step):
        yield slice(start, start + step)
