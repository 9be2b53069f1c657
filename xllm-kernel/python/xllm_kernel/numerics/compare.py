"""The verdict on one result: structure, shape, dtype, layout, nonfinite values, values, memory.

Each check runs only on what the one before accepted, so that a wrong shape is never broadcast into
agreement and an infinity never averaged away. The worst element decides; aggregates only inform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.storage import ArgumentGuard, overlap
from xllm_kernel.numerics.tolerance import (
    CEILING_ULP,
    Earned,
    ErrorSummary,
    failing_slice,
    summarize,
)
from xllm_kernel.numerics.ulp import format_of

if TYPE_CHECKING:
    import torch

CHECKS = (
    "structure",
    "shape",
    "dtype",
    "layout",
    "nonfinite",
    "values",
    "mutation",
    "aliasing",
    "memory",
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What one output tensor must be.

    Attributes:
        reference: exact values, float64 on the CPU, in the output's shape.
        dtype: dtype of the output.
        device: device of the output.
        earned: tolerance of its values.
        scale: magnitude below which errors are absolute; broadcast to the shape.
        checked: elements whose value the contract defines; broadcast to the shape. None: all.
        strides: strides of the output; None where the contract leaves them open.
    """

    reference: torch.Tensor
    dtype: torch.dtype
    device: torch.device
    earned: Earned
    scale: torch.Tensor | float = 0.0
    checked: torch.Tensor | None = None
    strides: tuple[int, ...] | None = None


Leaves = list[tuple[str, Any]]
_Pairs = list[tuple[str, "torch.Tensor", Expected]]


def flatten(structure: object, path: str = "output") -> Leaves:
    """Return the leaves of nested dictionaries, tuples and lists with their paths."""
    if isinstance(structure, Mapping):
        parts = [(f"{path}[{key!r}]", value) for key, value in structure.items()]
    elif isinstance(structure, (tuple, list)):
        parts = [(f"{path}[{i}]", value) for i, value in enumerate(structure)]
    else:
        return [(path, structure)]
    return [leaf for sub_path, value in parts for leaf in flatten(value, sub_path)]


