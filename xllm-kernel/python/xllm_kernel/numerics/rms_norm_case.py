"""One case of RMSNorm or a relative: its arguments, whom it applies to, what must come of it.

Imports PyTorch only when a case is prepared. References live in ``rms_norm_reference``.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from xllm_kernel.domain import TensorFacts
from xllm_kernel.numerics.bound import Arguments, Expectation, Recipe, bind_case
from xllm_kernel.numerics.memory import DENSE, Layout, touched_bytes
from xllm_kernel.numerics.suite import PreparedCase, Work
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
        recipe = Recipe(
            self.arguments, self.expect, self.layouts, frozenset(self.written), self.work
        )
        prepared = bind_case(plan, recipe, {"eps_float32": float32(self.eps)})
        empty = self._of_no_rows()
        if empty.unsupported_reason(plan) is not None:
            return prepared
        return dataclasses.replace(prepared, without_work=lambda: empty.prepare(plan))

    def _of_no_rows(self) -> FamilyCase:
        """Return the case of as wide rows, none of them."""

        def make(number: int) -> Inputs:
            made = self.make(number)
            rows = {name: a for name, a in made.items() if name != "weight"}
            empty = {name: a.new_empty((0, a.shape[-1])) for name, a in rows.items()}
            return {**empty, "weight": made["weight"]}

        shape = (0, self.shape[-1])
        return dataclasses.replace(self, shape=shape, make=make, layouts={})

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

    def work(self, arguments: Arguments) -> Work:
        """Return what a call with such arguments, as they lie, must at least do."""
        raise NotImplementedError


def float32(number: float) -> float:
    """Round a number to float32, as the contract does with eps."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


class Norm(NamedTuple):
    """What a norm must be, and how far the float32 formula of serving hosts is from it."""

    expected: Expected
    notes: Mapping[str, Any]


def norm_work(
    arguments: Arguments,
    read: Sequence[str],
    written_bytes: int,
    *,
    additions: int = 0,
    in_place: bool = False,
) -> Work:
    """Return what a norm of rows must at least do.

    Args:
        arguments: of the call, as they lie.
        read: names of those that are read, the input among them.
        written_bytes: of all results.
        additions: made to each element before it is normalised.
        in_place: whether the results replace what was read.
    """
    elements = arguments["input"].numel()
    if elements == 0:  # where there are no rows, nobody needs the weight
        return Work(0, 0, 0, in_place=in_place)
    rows = elements // arguments["input"].shape[-1]
    # An element is squared and added to the sum (2), scaled (1) and weighted (1); a row's sum is
    # divided by the width, eps added, the root taken and inverted (4).
    operations = (4 + additions) * elements + 4 * rows
    read_bytes = sum(touched_bytes(arguments[name]) for name in read)
    return Work(read_bytes, written_bytes, operations, in_place=in_place)


def fresh_bytes(like: torch.Tensor) -> int:
    """Return the bytes of a dense result of some tensor's shape and dtype."""
    return like.numel() * like.element_size()


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
