"""What the suites of RMSNorm and its relatives share: options, cases, domains, expectations.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

import argparse
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xllm_kernel.domain import FLOAT32_MAX, TensorFacts
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.bound import Arguments, Expectation, Recipe, bind_case
from xllm_kernel.numerics.captured import Recording, recordings
from xllm_kernel.numerics.memory import DENSE, Layout
from xllm_kernel.numerics.rms_norm_faults import FAULTS
from xllm_kernel.numerics.suite import NotTriedError, PreparedCase, Trial
from xllm_kernel.registry import KernelFunction, KernelRegistry, PreparedKernel

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.compare import Expected

DTYPES = ("bfloat16", "float16", "float32")
_DEFAULTS: Mapping[str, Any] = {
    "rows": (1, 16, 128, 4096),
    "widths": (512, 2048, 6144),
    "dtypes": ("bfloat16", "float16"),
    "weight_dtypes": ("same",),
    "eps": 1e-5,
    "seed": 5309,
}

# A sum is one correct rounding of a quantity that two values determine: no other result is honest.
# A quarter of an ULP lets nothing pass but that value, beside a power of two too.
EXACT_FACTOR = 0.5

# Between the seeds of a case's data sets: far enough that no other case starts there.
_SEED_STEP = 1_000_003

# Of trials: rows for several threads, and a last vector that is not full.
_TRIAL_SHAPE = (600, 513)

Inputs = Mapping[str, "torch.Tensor"]
Parts = Callable[[PreparedKernel, Mapping[str, Any]], Sequence["torch.Tensor"]]


@dataclass(frozen=True)
class FamilyCase:
    """One set of inputs; an operation's own says what must come of them.

    Attributes:
        case_id: identifier.
        parameters: JSON values.
        shape: extents of the input and of what must be like it.
        weight_shape: the weight's extents.
        dtype: the input's dtype.
        weight_dtype: the weight's dtype.
        eps: as given; the contract rounds it to float32.
        make: returns the tensors that are read, on the CPU, by name and in order of the call; the
            number picks the data as in ``bound.Recipe``.
        layouts: how tensors lie, by name; dense ones go without saying.
    """

    written: ClassVar[tuple[str, ...]] = ()
    """Names of the tensors, like the input and before it in a call, that are only written."""

    case_id: str
    parameters: Mapping[str, Any]
    shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    dtype: str
    weight_dtype: str
    eps: float
    make: Callable[[int], Inputs]
    layouts: Mapping[str, Layout] = field(default_factory=dict)

    def unsupported_reason(self, plan: PreparedKernel) -> str | None:
        """Ask the implementation's declared domain; without one its vendor accepts the dtypes."""
        domain = plan.spec.domain
        if domain is None:
            return None
        facts: dict[str, Any] = {"eps": self.eps}
        for name in domain.tensors:
            shape, dtype = self.shape, self.dtype
            if name == "weight":
                shape, dtype = self.weight_shape, self.weight_dtype
            layout = self.layouts.get(name, DENSE)
            facts[name] = TensorFacts(shape, layout.strides(shape), dtype, plan.spec.device)
        violation = domain.violation(facts)
        return None if violation is None else f"{violation.clause}: {violation.sentence}"

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Make the inputs on the CPU, move them, and bind the implementation to them."""
        recipe = Recipe(self.arguments, self.expect, self.layouts, frozenset(self.written))
        return bind_case(plan, recipe, {"eps_float32": float32(self.eps)})

    def arguments(self, number: int) -> dict[str, Any]:
        """Return the arguments of a call by name, tensors on the CPU."""
        from xllm_kernel.numerics.memory import poisoned

        made = self.make(number)
        like = made["input"]
        blank = {name: poisoned(like.shape, like.dtype) for name in self.written}
        return {**blank, **made, "eps": self.eps}

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what must come of such arguments."""
        raise NotImplementedError


