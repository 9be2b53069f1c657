"""Planted faults of RMSNorm and its relatives: other formulas, other roundings, other sums.

Computed on the CPU, and moved to where the results belong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.planted.fault import Fault, Plant, Site
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.registry import KernelFunction

if TYPE_CHECKING:
    import torch

Norm = Callable[["torch.Tensor", "torch.Tensor", float], "torch.Tensor"]
"""Of values in any dtype, a weight and eps; in float32 or already rounded."""

Sum = Callable[["torch.Tensor", "torch.Tensor"], "tuple[torch.Tensor, torch.Tensor]"]
"""Of input and residual: what is normalised, and what is carried on."""


def _inverse(values: torch.Tensor, eps: float) -> torch.Tensor:
    return (values.float().square().mean(-1, keepdim=True) + eps).rsqrt()


def _norm(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return values.float() * _inverse(values, eps) * weight.float()


def _sum(input: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    total = (input.float() + residual.float()).to(input.dtype)
    return total, total


def _planted(norm: Norm, add: Sum = _sum) -> Plant:
    """Compute with a wrong part, and deliver as the operation does."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            named = dict(zip(site.names, arguments, strict=True))
            host = {n: a.cpu() if is_tensor(a) else a for n, a in named.items()}
            values, carried = host["input"], None
            if "residual" in host:
                values, carried = add(values, host["residual"])
            result = norm(values, host["weight"], host["eps"]).to(host["input"].dtype)
            return _deliver(site, named, result, carried)

        return faulty

    return plant


def _deliver(
    site: Site, named: dict[str, Any], norm: torch.Tensor, total: torch.Tensor | None
) -> Any:
    if "output" in named:
        named["output"].copy_(norm)
        return None
    if site.writes("input"):
        named["input"].copy_(norm)
        named["residual"].copy_(total)
        return None
    device = named["input"].device
    norm = norm.contiguous().to(device)
    return norm if total is None else (norm, total.contiguous().to(device))


# ---- formulas -----------------------------------------------------------------------------------


