"""Planted faults in what a call computes and in the form of what it returns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.memory import poisoned
from xllm_kernel.numerics.planted.fault import (
    Fault,
    Site,
    on_outputs,
    on_result,
    promising,
    returning,
)
from xllm_kernel.registry import KernelFunction

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.compare import Expected


def spoil(part: torch.Tensor) -> None:
    """Change every number; -1/3, which no binary format holds, would be the one that stays."""
    part.mul_(-2).sub_(1)


def _unwritten(tensor: torch.Tensor) -> None:
    tensor.copy_(poisoned(tensor.shape, tensor.dtype))


def _tile(tensor: torch.Tensor) -> torch.Tensor:
    width = tensor.shape[-1]
    if tensor.dim() == 1:
        return tensor[width // 2 : width // 2 + 16]
    return tensor.select(-2, tensor.shape[-2] // 2)[..., width // 2 : width // 2 + 16]


def _subnormals_to_zero(tensor: torch.Tensor) -> None:
    import torch

    tensor.masked_fill_(tensor.abs() < torch.finfo(tensor.dtype).smallest_normal, 0.0)


def _spread_nan(tensor: torch.Tensor) -> None:
    if bool(tensor.isnan().any()):
        tensor.fill_(math.nan)


def _first_element(tensor: torch.Tensor) -> None:
    spoil(tensor[(slice(0, 1),) * tensor.dim()])


def _other_nan(tensor: torch.Tensor) -> None:
    import torch

    tensor.copy_(torch.where(tensor.isnan(), -tensor.abs(), tensor))


def _rolled(axis: int) -> Any:
    return lambda tensor: tensor.copy_(tensor.roll(1, axis))


def _first_row_everywhere(tensor: torch.Tensor) -> None:
    tensor.copy_(tensor[:1].clone().expand_as(tensor))


def _infinite_saturated(tensor: torch.Tensor) -> None:
    import torch

    largest = torch.finfo(tensor.dtype).max
    tensor.nan_to_num_(nan=math.nan, posinf=largest, neginf=-largest)


def one_step_too_far(wanted: Expected, tensor: torch.Tensor) -> None:
    """Move one element just past what its tolerance allows, away from zero."""
    import torch

    from xllm_kernel.numerics.ulp import format_of, spacing

    reference = wanted.reference
    fmt = format_of(tensor.dtype)
    usable = reference.isfinite() & (reference.abs() < fmt.largest / 4)
    if wanted.checked is not None:
        usable &= wanted.checked
    if not bool(usable.any()):
        return
    at = tuple(usable.nonzero()[-1].tolist())
    true = reference[at]
    scale = torch.as_tensor(wanted.scale, dtype=torch.float64).broadcast_to(reference.shape)[at]
    step = spacing(true.abs().clamp(min=scale).reshape(1), fmt)[0]
    # Rounding to the format costs half a step at most, which leaves half a one beyond the limit.
    far = true + math.copysign(1.0, float(true)) * (math.floor(wanted.earned.limit) + 1.5) * step
    tensor[at] = far.to(tensor.dtype)


def _one_step_too_far(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        wanted = site.wanted(arguments)
        result = function(*arguments)
        for want, tensor in zip(wanted, site.outputs(result, arguments), strict=True):
            one_step_too_far(want, tensor)
        return result

    return faulty


def _swapped(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        result = function(*arguments)
        first, second, *_ = site.outputs(result, arguments)
        kept = first.clone()
        first.copy_(second)
        second.copy_(kept)
        return result

    return faulty


def _several(site: Site) -> str | None:
    outputs = site.returns + len(site.contract.mutates)
    return None if outputs > 1 else "the operation has one output"


def _nothing_returned(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> None:
        function(*arguments)

    return faulty


def _something_returned(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        function(*arguments)
        return site.outputs(None, arguments)[0]

    return faulty


def _wrapped(function: KernelFunction, site: Site) -> KernelFunction:
    return lambda *arguments: [function(*arguments)]


def _returning_nothing(site: Site) -> str | None:
    return "the operation returns tensors" if site.returns else None


def _other_dtype(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.to(torch.float32 if tensor.dtype is not torch.float32 else torch.float64)


def _rows_apart(tensor: torch.Tensor) -> torch.Tensor:
    wider = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] + 8))[..., : tensor.shape[-1]]
    return wider.copy_(tensor)


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def _elsewhere(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("meta" if tensor.device.type == "cpu" else "cpu")


def _lazy(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.Parameter(tensor, requires_grad=False)


VALUES = (
    Fault("zeros", "answers with zeros", on_outputs(lambda t: t.zero_())),
    Fault("ones", "answers with ones", on_outputs(lambda t: t.fill_(1.0))),
    Fault("nan", "answers with NaN", on_outputs(lambda t: t.fill_(math.nan))),
    Fault("unwritten", "leaves its buffers as they were allocated", on_outputs(_unwritten)),
    Fault("negated", "the sign is wrong", on_outputs(lambda t: t.neg_())),
    Fault("scaled", "everything is 2 % too large", on_outputs(lambda t: t.mul_(1.02))),
    Fault("first_element", "one element is wrong", on_outputs(_first_element)),
    Fault("last_row", "the last row is wrong", on_outputs(lambda t: spoil(t[-1]))),
    Fault("last_column", "the last column is wrong", on_outputs(lambda t: spoil(t[..., -1]))),
    Fault("tile", "16 neighbours of one row are wrong", on_outputs(lambda t: spoil(_tile(t)))),
    Fault("lane", "every 16th column is wrong", on_outputs(lambda t: spoil(t[..., 5::16]))),
    Fault("rows_rolled", "rows are in each other's place", on_outputs(_rolled(0))),
    Fault("columns_rolled", "columns are in each other's place", on_outputs(_rolled(-1))),
    Fault("first_row_everywhere", "every row is the first", on_outputs(_first_row_everywhere)),
    Fault("one_step_too_far", "one element is an ULP past its tolerance", _one_step_too_far),
    Fault("outputs_swapped", "two outputs are exchanged", _swapped, _several),
    Fault(
        "nonfinite_dropped",
        "NaN and infinities become numbers",
        on_outputs(lambda t: t.nan_to_num_()),
    ),
    Fault("nan_spread", "a NaN in one row makes all rows NaN", on_outputs(_spread_nan)),
    Fault(
        "infinity_saturated",
        "infinities become the largest number",
        on_outputs(_infinite_saturated),
    ),
    Fault(
        "other_nan",
        "a NaN's sign bit is set",
        on_outputs(_other_nan),
        promising("canonical_nan"),
        guarantee="canonical_nan",
    ),
    Fault("subnormals_flushed", "subnormal results become zero", on_outputs(_subnormals_to_zero)),
)

FORM = (
    Fault("nothing_returned", "computes and returns None", _nothing_returned, returning),
    Fault(
        "something_returned",
        "returns an argument it wrote",
        _something_returned,
        _returning_nothing,
    ),
    Fault("wrapped", "returns a list of what it should return", _wrapped),
    Fault(
        "extra_dimension",
        "the result has a dimension more",
        on_result(lambda t: t.unsqueeze(0)),
        returning,
    ),
    Fault(
        "row_missing",
        "the result lacks the last row",
        on_result(lambda t: t[:-1].clone()),
        returning,
    ),
    Fault(
        "row_too_many",
        "the result has a row more",
        on_result(lambda t: t.new_zeros((t.shape[0] + 1, *t.shape[1:]))),
        returning,
    ),
    Fault("other_dtype", "the result is of a wider dtype", on_result(_other_dtype), returning),
    Fault(
        "transposed_strides", "the result lies column by column", on_result(_transposed), returning
    ),
    Fault("rows_apart", "the result's rows have gaps", on_result(_rows_apart), returning),
    Fault("elsewhere", "the result is on another device", on_result(_elsewhere), returning),
    Fault("subclass", "the result is a tensor of a subclass", on_result(_lazy), returning),
)