def float32(number: float) -> float:
    """Round a number to float32, as the contract does with eps."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


class Norm(NamedTuple):
    """What a norm must be, and how far the float32 formula of serving hosts is from it."""

    expected: Expected
    notes: Mapping[str, Any]


def expect_norm(
    values: torch.Tensor, weight: torch.Tensor, eps: float, device: torch.device
) -> Norm:
    """Return what the norm of some values must be, in a dense tensor.

    Args:
        values: what the contract normalises, on the CPU.
        weight: on the CPU.
        eps: a float32 value.
        device: where the result must be.
    """
    from xllm_kernel.numerics import rms_norm_reference as oracle
    from xllm_kernel.numerics.compare import Expected
    from xllm_kernel.numerics.tolerance import summarize

    true = oracle.reference(values, weight, eps)
    checked = oracle.defined_rows(values, eps)
    scale = oracle.error_scale(weight)
    host = summarize(oracle.host_reference(values, weight, eps), true, scale, checked)
    expected = Expected(
        reference=true,
        dtype=values.dtype,
        device=device,
        earned=oracle.earned(values, weight, eps, true, checked),
        scale=scale,
        checked=checked,
        strides=_dense_strides(values),
    )
    errors = {"max_error_ulp": host.worst, "rms_error_ulp": host.rms}
    return Norm(expected, {"host_reference": errors})


def expect_sum(total: torch.Tensor, device: torch.device) -> Expected:
    """Return what a sum must be: exactly the rounded one, in a dense tensor.

    Args:
        total: ``rms_norm_reference.rounded_sum``, on the CPU.
        device: where the result must be.
    """
    from xllm_kernel.numerics.compare import Expected
    from xllm_kernel.numerics.tolerance import Earned

    return Expected(
        reference=total.double(),
        dtype=total.dtype,
        device=device,
        earned=Earned(factor=EXACT_FACTOR, worst=0.0, rms=0.0, draws=1),
        strides=_dense_strides(total),
    )


def part(plan: PreparedKernel, operation: str) -> KernelFunction:
    """Return another operation's bound callable, by the same solution.

    Raises:
        NotTriedError: where another solution is bound to it.
    """
    other = KernelRegistry.get().prepared(operation)
    if other.spec.solution != plan.spec.solution:
        raise NotTriedError(
            f"{operation} is bound to {other.spec.name}, another solution than {plan.spec.name}; "
            "remove its override"
        )
    return other.function


class FamilySuite:
    """Every case of one operation of the family."""

    def __init__(
        self,
        operation: str,
        implementations: tuple[str, ...],
        case: type[FamilyCase],
        tensors: tuple[str, ...],
        parts: Parts | None = None,
    ) -> None:
        """Take what differs between the operations.

        Args:
            operation: its name.
            implementations: full names.
            case: makes a case of inputs.
            tensors: names of the tensors that cases are made of; all but the weight like the input.
            parts: as a trial's.
        """
        self.operation, self.implementations = operation, implementations
        self._case, self._tensors, self._parts = case, tensors, parts
        self.faults = FAULTS

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that choose shapes, dtypes and data."""
        group = parser.add_argument_group(self.operation)
        add = group.add_argument
        add("--rows", type=int, nargs="+", metavar="N", help=_help("numbers of rows", "rows"))
        add("--widths", type=int, nargs="+", metavar="N", help=_help("row lengths", "widths"))
        add("--dtypes", choices=DTYPES, nargs="+", help=_help("dtypes", "dtypes"))
        shown = _help("the weight's: the input's own, or float32", "weight_dtypes")
        add("--weight-dtypes", choices=("same", "float32"), nargs="+", help=shown)
        add("--eps", type=float, help=_help("added to the mean square", "eps"))
        add("--seed", type=int, help=_help("seed of the inputs", "seed"))
        add("--inputs", type=Path, metavar="DIR", help="take inputs recorded from a model instead")

    def cases(self, args: argparse.Namespace) -> list[FamilyCase]:
        """Return the recorded cases of ``--inputs``, else the matrix of dtypes, rows and widths."""
        given = [name for name in _DEFAULTS if getattr(args, name) is not None]
        if args.inputs is not None:
            if given:
                raise ConfigurationError(
                    f"--inputs: the files say everything; remove --{', --'.join(given)}"
                )
            found = recordings(args.inputs, self.operation, self._tensors)
            return [self._recorded(recording) for recording in found]
        chosen = {n: getattr(args, n) if n in given else _DEFAULTS[n] for n in _DEFAULTS}
        _check(chosen)
        return [
            self._generated(dtypes, rows, width, chosen["eps"], chosen["seed"])
            for dtypes in _pairs(chosen["dtypes"], chosen["weight_dtypes"])
            for rows in chosen["rows"]
            for width in chosen["widths"]
        ]

    def trials(self, args: argparse.Namespace) -> list[Trial]:
        """Return a trial for each dtype."""
        dtypes = args.dtypes or _DEFAULTS["dtypes"]
        weights = args.weight_dtypes or _DEFAULTS["weight_dtypes"]
        return [self._trial(pair) for pair in _pairs(dtypes, weights)]

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Bind the implementation through the worker's initializer."""
        return bind(self.operation, device, mode, implementation)

    def _trial(self, dtypes: _Dtypes) -> Trial:
        rows, width = _TRIAL_SHAPE

        def make() -> dict[str, Any]:
            eps, seed = _DEFAULTS["eps"], _DEFAULTS["seed"]
            return self._generated(dtypes, rows, width, eps, seed).arguments(0)

        def subnormal() -> dict[str, Any]:
            # With eps 1 and squares that vanish beside it, a norm is its row; a sum of two values
            # below a quarter of the least normal one is subnormal, too.
            import torch

            arguments = make()
            least = torch.finfo(getattr(torch, dtypes.rows)).smallest_normal
            for name in self._tensors:
                arguments[name] = (arguments[name].float().abs().clamp(0.25, 3.5) / 16).to(
                    arguments[name].dtype
                ) * least
            arguments["weight"].fill_(1.0)
            return arguments | {"eps": 1.0}

        rowwise = tuple(name for name in (*self._case.written, *self._tensors) if name != "weight")
        return Trial(dtypes.name, rowwise, make, subnormal, self._parts)

    def _generated(
        self, dtypes: _Dtypes, rows: int, width: int, eps: float, seed: int
    ) -> FamilyCase:
        def make(number: int) -> Inputs:
            import torch

            generator = torch.Generator().manual_seed(seed + number * _SEED_STEP)
            kinds = {"weight": getattr(torch, dtypes.weight)}
            # Input and weight first: the same data in every suite of the family.
            order = ("input", "weight", *(n for n in self._tensors if n not in ("input", "weight")))
            made = {
                name: torch.randn(
                    (width,) if name == "weight" else (rows, width), generator=generator
                ).to(kinds.get(name, getattr(torch, dtypes.rows)))
                for name in order
            }
            return {name: made[name] for name in self._tensors}

        # The default eps goes without saying; another one makes another case.
        suffix = "" if eps == _DEFAULTS["eps"] else f"/eps{eps:g}"
        return self._case(
            case_id=f"{self.operation}/{dtypes.name}/{rows}x{width}/seed{seed}{suffix}",
            parameters={
                "dtype": dtypes.name,
                "rows": rows,
                "width": width,
                "eps": eps,
                "seed": seed,
            },
            shape=(rows, width),
            weight_shape=(width,),
            dtype=dtypes.rows,
            weight_dtype=dtypes.weight,
            eps=eps,
            make=make,
        )

    def _recorded(self, recording: Recording) -> FamilyCase:
        try:
            eps = float(recording.facts["eps"])
        except (KeyError, ValueError) as error:
            raise ConfigurationError(
                f"--inputs: {recording.path} must say eps as a number in its metadata"
            ) from error

        def make(number: int) -> Inputs:
            # Other data of the same kind: the recorded rows, each rolled by so many columns.
            tensors = recording.load()
            return {name: tensors[name].roll(number, -1) for name in self._tensors}

        shape, dtype = recording.shapes["input"], recording.dtypes["input"]
        return self._case(
            case_id=f"{self.operation}/recorded/{recording.name}",
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


class _Dtypes(NamedTuple):
    """Of the rows and of their weight."""

    rows: str
    weight: str

    @property
    def name(self) -> str:
        """Both, the latter only where it differs."""
        return self.rows if self.weight == self.rows else f"{self.rows}_by_{self.weight}"


def _pairs(dtypes: Sequence[str], weights: Sequence[str]) -> list[_Dtypes]:
    """Return each pair once, in the order of the options."""
    pairs = (_Dtypes(d, d if w == "same" else w) for w in weights for d in dtypes)
    return list(dict.fromkeys(pairs))


def _dense_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    return TensorFacts.contiguous(tuple(tensor.shape), "", "").strides


def _check(chosen: Mapping[str, Any]) -> None:
    for name in ("rows", "widths"):
        bad = [value for value in chosen[name] if value < 0]
        if bad:
            raise ConfigurationError(f"--{name}: must not be negative, got {bad[0]}")
    if not (math.isfinite(chosen["eps"]) and 0.0 <= chosen["eps"] <= FLOAT32_MAX):
        raise ConfigurationError(
            f"--eps: must be finite, not negative and a float32, got {chosen['eps']}"
        )


def _help(what: str, name: str) -> str:
    value = _DEFAULTS[name]
    shown = " ".join(map(str, value)) if isinstance(value, Sequence) else value
    return f"{what} (default: {shown})"