def _eps_outside(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    root = values.float().square().mean(-1, keepdim=True).sqrt() + eps
    return values.float() / root * weight.float()


def _with_eps(change: Callable[[float], float]) -> Norm:
    return lambda values, weight, eps: _norm(values, weight, change(eps))


def _mean_of_values(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    root = (values.float().mean(-1, keepdim=True).square() + eps).sqrt()
    return values.float() / root * weight.float()


def _sum_of_squares(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    root = (values.float().square().sum(-1, keepdim=True) + eps).sqrt()
    return values.float() / root * weight.float()


def _centred(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    moved = values.float() - values.float().mean(-1, keepdim=True)
    return _norm(moved, weight, eps)


def _one_more(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    mean = values.float().square().sum(-1, keepdim=True) / (values.shape[-1] + 1)
    return values.float() * (mean + eps).rsqrt() * weight.float()


def _tail_left_out(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Leave elements that fill no vector of 128 out of the sum."""
    full = values.shape[-1] // 128 * 128
    total = values[..., :full].float().square().sum(-1, keepdim=True)
    return values.float() * (total / values.shape[-1] + eps).rsqrt() * weight.float()


def _weight_plus_one(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return _norm(values, weight.float() + 1.0, eps)


def _weight_dropped(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return values.float() * _inverse(values, eps)


def _first_row(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Divide every row by the first one's root."""
    inverse = _inverse(values, eps)
    return (
        values.float() * inverse[:1] * weight.float()
        if len(inverse)
        else _norm(values, weight, eps)
    )


# ---- roundings ----------------------------------------------------------------------------------


def _rounded_before_weight(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    normalised = (values.float() * _inverse(values, eps)).bfloat16().float()
    return normalised * weight.float()


def _truncated(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Cut off the bits that the dtype does not hold, or eight where it holds them all."""
    import torch

    kept = {torch.bfloat16: 16, torch.float16: 13}.get(values.dtype, 8)
    exact = _norm(values, weight, eps)
    return ((exact.view(torch.int32) >> kept) << kept).view(torch.float32)


def _weight_rounded(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Multiply weight and root first, and round their product to bfloat16."""
    return values.float() * (_inverse(values, eps) * weight.float()).bfloat16().float()


def _half_accumulation(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Sum squares in float16, one after the other in 8 lanes."""
    import torch

    padded = torch.nn.functional.pad(values.half(), (0, -values.shape[-1] % 8))
    total = padded.new_zeros((*values.shape[:-1], 8))
    for step in padded.unflatten(-1, (-1, 8)).unbind(-2):
        total = total + step * step
    mean = total.float().sum(-1, keepdim=True) / values.shape[-1]
    return values.float() * (mean + eps).rsqrt() * weight.float()


def _squares_in_dtype(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Square in the values' own dtype, where a square may overflow or vanish."""
    mean = (values * values).float().mean(-1, keepdim=True)
    return values.float() * (mean + eps).rsqrt() * weight.float()


def _rough_root(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Take an inverse root of eight good bits, as a processor's estimate without a correction."""
    import torch

    bits = _inverse(values, eps).view(torch.int32)
    return values.float() * ((bits >> 15) << 15).view(torch.float32) * weight.float()


def _nan_skipped(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Take nonfinite inputs for zeros."""
    return _norm(values.float().nan_to_num(0.0, 0.0, 0.0), weight, eps)


def _inputs_flushed(values: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Take subnormal inputs for zeros."""
    import torch

    least = torch.finfo(values.dtype).smallest_normal
    return _norm(values.masked_fill(values.abs() < least, 0.0), weight, eps)


# ---- sums ---------------------------------------------------------------------------------------


def _unrounded(input: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    exact = input.float() + residual.float()
    return exact, exact.to(input.dtype)


def _not_carried(input: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _sum(input, residual)[0], residual


def _not_added(input: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return input, _sum(input, residual)[1]


def _subtracted(input: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _sum(input, -residual)


def _sum_truncated(
    input: torch.Tensor, residual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    kept = {torch.bfloat16: 16, torch.float16: 13}.get(input.dtype, 8)
    exact = input.float() + residual.float()
    total = ((exact.view(torch.int32) >> kept) << kept).view(torch.float32).to(input.dtype)
    return total, total


def _with_residual(site: Site) -> str | None:
    return None if "residual" in site.names else "the operation adds nothing"


_NORMS: tuple[tuple[str, str, Norm], ...] = (
    ("eps_outside_root", "adds eps to the root", _eps_outside),
    ("eps_dropped", "leaves eps out", _with_eps(lambda eps: 0.0)),
    ("eps_hard_coded", "takes 1e-6 for eps", _with_eps(lambda eps: 1e-6)),
    ("eps_floored", "takes at least 1e-4 for eps", _with_eps(lambda eps: max(eps, 1e-4))),
    ("mean_not_mean_square", "divides by the mean", _mean_of_values),
    ("sum_not_mean", "divides by the root of the sum", _sum_of_squares),
    ("centred", "takes the mean off first", _centred),
    ("width_off_by_one", "takes the mean over one element more", _one_more),
    ("tail_left_out", "leaves the last partial vector out of the sum", _tail_left_out),
    ("weight_plus_one", "multiplies by 1 + weight", _weight_plus_one),
    ("weight_dropped", "leaves the weight out", _weight_dropped),
    ("first_rows_root", "divides every row by the first one's root", _first_row),
    ("rounded_before_weight", "rounds to bfloat16 before the weight", _rounded_before_weight),
    ("truncated", "cuts bits off instead of rounding", _truncated),
    ("scale_rounded", "rounds root times weight to bfloat16", _weight_rounded),
    ("half_accumulation", "sums in float16", _half_accumulation),
    ("squares_in_dtype", "squares in the input's dtype", _squares_in_dtype),
    ("rough_root", "uses an inverse root of eight bits", _rough_root),
    ("nonfinite_input_skipped", "takes nonfinite inputs for zeros", _nan_skipped),
    ("subnormal_inputs_flushed", "takes subnormal inputs for zeros", _inputs_flushed),
)
_SUMS: tuple[tuple[str, str, Sum], ...] = (
    ("unrounded_sum_normalised", "normalises the sum before it is rounded", _unrounded),
    ("sum_not_carried", "carries the old residual on", _not_carried),
    ("residual_not_added", "normalises the input alone", _not_added),
    ("residual_subtracted", "subtracts the residual", _subtracted),
    ("sum_truncated", "cuts bits off the sum", _sum_truncated),
)

FAULTS: tuple[Fault, ...] = (
    *(Fault(name, text, _planted(norm)) for name, text, norm in _NORMS),
    *(Fault(name, text, _planted(_norm, add), _with_residual) for name, text, add in _SUMS),
)
