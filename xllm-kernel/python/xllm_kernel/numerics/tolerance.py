"""Tolerances that a case earns: how far off an honest computation of the same data is.

Knows no operator. A suite supplies the draws; see docs/validation.md for the rule and its reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.ulp import format_of, ulp_error

if TYPE_CHECKING:
    import torch

# An error below these is no merit of the baseline: rounding once costs up to half an ULP at worst,
# and 0.29 in the root mean square over many elements.
WORST_FLOOR_ULP = 0.5
RMS_FLOOR_ULP = 0.25

# A baseline this far from the reference means that one of the two computes something else. Without
# the bound, a wrong reference would buy itself a tolerance as wide as its own mistake.
CEILING_ULP = 64.0

# As many elements as PyTorch treats on one thread, so that temporaries stay in its cache.
CHUNK_ELEMENTS = 1 << 15


@dataclass(slots=True)
class ErrorSummary:
    """Worst and root-mean-square error, gathered chunk by chunk.

    Attributes:
        worst: largest error in ULP; a NaN where a number belongs counts as infinitely wrong.
        index: flat index of the worst element, -1 while nothing was added.
        count: elements added.
        sum_of_squares: of the errors in ULP.
    """

    worst: float = 0.0
    index: int = -1
    count: int = 0
    sum_of_squares: float = 0.0

    def add(self, errors: torch.Tensor, offset: int, checked: torch.Tensor | None = None) -> None:
        """Take in the errors of the flat range that starts at ``offset``.

        Args:
            errors: one-dimensional, float64, in ULP.
            offset: flat index of its first element.
            checked: marks the elements that count; None means all.
        """
        if errors.numel() == 0:
            return
        if checked is not None:
            errors = errors.masked_fill(~checked, 0.0)
        errors = errors.nan_to_num(nan=math.inf)
        index = int(errors.argmax())
        if self.index < 0 or float(errors[index]) > self.worst:
            self.worst, self.index = float(errors[index]), offset + index
        self.count += errors.numel() if checked is None else int(checked.sum())
        self.sum_of_squares += float(errors.square().sum())

    @property
    def rms(self) -> float:
        """Root mean square of the errors in ULP; 0 where nothing was added."""
        return math.sqrt(self.sum_of_squares / self.count) if self.count else 0.0


@dataclass(frozen=True, slots=True)
class Earned:
    """The tolerance of one output in one case.

    Attributes:
        factor: how many times the baseline's error a candidate may have.
        worst: the baseline's worst error in ULP, over the case and its redraws.
        rms: its largest root mean square over one draw, in ULP.
        draws: how many computations of the case's size were measured.
    """

    factor: float
    worst: float
    rms: float
    draws: int

    @property
    def limit(self) -> float:
        """Largest error in ULP that any element may have."""
        return self.factor * max(self.worst, WORST_FLOOR_ULP)

    @property
    def rms_limit(self) -> float:
        """Largest root mean square of the errors in ULP."""
        return self.factor * max(self.rms, RMS_FLOOR_ULP)

    @property
    def trustworthy(self) -> bool:
        """Whether baseline and reference agree well enough to judge anybody."""
        return self.worst <= CEILING_ULP


def chunks(
    actual: torch.Tensor,
    reference: torch.Tensor,
    scale: torch.Tensor | float,
    checked: torch.Tensor | None,
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor | None]]:
    """Yield the errors of a result piece by piece, so that no temporary is as large as the case.

    Args:
        actual: the result, in its own dtype.
        reference: float64, of the same shape.
        scale: see ``ulp_error``; broadcast to the shape.
        checked: bool, broadcast to the shape, or None.

    Yields:
        Flat offset, errors in ULP, and which of them count (None: all).
    """
    import torch

    fmt = format_of(actual.dtype)
    width = reference.shape[-1] if reference.dim() else 1
    rows = reference.numel() // width if width else 0
    flat = [
        torch.as_tensor(t, dtype=d).broadcast_to(reference.shape).reshape(rows, width)
        for t, d in ((actual, actual.dtype), (reference, torch.float64), (scale, torch.float64))
    ]
    mask = None if checked is None else checked.broadcast_to(reference.shape).reshape(rows, width)
    step = max(1, CHUNK_ELEMENTS // max(1, width))
    for start in range(0, rows, step):
        piece = slice(start, start + step)
        mine, true, least = (t[piece].reshape(-1) for t in flat)
        errors = ulp_error(mine.to(torch.float64), true, least, fmt)
        yield start * width, errors, None if mask is None else mask[piece].reshape(-1)


def summarize(
    actual: torch.Tensor,
    reference: torch.Tensor,
    scale: torch.Tensor | float,
    checked: torch.Tensor | None = None,
) -> ErrorSummary:
    """Return the errors of a result against its reference; arguments as in ``chunks``."""
    summary = ErrorSummary()
    for offset, errors, mask in chunks(actual, reference, scale, checked):
        summary.add(errors, offset, mask)
    return summary


def failing_slice(
    actual: torch.Tensor,
    reference: torch.Tensor,
    scale: torch.Tensor | float,
    checked: torch.Tensor | None,
    earned: Earned,
) -> dict[str, Any]:
    """Return how many elements are further off than any may be, and the least slice of them all.

    Args:
        actual: as in ``chunks``.
        reference: as in ``chunks``.
        scale: as in ``chunks``.
        checked: as in ``chunks``.
        earned: the tolerance.

    Returns:
        ``elements`` and ``slice``, as one writes it between brackets: ``0:4, 300:301``.
    """
    import torch

    far = []
    for offset, errors, mask in chunks(actual, reference, scale, checked):
        wrong = ~(errors <= earned.limit)
        far.append((wrong if mask is None else wrong & mask).nonzero().flatten() + offset)
    places = torch.unravel_index(torch.cat(far), reference.shape)
    extents = [f"{int(axis.min())}:{int(axis.max()) + 1}" for axis in places]
    return {"elements": sum(map(len, far)), "slice": ", ".join(extents)}


def earn(factor: float, own: Sequence[ErrorSummary], redrawn: torch.Tensor | None = None) -> Earned:
    """Return the tolerance that a baseline's errors grant.

    Args:
        factor: the suite's factor.
        own: the baseline's errors on the case itself, one summary for each way to compute it.
        redrawn: its errors in ULP on data sets like the case, ``[draws, elements]``; None for a
            tall case. In a low one, whatever rounding a whole row shares is a single sample, which
            may happen to be exact while every honest kernel's is not.
    """
    import torch

    worst, rms, draws = max(s.worst for s in own), max(s.rms for s in own), len(own)
    if redrawn is not None and redrawn.numel() > 0:
        errors = redrawn.nan_to_num(nan=math.inf)
        worst = max(worst, float(errors.max()))
        rms = max(rms, float(torch.sqrt(errors.square().mean(-1).max())))
        draws += errors.shape[0]
    return Earned(factor=factor, worst=worst, rms=rms, draws=draws)
