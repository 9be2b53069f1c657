"""Bind an implementation to a case's arguments, and judge it by what a suite expects of them.

A suite says which arguments there are and what must come of them; how they are placed, watched,
put back and replaced by other ones of their kind is the same for every operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.memory import DENSE, Layout, place, write
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.numerics.suite import PreparedCase, Reset, Work, ZeroArgument
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.compare import Expected

# References of larger cases cost more memory than time.
_REMEMBERED_ELEMENTS = 1 << 18

Arguments = Mapping[str, Any]
"""By name, in the order of the call: tensors and numbers."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come of a call.

    Attributes:
        returned: ``Expected`` leaves in the structure of the result; None where nothing returns.
        written: what must stand in the arguments that the contract mutates, by name.
        notes: what the suite adds to a verdict, as JSON values.
    """

    returned: object
    written: Mapping[str, Expected] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a suite says of one case's arguments.

    Attributes:
        make: returns them, tensors on the CPU; a number picks the data: 0 the case's own, others
            different ones of the same shapes and kind.
        expect: says what must come of them, given on the CPU, and where the results must be.
        layouts: how tensors lie, by name; dense ones go without saying.
        only_written: names of those that no call reads.
        work: says what a call must at least do, given the arguments as they lie; None where the
            suite does not.
    """

    make: Callable[[int], Arguments]
    expect: Callable[[Arguments, torch.device], Expectation]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    only_written: frozenset[str] = frozenset()
    work: Callable[[Arguments], Work] | None = None


class _Bound:
    """Placed arguments, with the data that stand in them and what must come of those."""

    def __init__(self, plan: PreparedKernel, recipe: Recipe) -> None:
        self._plan, self._recipe = plan, recipe
        self._known: dict[int, tuple[Arguments, Expectation]] = {}
        made = recipe.make(0)
        self.arguments = {
            name: place(value, plan.spec.device, recipe.layouts.get(name, DENSE))
            if is_tensor(value)
            else value
            for name, value in made.items()
        }
        self._strides = {n: a.stride() for n, a in self.arguments.items() if is_tensor(a)}
        self._watch(made, self._expect(0, made))

    def renew(self, number: int) -> None:
        """Put other data into the same memory; they are what is judged from now on."""
        known = self._known.get(number)
        made = self._recipe.make(number) if known is None else known[0]
        # The whole storage returns to what it was, so that no result of earlier data is left.
        self._guard.restore()
        for name, value in made.items():
            if is_tensor(value):
                write(self.arguments[name], value)
        self._watch(made, self._expect(number, made) if known is None else known[1])

    def judge(self, function: ZeroArgument) -> dict[str, Any]:
        """Call a function once and judge what came of it."""
        from xllm_kernel.numerics.compare import judge

        expectation = self._expectation
        aliases = self._plan.spec.contract.aliases_inputs
        verdict = judge(function, expectation.returned, self._guard, aliases, expectation.written)
        return {**verdict, **expectation.notes}

    def reset(self) -> None:
        """Put back what the contract lets calls write to."""
        self._guard.reset()

    def _expect(self, number: int, made: Arguments) -> Expectation:
        """Return what must come of data; of a small case it is remembered, with the data."""
        tensors = [a for a in self.arguments.values() if is_tensor(a)]
        expectation = self._recipe.expect(made, tensors[0].device)
        if sum(tensor.numel() for tensor in tensors) <= _REMEMBERED_ELEMENTS:
            self._known[number] = made, expectation
        return expectation

    def _watch(self, made: Arguments, expectation: Expectation) -> None:
        from xllm_kernel.numerics.storage import ArgumentGuard

        tensors = {name: a for name, a in self.arguments.items() if is_tensor(a)}
        # What is written keeps the strides that its layout gave it.
        written = {
            name: replace(expected, strides=self._strides[name])
            for name, expected in expectation.written.items()
        }
        self._expectation = replace(expectation, written=written)
        changes = [
            name
            for name, expected in self._expectation.written.items()
            if _must_change(expected, made[name])
        ]
        self._guard = ArgumentGuard(tensors, self._plan.spec.contract.mutates, changes)


def bind_case(
    plan: PreparedKernel, recipe: Recipe, metadata: Mapping[str, Any] | None = None
) -> PreparedCase:
    """Place a case's arguments and bind an implementation to them.

    Args:
        plan: the implementation.
        recipe: the suite's word on the arguments.
        metadata: facts for the report, beside the strides of the tensors.
    """
    bound = _Bound(plan, recipe)
    # Tensors of its own over the same memory: what becomes of them says nothing of the memory's.
    values = tuple(a.detach() if is_tensor(a) else a for a in bound.arguments.values())
    function = plan.function
    strides = {
        f"{name}_strides": list(value.stride())
        for name, value in bound.arguments.items()
        if is_tensor(value)
    }
    mutates = set(plan.spec.contract.mutates) & set(bound.arguments)
    reset = Reset(bound.reset, every_call=not mutates <= recipe.only_written) if mutates else None
    return PreparedCase(
        function=lambda: function(*values),
        validate=bound.judge,
        metadata={**strides, **(metadata or {})},
        reset=reset,
        refresh=bound.renew,
        arguments=bound.arguments,
        expect=recipe.expect,
        work=None if recipe.work is None else recipe.work(bound.arguments),
    )


def _must_change(expected: Expected, now: torch.Tensor) -> bool:
    """Say whether an honest kernel cannot leave a tensor as it is."""
    if now.numel() == 0:
        return False
    reference, now = expected.reference, now.double()
    stays = (reference - now).abs() <= 2.0**-6 * reference.abs()
    # Poison is a NaN, and no result of an honest kernel where the reference is a number.
    return bool((~stays & ~reference.isnan()).any())
