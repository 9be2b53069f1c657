"""The suite of RMSNorm: arguments, inputs, expectations, supported domain.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

import argparse
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xllm_kernel.domain import FLOAT32_MAX, TensorFacts
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.captured import Recording, recordings
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16", "float32")
_DEFAULTS: Mapping[str, Any] = {
    "rows": (1, 16, 128, 4096),
    "widths": (512, 2048, 6144),
    "dtypes": ("bfloat16", "float16"),
    "eps": 1e-5,
    "seed": 5309,
}

Inputs = tuple["torch.Tensor", "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class RmsNormCase:
    """One input and weight.

    Attributes:
        case_id: identifier.
        parameters: JSON values.
        shape: the input's extents.
        weight_shape: the weight's extents.
        dtype: the input's dtype.
        weight_dtype: the weight's dtype.
        eps: as given; the contract rounds it to float32.
        make: returns input and weight on the CPU.
    """

    case_id: str
    parameters: Mapping[str, Any]
    shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    dtype: str
    weight_dtype: str
    eps: float
    make: Callable[[], Inputs]

    def unsupported_reason(self, plan: PreparedKernel) -> str | None:
        """Ask the implementation's declared domain; without one its vendor accepts the dtypes."""
        domain = plan.spec.domain
        if domain is None:
            return None
        device = plan.spec.device
        violation = domain.violation(
            {
                "input": TensorFacts.contiguous(self.shape, self.dtype, device),
                "weight": TensorFacts.contiguous(self.weight_shape, self.weight_dtype, device),
                "eps": self.eps,
            }
        )
        return None if violation is None else f"{violation.clause}: {violation.sentence}"

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, and bind the implementation to them."""
        values, weight = (tensor.to(plan.spec.device) for tensor in self.make())
        function, eps = plan.function, self.eps
        return PreparedCase(
            function=lambda: function(values, weight, eps),
            validate=_validator(values, weight, eps, plan),
            metadata={
                "input_strides": list(values.stride()),
                "weight_strides": list(weight.stride()),
                "eps_float32": _float32(eps),
            },
        )


def _validator(
    input: torch.Tensor, weight: torch.Tensor, eps: float, plan: PreparedKernel
) -> Callable[[Callable[[], object]], dict[str, Any]]:
    """Compute what the result must be, once, and return the judge of one call."""
    from xllm_kernel.domain import TensorFacts
    from xllm_kernel.numerics import rms_norm_reference as oracle
    from xllm_kernel.numerics.compare import Expected, judge
    from xllm_kernel.numerics.storage import ArgumentGuard
    from xllm_kernel.numerics.tolerance import summarize

    contract = plan.spec.contract
    guard = ArgumentGuard({"input": input, "weight": weight}, contract.mutates)
    host_input, host_weight, eps32 = input.cpu(), weight.cpu(), _float32(eps)
    true = oracle.reference(host_input, host_weight, eps32)
    checked = oracle.defined_rows(host_input, eps32)
    scale = oracle.error_scale(host_weight)
    expected = Expected(
        reference=true,
        dtype=input.dtype,
        device=input.device,
        earned=oracle.earned(host_input, host_weight, eps32, true, checked),
        scale=scale,
        checked=checked,
        strides=TensorFacts.contiguous(tuple(input.shape), "", "").strides,
    )
    host = summarize(oracle.host_reference(host_input, host_weight, eps32), true, scale, checked)

    def validate(function: Callable[[], object]) -> dict[str, Any]:
        result = judge(function, expected, guard, contract.aliases_inputs)
        result["host_reference"] = {"max_error_ulp": host.worst, "rms_error_ulp": host.rms}
        return result

    return validate


class RmsNormSuite:
    """Every case of the operation."""

    operation = "rms_norm"
    implementations = ("cpu.simd.rms_norm", "cpu.torch.rms_norm", "npu.xllm_native.rms_norm")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that choose shapes, dtypes and data."""
        group = parser.add_argument_group("rms_norm")
        add = group.add_argument
        add("--rows", type=int, nargs="+", metavar="N", help=_help("numbers of rows", "rows"))
        add("--widths", type=int, nargs="+", metavar="N", help=_help("row lengths", "widths"))
        add("--dtypes", choices=DTYPES, nargs="+", help=_help("dtypes", "dtypes"))
        add("--eps", type=float, help=_help("added to the mean square", "eps"))
        add("--seed", type=int, help=_help("seed of the inputs", "seed"))
        add("--inputs", type=Path, metavar="DIR", help="take inputs recorded from a model instead")

    def cases(self, args: argparse.Namespace) -> list[RmsNormCase]:
        """Return the recorded cases of ``--inputs``, else the matrix of dtypes, rows and widths."""
        given = [name for name in _DEFAULTS if getattr(args, name) is not None]
        if args.inputs is not None:
            if given:
                raise ConfigurationError(
                    f"--inputs: the files say everything; remove --{', --'.join(given)}"
                )
            found = recordings(args.inputs, self.operation, ("input", "weight"))
            return [_recorded(recording) for recording in found]
        chosen = {n: getattr(args, n) if n in given else _DEFAULTS[n] for n in _DEFAULTS}
        _check(chosen)
        return [
            _generated(dtype, rows, width, chosen["eps"], chosen["seed"])
            for dtype in chosen["dtypes"]
            for rows in chosen["rows"]
            for width in chosen["widths"]
        ]

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Bind the implementation through the worker's initializer."""
        return bind(self.operation, device, mode, implementation)


