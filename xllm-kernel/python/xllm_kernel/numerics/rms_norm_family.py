"""What the suites of RMSNorm and its relatives share: options, and which cases they ask for.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xllm_kernel.domain import FLOAT32_MAX
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.activations import excerpts
from xllm_kernel.numerics.binding import bind
from xllm_kernel.numerics.captured import recordings
from xllm_kernel.numerics.regimes import REGIMES, named
from xllm_kernel.numerics.rms_norm_case import FamilyCase
from xllm_kernel.numerics.rms_norm_faults import FAULTS
from xllm_kernel.numerics.rms_norm_inputs import ACTIVATIONS, DEFAULT_EPS, CaseMaker, Dtypes
from xllm_kernel.numerics.suite import NotTriedError, Trial
from xllm_kernel.registry import KernelFunction, KernelRegistry, PreparedKernel

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16", "float32")
_DEFAULTS: Mapping[str, Any] = {
    "rows": (1, 16, 128, 4096),
    "widths": (512, 2048, 6144),
    "dtypes": ("bfloat16", "float16"),
    "weight_dtypes": ("same",),
    "eps": DEFAULT_EPS,
    "seed": 5309,
}

_TEXTS = {
    **{regime.name: regime.text for regime in REGIMES},
    ACTIVATIONS: "rows that a language model fed to norms of several layers",
}

# Of trials: rows, which larger batches hold several times; a width that ends in part of a vector,
# and one for implementations that take only whole ones.
_TRIAL_ROWS, _TRIAL_WIDTHS = 300, (513, 576)

Parts = Callable[[PreparedKernel, Mapping[str, Any]], Sequence["torch.Tensor"]]


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
        self._maker, self._parts = CaseMaker(operation, case, tensors), parts
        self.faults = FAULTS

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that choose shapes, dtypes and data; a benchmark has no regimes."""
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
        if parser.get_default("kind") != "numerics":
            return
        add("--regimes", choices=("none", "all", *_TEXTS), nargs="+", help=_regimes_help())

    def cases(self, args: argparse.Namespace) -> list[FamilyCase]:
        """Return the recorded cases of ``--inputs``, else the matrix and then the regimes."""
        given = [name for name in _DEFAULTS if getattr(args, name) is not None]
        regimes = self._regimes(args, given)
        if args.inputs is not None:
            if given:
                raise ConfigurationError(
                    f"--inputs: the files say everything; remove --{', --'.join(given)}"
                )
            found = recordings(args.inputs, self.operation, self._maker.tensors)
            return [*map(self._maker.recorded, found), *self._in_regimes(regimes, args)]
        chosen = {n: getattr(args, n) if n in given else _DEFAULTS[n] for n in _DEFAULTS}
        _check(chosen)
        matrix = [
            self._maker.drawn(dtypes, rows, width, chosen["eps"], chosen["seed"])
            for dtypes in _pairs(chosen["dtypes"], chosen["weight_dtypes"])
            for rows in chosen["rows"]
            for width in chosen["widths"]
        ]
        return [*matrix, *self._in_regimes(regimes, args)]

    def trials(self, args: argparse.Namespace) -> list[Trial]:
        """Return trials for each dtype, the second for those whose domain lacks the first."""
        dtypes = args.dtypes or _DEFAULTS["dtypes"]
        weights = args.weight_dtypes or _DEFAULTS["weight_dtypes"]
        return [
            self._trial(pair, width) for pair in _pairs(dtypes, weights) for width in _TRIAL_WIDTHS
        ]

    def prepare(self, device: str, mode: str, implementation: str) -> PreparedKernel:
        """Bind the implementation through the worker's initializer."""
        return bind(self.operation, device, mode, implementation)

    def _regimes(self, args: argparse.Namespace, given: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the regimes that options ask for."""
        asked: Sequence[str] | None = getattr(args, "regimes", ("none",))
        if asked is None:
            # Whoever chooses shapes or data asks for those; dtypes and seeds hold for all cases.
            # Capturing costs up to seconds a case, and a regime says nothing of it.
            whole = args.inputs is None and not {"rows", "widths", "eps"} & set(given)
            whole = whole and getattr(args, "mode", "eager") == "eager"
            return tuple(_TEXTS) if whole else ()
        if len(asked) > 1 and {"none", "all"} & set(asked):
            raise ConfigurationError(
                f"--regimes: none and all stand alone, got {' '.join(asked)}; remove the others"
            )
        return {"none": (), "all": tuple(_TEXTS)}.get(asked[0], tuple(asked))

    def _in_regimes(self, names: Sequence[str], args: argparse.Namespace) -> list[FamilyCase]:
        pairs = _pairs(args.dtypes or DTYPES, args.weight_dtypes or _DEFAULTS["weight_dtypes"])
        seed = _DEFAULTS["seed"] if args.seed is None else args.seed
        found = [
            self._maker.in_regime(regime, variant, dtypes, seed)
            for regime in named(names)
            for dtypes in pairs
            for variant in regime.variants
        ]
        if ACTIVATIONS in names:
            found += [self._maker.active(e, dtypes) for dtypes in pairs for e in excerpts()]
        return found

    def _trial(self, dtypes: Dtypes, width: int) -> Trial:
        case = self._maker.drawn(dtypes, _TRIAL_ROWS, width, DEFAULT_EPS, _DEFAULTS["seed"])

        def make() -> dict[str, Any]:
            return case.arguments(0)

        def subnormal() -> dict[str, Any]:
            # With eps 1 and squares that vanish beside it, a norm is its row; a sum of two values
            # below a quarter of the least normal one is subnormal, too.
            import torch

            arguments = make()
            least = torch.finfo(getattr(torch, dtypes.rows)).smallest_normal
            for name in self._maker.tensors:
                arguments[name] = (arguments[name].float().abs().clamp(0.25, 3.5) / 16).to(
                    arguments[name].dtype
                ) * least
            arguments["weight"].fill_(1.0)
            return arguments | {"eps": 1.0}

        rowwise = (*self._maker.case.written, *self._maker.addends)
        return Trial(dtypes.name, rowwise, make, subnormal, self._parts, case.unsupported_reason)


def _pairs(dtypes: Sequence[str], weights: Sequence[str]) -> list[Dtypes]:
    """Return each pair once, in the order of the options."""
    pairs = (Dtypes(d, d if w == "same" else w) for w in weights for d in dtypes)
    return list(dict.fromkeys(pairs))


def _check(chosen: Mapping[str, Any]) -> None:
    if not 0 <= chosen["seed"] < 2**32:
        raise ConfigurationError(f"--seed: must be from 0 to 2^32 - 1, got {chosen['seed']}")
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


def _regimes_help() -> str:
    listed = "; ".join(f"{name}: {text}" for name, text in _TEXTS.items())
    return (
        "kinds of inputs beside the matrix, a few rows each, in all dtypes unless --dtypes says "
        f"otherwise (default: all; none in modes other than eager, and where --rows, --widths, "
        "--eps or --inputs is given): "
        f"{listed}"
    )
