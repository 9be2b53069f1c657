"""One case of RMSNorm or a relative: its arguments, whom it applies to, what must come of it.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xllm_kernel.domain import TensorFacts
from xllm_kernel.numerics.bound import Arguments, Expectation, Recipe, bind_case
from xllm_kernel.numerics.memory import DENSE, Layout
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.compare import Expected

# A sum is one correct rounding of a quantity that two values determine: no other result is honest.
# A quarter of an ULP lets nothing pass but that value, beside a power of two too.
EXACT_FACTOR = 0.5

Inputs = Mapping[str, "torch.Tensor"]


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
            width = self.shape[-1]
            return None if width else "input.width: rows must have at least 1 element, got 0"
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
        recipe = Recipe(self.arguments, self._as_placed, self.layouts, frozenset(self.written))
        return bind_case(plan, recipe, {"eps_float32": float32(self.eps)})

    def arguments(self, number: int) -> dict[str, Any]:
        """Return the arguments of a call by name, tensors on the CPU."""
        from xllm_kernel.numerics.memory import poisoned

        made = self.make(number)
        like = made["input"]
        blank = {name: poisoned(like.shape, like.dtype) for name in self.written}
        return {**blank, **made, "eps": self.eps}

    def expect(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Return what must come of such arguments, dense ones."""
        raise NotImplementedError

    def _as_placed(self, arguments: Arguments, device: torch.device) -> Expectation:
        """Expect of arguments that are written the strides that they were placed with."""
        dense = self.expect(arguments, device)
        written = {
            name: replace(want, strides=self.layouts.get(name, DENSE).strides(self.shape))
            for name, want in dense.written.items()
        }
        return replace(dense, written=written)


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


def _dense_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    return TensorFacts.contiguous(tuple(tensor.shape), "", "").strides
