"""The arguments of RMSNorm and its relatives: drawn, of a regime, recorded; as cases of a suite.

Imports PyTorch only when a case is prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.activations import Excerpt
from xllm_kernel.numerics.captured import Recording
from xllm_kernel.numerics.memory import Form, Layout
from xllm_kernel.numerics.regimes import Regime, Variant
from xllm_kernel.numerics.rms_norm_case import FamilyCase, Inputs

if TYPE_CHECKING:
    import torch

DEFAULT_EPS = 1e-5
ACTIVATIONS = "activations"
"""The regime whose rows come from a model."""

# Between the seeds of a case's data sets: far enough that no other case starts there.
_SEED_STEP = 1_000_003


class Dtypes(NamedTuple):
    """Of the rows and of their weight."""

    rows: str
    weight: str

    @property
    def name(self) -> str:
        """Both, the latter only where it differs."""
        return self.rows if self.weight == self.rows else f"{self.rows}_by_{self.weight}"


@dataclass(frozen=True, slots=True)
class CaseMaker:
    """Makes the cases of one operation.

    Attributes:
        operation: its name.
        case: its kind of case.
        tensors: names of the tensors that cases are made of; all but the weight like the input.
    """

    operation: str
    case: type[FamilyCase]
    tensors: tuple[str, ...]

    @property
    def addends(self) -> tuple[str, ...]:
        """Names of the tensors whose sum is normalised."""
        return tuple(name for name in self.tensors if name != "weight")

    def drawn(self, dtypes: Dtypes, rows: int, width: int, eps: float, seed: int) -> FamilyCase:
        """Return a case of normal draws."""

        def make(number: int) -> Inputs:
            import torch

            generator = torch.Generator().manual_seed(seed + number * _SEED_STEP)
            kinds = {"weight": getattr(torch, dtypes.weight)}
            # Input and weight first: the same data in every suite of the family.
            order = ("input", "weight", *(n for n in self.tensors if n not in ("input", "weight")))
            made = {
                name: torch.randn(
                    (width,) if name == "weight" else (rows, width), generator=generator
                ).to(kinds.get(name, getattr(torch, dtypes.rows)))
                for name in order
            }
            return {name: made[name] for name in self.tensors}

        name = f"{self.operation}/{dtypes.name}/{rows}x{width}/seed{seed}{_suffix(eps)}"
        facts = {"dtype": dtypes.name, "rows": rows, "width": width, "eps": eps, "seed": seed}
        return self._case(name, facts, (rows, width), dtypes, eps, make)

    def in_regime(self, regime: Regime, variant: Variant, dtypes: Dtypes, seed: int) -> FamilyCase:
        """Return a case of a regime; what is normalised, the sum of all addends, is of its kind."""

        def make(number: int) -> Inputs:
            import torch

            from xllm_kernel.numerics.regime_rows import Scale

            generator = torch.Generator().manual_seed(seed + number * _SEED_STEP)
            width = variant.shape[-1]
            dtype, weight_dtype = getattr(torch, dtypes.rows), getattr(torch, dtypes.weight)
            draw = torch.randn(variant.shape, generator=generator, dtype=torch.float64)
            weight = torch.randn(width, generator=generator, dtype=torch.float64)
            rows = variant.fill(draw, Scale.of(dtype, width))
            if variant.shared is not None:
                weight = variant.shared(weight, Scale.of(weight_dtype, width))
            parts = split(rows, len(self.addends), dtype)
            return {
                **dict(zip(self.addends, parts, strict=True)),
                "weight": weight.to(weight_dtype),
            }

        shape, layout = variant.shape, variant.layout
        eps = DEFAULT_EPS if variant.eps is None else variant.eps
        name = f"{self.operation}/{dtypes.name}/{'x'.join(map(str, shape))}/seed{seed}"
        label = f"/{variant.label}" if variant.label else ""
        facts: dict[str, Any] = {"dtype": dtypes.name, "shape": list(shape), "eps": eps}
        facts |= {"seed": seed, "regime": regime.name}
        facts |= {"variant": variant.label} if variant.label else {}
        # What is only written may not lie so that elements share memory, or far apart.
        written = self.case.written if layout.form is Form.ROWS else ()
        layouts = dict.fromkeys((*written, *self.addends), layout)
        return self._case(
            f"{name}{_suffix(eps)}/{regime.name}{label}",
            facts,
            shape,
            dtypes,
            eps,
            make,
            {**layouts, "weight": Layout(offset=layout.offset)},
        )

    def active(self, excerpt: Excerpt, dtypes: Dtypes) -> FamilyCase:
        """Return a case of a model's activations, rounded to the dtypes."""

        def make(number: int) -> Inputs:
            import torch

            dtype, weight_dtype = getattr(torch, dtypes.rows), getattr(torch, dtypes.weight)
            tensors = {name: t.roll(number, -1) for name, t in excerpt.load().items()}
            parts = [tensors["addend"], tensors["residual"]]
            if len(self.addends) == 1:
                parts = [parts[0] + parts[1]]
            made = dict(zip(self.addends, (part.to(dtype) for part in parts), strict=True))
            return {**made, "weight": tensors["weight"].to(weight_dtype)}

        rows, width = excerpt.shape
        name = f"{self.operation}/{dtypes.name}/{rows}x{width}/{excerpt.name}/{ACTIVATIONS}"
        facts = {
            "dtype": dtypes.name,
            "shape": [rows, width],
            "eps": excerpt.eps,
            "regime": ACTIVATIONS,
            "name": excerpt.name,
            "source": excerpt.source,
        }
        return self._case(name, facts, excerpt.shape, dtypes, excerpt.eps, make)

    def recorded(self, recording: Recording) -> FamilyCase:
        """Return the case of a recorded call.

        Raises:
            ConfigurationError: where its file does not say eps.
        """
        try:
            eps = float(recording.facts["eps"])
        except (KeyError, ValueError) as error:
            raise ConfigurationError(
                f"--inputs: {recording.path} must say eps as a number in its metadata"
            ) from error

        def make(number: int) -> Inputs:
            # Other data of the same kind: the recorded rows, each rolled by so many columns.
            tensors = recording.load()
            return {name: tensors[name].roll(number, -1) for name in self.tensors}

        shape, dtype = recording.shapes["input"], recording.dtypes["input"]
        return self.case(
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

    def _case(
        self,
        case_id: str,
        parameters: Mapping[str, Any],
        shape: tuple[int, ...],
        dtypes: Dtypes,
        eps: float,
        make: Callable[[int], Inputs],
        layouts: Mapping[str, Layout] | None = None,
    ) -> FamilyCase:
        return self.case(
            case_id=case_id,
            parameters=parameters,
            shape=shape,
            weight_shape=shape[-1:],
            dtype=dtypes.rows,
            weight_dtype=dtypes.weight,
            eps=eps,
            make=make,
            layouts=layouts or {},
        )


def split(rows: torch.Tensor, count: int, dtype: torch.dtype) -> Sequence[torch.Tensor]:
    """Return one or two tensors of a dtype whose sum is that of some rows, but for rounding.

    Of two, the second is a quarter of the sum. A nonfinite element comes from one of them alone,
    each in turn.

    Args:
        rows: float64.
        count: how many.
        dtype: theirs.
    """
    if count == 1:
        return [rows.to(dtype)]
    first_only, second_only = _in_turn(~rows.isfinite())
    second = (rows / 4.0).masked_fill(first_only, 0.25).to(dtype)
    first = (rows - second).where(rows != 0.0, rows)  # a zero keeps its sign
    return [first.where(~first_only, rows).masked_fill(second_only, 0.5).to(dtype), second]


def _in_turn(marked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Deal out the marked elements to two masks."""
    odd = (marked.flatten().cumsum(0) % 2 == 1).view(marked.shape)
    return marked & odd, marked & ~odd


def _suffix(eps: float) -> str:
    """Return what an identifier says of eps: the default goes without saying."""
    return "" if eps == DEFAULT_EPS else f"/eps{eps:g}"