def map_tensors(structure: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return nested dictionaries, tuples and lists with each tensor replaced."""
    if isinstance(structure, Mapping):
        return {key: map_tensors(item, change) for key, item in structure.items()}
    if isinstance(structure, (tuple, list)):
        return type(structure)([map_tensors(item, change) for item in structure])
    return change(structure) if _is_tensor(structure) else structure


def shares_storage(first: object, second: object) -> bool:
    """Say whether any tensor of one structure shares a byte of storage with one of another."""
    tensors = [leaf for _, leaf in flatten(second) if _is_tensor(leaf)]
    return any(overlap(a, b) for _, a in flatten(first) if _is_tensor(a) for b in tensors)


def judge(
    function: Callable[[], object],
    expected: object,
    guard: ArgumentGuard,
    aliases: bool = False,
    written: Mapping[str, Expected] | None = None,
) -> dict[str, Any]:
    """Call a function once and judge what it returns and what it did.

    Args:
        function: the callable under test, without arguments.
        expected: ``Expected`` leaves in the structure that the result must have; None for nothing.
        guard: the arguments, as they were made.
        aliases: whether the contract lets outputs share storage with arguments.
        written: what must stand in the arguments that the contract mutates, by name.

    Returns:
        ``status``, ``check`` and ``reason`` of the first failure, ``checks`` with the word on each
        check, and ``outputs`` with the errors of each output.
    """
    result = function()
    checks = dict.fromkeys(CHECKS, "not_run")
    outputs: list[dict[str, Any]] = []
    failures: list[tuple[str, str]] = []
    standing = [(name, guard.argument(name), want) for name, want in (written or {}).items()]
    for check, reason in _compare(result, expected, standing, outputs):
        checks[check] = "passed" if reason is None else "failed"
        if reason is not None:
            failures.append((check, reason))
    tensors = [(path, leaf) for path, leaf in flatten(result) if _is_tensor(leaf)]
    contract = [("mutation", guard.mutation())]
    if not aliases:
        contract.append(("aliasing", guard.alias(tensors)))
    contract.append(("memory", guard.stray()))
    for check, reason in contract:
        checks[check] = "passed" if reason is None else "failed"
        if reason is not None:
            failures.append((check, reason))
    first = failures[0] if failures else (None, None)
    return {
        "status": "failed" if failures else "passed",
        "check": first[0],
        "reason": first[1],
        "checks": checks,
        "outputs": outputs,
    }


def _compare(
    result: object, expected: object, standing: _Pairs, outputs: list[dict[str, Any]]
) -> Iterator[tuple[str, str | None]]:
    """Run the checks on values in order, up to the first that fails; yield each word."""
    reason = _structure(result, expected, "output")
    yield "structure", reason
    if reason is not None:
        return
    got = dict(flatten(result))
    returned = [] if expected is None else flatten(expected)
    pairs: _Pairs = [(path, got[path], want) for path, want in returned]
    pairs += [(f"argument '{name}'", tensor, want) for name, tensor, want in standing]
    for check, look in _CHECKS_BY_TENSOR:
        reason = _first(look(path, leaf, want) for path, leaf, want in pairs)
        yield check, reason
        if reason is not None:
            return
    yield "values", _first([_values(path, leaf, want, outputs) for path, leaf, want in pairs])


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


def _is_tensor(leaf: object) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor)


def _structure(result: object, expected: object, path: str) -> str | None:
    import torch

    if isinstance(expected, Expected):
        # A subclass could compute its values when looked at, or lie about them.
        if type(result) is not torch.Tensor or result.layout != torch.strided:
            return f"{path} must be a plain dense tensor, got {type(result).__name__}"
        return _plainness(result, path)
    if expected is None:
        return None if result is None else f"{path} must be None, got {type(result).__name__}"
    if isinstance(expected, Mapping):
        if not isinstance(result, Mapping) or set(result) != set(expected):
            got = list(result) if isinstance(result, Mapping) else type(result).__name__
            return f"{path} must be a mapping with the keys {list(expected)}, got {got}"
        parts = [(f"{path}[{k!r}]", result[k], expected[k]) for k in expected]
    elif isinstance(expected, (tuple, list)):
        kind = type(expected).__name__
        if not isinstance(result, type(expected)) or len(result) != len(expected):
            got = type(result).__name__
            got += f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
            return f"{path} must be a {kind} of {len(expected)}, got {got}"
        pairs = zip(result, expected, strict=True)
        parts = [(f"{path}[{i}]", r, e) for i, (r, e) in enumerate(pairs)]
    else:
        raise TypeError(f"{path}: a suite must expect tensors, got {type(expected).__name__}")
    return _first(_structure(r, e, p) for p, r, e in parts)


def _plainness(tensor: torch.Tensor, path: str) -> str | None:
    """Refuse what a reader of the memory, or of the framework's graph, would take for otherwise."""
    seen = {
        "a pending negation": tensor.is_neg(),
        "a pending conjugation": tensor.is_conj(),
        "requires_grad": tensor.requires_grad,
        "the mark of inference mode": tensor.is_inference(),
    }
    return _first(f"{path} must be a plain tensor, got one with {w}" for w, s in seen.items() if s)


def _shape(path: str, actual: torch.Tensor, want: Expected) -> str | None:
    if actual.shape == want.reference.shape:
        return None
    return f"{path}.shape must be {list(want.reference.shape)}, got {list(actual.shape)}"


def _dtype(path: str, actual: torch.Tensor, want: Expected) -> str | None:
    if actual.dtype == want.dtype:
        return None
    return f"{path}.dtype must be {want.dtype}, got {actual.dtype}"


def _layout(path: str, actual: torch.Tensor, want: Expected) -> str | None:
    if actual.device != want.device:
        return f"{path}.device must be {want.device}, got {actual.device}"
    if want.strides is not None and actual.stride() != want.strides:
        return f"{path}.stride() must be {list(want.strides)}, got {list(actual.stride())}"
    return None


def _nonfinite(path: str, actual: torch.Tensor, want: Expected) -> str | None:
    """Compare where NaN and infinities are.

    An infinity may also stand for an overflow; how far the reference is from the overflow threshold
    is a question of values, and left to them.
    """
    host, reference = actual.detach().cpu(), want.reference
    if bool(host.isfinite().all()) and bool(reference.isfinite().all()):
        return None
    fmt = format_of(actual.dtype)
    wrong = host.isnan() != reference.isnan()
    infinite = reference.isinf()
    wrong |= infinite & (host != reference)
    wrong |= host.isinf() & ~infinite & ~(reference.abs() >= fmt.largest)
    if want.checked is not None:
        wrong &= want.checked
    if not bool(wrong.any()):
        return None
    index = wrong.nonzero()[0].tolist()
    at = tuple(index)
    return (
        f"{path}{index} must be {float(reference[at])!r}, got {float(host[at])!r} "
        f"({int(wrong.sum())} such elements)"
    )


_CHECKS_BY_TENSOR: tuple[tuple[str, Callable[[str, Any, Expected], str | None]], ...] = (
    ("shape", _shape),
    ("dtype", _dtype),
    ("layout", _layout),
    ("nonfinite", _nonfinite),
)


def _values(
    path: str, actual: torch.Tensor, want: Expected, outputs: list[dict[str, Any]]
) -> str | None:
    host = actual.detach().cpu()
    # A NaN was compared by place; it has no error, and must not pass for an element without one.
    checked = want.checked
    if bool(want.reference.isnan().any()):
        defined = ~want.reference.isnan()
        checked = defined if checked is None else defined & checked
    errors = summarize(host, want.reference, want.scale, checked)
    row = _describe(path, host, want, errors)
    outputs.append(row)
    earned = want.earned
    if not earned.trustworthy:
        return (
            f"{path}: the suite's own baseline is {earned.worst:.3g} ULP from the reference, more "
            f"than {CEILING_ULP:g}; one of the two is wrong, so nothing can be judged"
        )
    if errors.count == 0 and host.numel() > 0:
        return f"{path}: none of {host.numel()} elements has a defined value; the case is vacuous"
    if errors.worst > earned.limit:
        worst = row["worst"]
        row["failing"] = failing = failing_slice(host, want.reference, want.scale, checked, earned)
        return (
            f"{path}{worst['index']} is {worst['actual']!r}, reference {worst['reference']!r}: "
            f"{errors.worst:.3f} ULP off, allowed are {earned.limit:.3f} "
            f"({failing['elements']} such elements, all in [{failing['slice']}])"
        )
    if errors.rms > earned.rms_limit:
        return (
            f"{path}: root mean square error is {errors.rms:.3f} ULP, allowed are "
            f"{earned.rms_limit:.3f}"
        )
    return None


def _describe(
    path: str, host: torch.Tensor, want: Expected, errors: ErrorSummary
) -> dict[str, Any]:
    import torch

    earned = want.earned
    worst = None
    if errors.index >= 0:
        index = [int(i) for i in torch.unravel_index(torch.tensor(errors.index), host.shape)]
        at = tuple(index)
        actual, reference = float(host[at]), float(want.reference[at])
        worst = {
            "index": index,
            "actual": actual,
            "reference": reference,
            "absolute_error": abs(actual - reference),
            "error_ulp": errors.worst,
        }
    return {
        "path": path,
        "elements": host.numel(),
        "checked_elements": errors.count,
        "max_error_ulp": errors.worst,
        "limit_ulp": earned.limit,
        "ratio": errors.worst / (earned.limit / earned.factor),
        "rms_error_ulp": errors.rms,
        "rms_limit_ulp": earned.rms_limit,
        "rms_ratio": errors.rms / (earned.rms_limit / earned.factor),
        "factor": earned.factor,
        "baseline_max_error_ulp": earned.worst,
        "baseline_rms_error_ulp": earned.rms,
        "baseline_draws": earned.draws,
        "worst": worst,
    }