SUITE = RmsNormSuite()


def _generated(dtype: str, rows: int, width: int, eps: float, seed: int) -> RmsNormCase:
    def make() -> Inputs:
        import torch

        generator = torch.Generator().manual_seed(seed)
        values = torch.randn(rows, width, generator=generator)
        weight = torch.randn(width, generator=generator)
        kind = getattr(torch, dtype)
        return values.to(kind), weight.to(kind)

    # The default eps goes without saying; another one makes another case.
    suffix = "" if eps == _DEFAULTS["eps"] else f"/eps{eps:g}"
    return RmsNormCase(
        case_id=f"rms_norm/{dtype}/{rows}x{width}/seed{seed}{suffix}",
        parameters={"dtype": dtype, "rows": rows, "width": width, "eps": eps, "seed": seed},
        shape=(rows, width),
        weight_shape=(width,),
        dtype=dtype,
        weight_dtype=dtype,
        eps=eps,
        make=make,
    )


def _recorded(recording: Recording) -> RmsNormCase:
    try:
        eps = float(recording.facts["eps"])
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"--inputs: {recording.path} must say eps as a number in its metadata"
        ) from error

    def make() -> Inputs:
        tensors = recording.load()
        return tensors["input"], tensors["weight"]

    shape, dtype = recording.shapes["input"], recording.dtypes["input"]
    return RmsNormCase(
        case_id=f"rms_norm/recorded/{recording.name}",
        parameters={
            "dtype": dtype,
            "shape": list(shape),
            "eps": eps,
            "name": recording.facts.get("name", recording.name),
            "source": recording.facts.get("source", ""),
        },
        shape=shape,
        weight_shape=recording.shapes["weight"],
        dtype=dtype,
        weight_dtype=recording.dtypes["weight"],
        eps=eps,
        make=make,
    )


def _check(chosen: Mapping[str, Any]) -> None:
    for name in ("rows", "widths"):
        bad = [value for value in chosen[name] if value < 0]
        if bad:
            raise ConfigurationError(f"--{name}: must not be negative, got {bad[0]}")
    if not (math.isfinite(chosen["eps"]) and 0.0 <= chosen["eps"] <= FLOAT32_MAX):
        raise ConfigurationError(
            f"--eps: must be finite, not negative and a float32, got {chosen['eps']}"
        )


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _help(what: str, name: str) -> str:
    value = _DEFAULTS[name]
    shown = " ".join(map(str, value)) if isinstance(value, Sequence) else value
    return f"{what} (default: {shown})"
