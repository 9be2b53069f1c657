"""Distances between floating-point values in units in the last place (ULP) of a format.

Works on float64 tensors that hold values of the format exactly, or the references they approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_DOUBLE_BIAS = 1023
_DOUBLE_FRACTION_BITS = 52


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    Attributes:
        precision: bits of the significand, the hidden one included.
        smallest_exponent: exponent of the smallest subnormal.
        overflow_exponent: exponent of the first power of two beyond the largest finite value.
    """

    precision: int
    smallest_exponent: int
    overflow_exponent: int

    @property
    def largest(self) -> float:
        """Largest finite value."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0 ** (self.overflow_exponent - 1)


FORMATS = {
    "float32": Format(precision=24, smallest_exponent=-149, overflow_exponent=128),
    "float16": Format(precision=11, smallest_exponent=-24, overflow_exponent=16),
    "bfloat16": Format(precision=8, smallest_exponent=-133, overflow_exponent=128),
}


def format_of(dtype: torch.dtype) -> Format:
    """Return the format of a PyTorch dtype.

    Raises:
        TypeError: for a dtype that has no tolerance in ULP.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in FORMATS:
        raise TypeError(f"ULP are defined for {', '.join(FORMATS)}, got {name}")
    return FORMATS[name]


def spacing(magnitude: torch.Tensor, fmt: Format) -> torch.Tensor:
    """Return the distance between neighbouring values of a format, at the given magnitudes.

    Args:
        magnitude: finite float64 values >= 0. Below the smallest normal value the subnormals'
            spacing holds; beyond the largest finite value, that of the last binade.
        fmt: the format.
    """
    import torch

    # floor(log2) of a normal double is its exponent field: exact and much cheaper than frexp.
    exponent = (magnitude.view(torch.int64) >> _DOUBLE_FRACTION_BITS) - _DOUBLE_BIAS
    exponent = exponent.clamp_(max=fmt.overflow_exponent - 1).sub_(fmt.precision - 1)
    exponent = exponent.clamp_(min=fmt.smallest_exponent)
    return ((exponent + _DOUBLE_BIAS) << _DOUBLE_FRACTION_BITS).view(torch.float64)


def ulp_error(
    actual: torch.Tensor, reference: torch.Tensor, scale: torch.Tensor | float, fmt: Format
) -> torch.Tensor:
    """Return |actual - reference| in ULP of max(|reference|, scale).

    Overflow is graded like any other rounding: an infinity counts as the first power of two beyond
    the largest finite value, and so does every reference past it. So a reference just under the
    overflow threshold may round either way, and one far beyond it must give infinity. Where the
    reference is NaN the error is 0: patterns of nonfinite values are compared elsewhere.

    Args:
        actual: float64 copy of a result.
        reference: float64 reference of the same shape.
        scale: smallest magnitude whose spacing counts; broadcast against the reference.
        fmt: the result's format.
    """
    import torch

    beyond = 2.0**fmt.overflow_exponent
    reference = reference.clamp(-beyond, beyond)
    magnitude = reference.abs().clamp_(min=torch.as_tensor(scale, dtype=torch.float64))
    undefined = reference.isnan()
    magnitude.masked_fill_(undefined, 1.0)
    error = actual.clamp(-beyond, beyond).sub_(reference).abs_()
    return error.div_(spacing(magnitude, fmt)).masked_fill_(undefined, 0.0)
