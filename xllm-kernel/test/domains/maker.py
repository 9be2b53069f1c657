"""Argument sets inside a domain, read off its clauses; the rest starts from them. No operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from domains.arguments import Arguments, Laid, dense_strides
from xllm_kernel.clauses import (
    DeviceIs,
    DtypeIn,
    ExtentMultiple,
    FloatIn,
    Rank,
    SameDevice,
    SameDtype,
    SameExtent,
    SameShape,
)
from xllm_kernel.domain import Clause, Domain

WIDTH = 40
LEADING = (3,)
_Kind = TypeVar("_Kind", bound=Clause)


class Maker:
    """Makes argument sets of a domain; what nobody asks for is inside of it.

    Tensors that must be alike follow the one they must be like, changes to it included, so that a
    change violates no clause but those it is meant to.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._clauses: dict[tuple[str, type[Clause]], Clause] = {
            (clause.argument, type(clause)): clause for clause in domain.clauses
        }

    def find(self, argument: str, kind: type[_Kind]) -> _Kind | None:
        """Return the clause of a kind that an argument has."""
        found = self._clauses.get((argument, kind))
        return found if isinstance(found, kind) else None

    def first(self, kind: type[_Kind]) -> _Kind | None:
        """Return the first clause of a kind that any argument has."""
        return next((c for c in self.domain.clauses if isinstance(c, kind)), None)

    @property
    def width(self) -> int:
        multiple = self.first(ExtentMultiple)
        return 2 * multiple.step if multiple else WIDTH

    @property
    def dtypes(self) -> tuple[str, ...]:
        """What the tensors of rows may have."""
        allowed = self.first(DtypeIn)
        return allowed.allowed if allowed else ("float32",)

    @property
    def device(self) -> str:
        """Where the domain wants tensors, by the full name that a tensor gives."""
        wanted = self.first(DeviceIs)
        if wanted is None or wanted.device == "cpu":
            return "cpu"
        return f"{wanted.device}:0"

    def make(
        self,
        changes: Mapping[str, Any] | None = None,
        *,
        leading: tuple[int, ...] = LEADING,
        width: int | None = None,
        dtype: str | None = None,
    ) -> Arguments:
        """Return an argument set.

        Args:
            changes: by argument: fields of ``Laid`` to replace, or the value of a number, or
                whatever is to stand in a tensor's place.
            leading: extents before the last, of tensors of rows.
            width: their last extent.
            dtype: their dtype.
        """
        changes = changes or {}
        base = (*leading, self.width if width is None else width)
        made: dict[str, Any] = {}
        for name in self.domain.tensors:
            self._lay(name, changes, base, dtype or self.dtypes[0], made)
        for name in self.domain.numbers:
            made[name] = changes.get(name, self._number(name))
        return {name: made[name] for name in (*self.domain.tensors, *self.domain.numbers)}

    def _lay(
        self,
        name: str,
        changes: Mapping[str, Any],
        base: tuple[int, ...],
        dtype: str,
        made: dict[str, Any],
    ) -> Any:
        if name in made:
            return made[name]

        def other(clause: Any) -> Any:
            return self._lay(clause.other, changes, base, dtype, made) if clause else None

        shape = self._shape(name, base, other)
        like = other(self.find(name, SameDtype))
        near = other(self.find(name, SameDevice))
        laid = Laid(
            shape,
            dense_strides(shape),
            like.dtype if isinstance(like, Laid) else dtype,
            near.device if isinstance(near, Laid) else self.device,
            memory=self.domain.tensors.index(name),
        )
        change = changes.get(name, {})
        if not isinstance(change, Mapping):
            made[name] = change
            return change
        if "shape" in change and "strides" not in change:
            change = {**change, "strides": dense_strides(change["shape"])}
        made[name] = dataclasses.replace(laid, **change)
        return made[name]

    def _shape(self, name: str, base: tuple[int, ...], other: Any) -> tuple[int, ...]:
        same, extent = self.find(name, SameShape), self.find(name, SameExtent)
        if same:
            model = other(same)
            return model.shape if isinstance(model, Laid) else base
        if not extent:
            return base
        model, rank = other(extent), self.find(name, Rank)
        wide = model.shape[extent.other_axis] if isinstance(model, Laid) and model.shape else 1
        shape = [1] * (rank.minimum if rank else 1)
        shape[extent.axis] = wide
        return tuple(shape)

    def _number(self, name: str) -> float:
        interval = self.find(name, FloatIn)
        if interval is None:
            return 1.0
        return min(max(1e-5, interval.minimum), interval.maximum)
