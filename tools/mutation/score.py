"""What a module's mutants came to, and the report of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mutation.explained import Explained
from mutation.trial import Outcome

if TYPE_CHECKING:
    from mutation.mutants import Mutant

TARGET_PERCENT = 90


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one module, or of all.

    Attributes:
        name: the module, or ``"total"``.
        places: mutants that could be made.
        sampled: mutants that were run.
        killed: how many a test noticed by failing.
        timeouts: how many a test noticed by never ending.
        explained: survivors on the list.
        survivors: all other ones.
    """

    name: str
    places: int
    sampled: int
    killed: int
    timeouts: int
    explained: int
    survivors: tuple[Mutant, ...] = field(default=(), repr=False)

    @property
    def percent(self) -> float:
        """Share that was noticed of what could be; 0 where nothing could be."""
        noticed = self.killed + self.timeouts
        possible = noticed + len(self.survivors)
        return 100 * noticed / possible if possible else 0.0

    @classmethod
    def of(
        cls,
        name: str,
        places: int,
        outcomes: Iterable[tuple[Mutant, Outcome]],
        explained: Iterable[Explained],
    ) -> Score:
        """Count outcomes; a survivor on the list stands apart."""
        outcomes = list(outcomes)
        known = {(e.module, e.removed, e.added) for e in explained}
        alive = [m for m, outcome in outcomes if outcome is Outcome.SURVIVED]
        loose = tuple(m for m in alive if (m.module, m.removed, m.added) not in known)
        return cls(
            name,
            places,
            len(outcomes),
            sum(outcome is Outcome.KILLED for _, outcome in outcomes),
            sum(outcome is Outcome.TIMEOUT for _, outcome in outcomes),
            len(alive) - len(loose),
            loose,
        )

    @classmethod
    def total(cls, scores: Iterable[Score]) -> Score:
        """Add up modules' counts."""
        scores = list(scores)
        return cls(
            "total",
            sum(s.places for s in scores),
            sum(s.sampled for s in scores),
            sum(s.killed for s in scores),
            sum(s.timeouts for s in scores),
            sum(s.explained for s in scores),
            tuple(m for s in scores for m in s.survivors),
        )


def table(scores: list[Score]) -> Iterator[str]:
    """Yield a line for each module and one for all."""
    columns = ("mutants", "sampled", "killed", "timeout", "explained", "survived", "score")
    yield f"{'module':<26}" + "".join(f"{name:>10}" for name in columns)
    for s in [*scores, Score.total(scores)]:
        counts = (s.places, s.sampled, s.killed, s.timeouts, s.explained, len(s.survivors))
        yield f"{s.name:<26}" + "".join(f"{n:>10}" for n in counts) + f"{s.percent:>8.1f} %"


def describe(mutant: Mutant) -> str:
    """Write a survivor as the list of explained ones has it, with its place in a comment."""
    where = f"# {mutant.module}:{mutant.site.line} in {mutant.site.definition or 'the module'}"
    by = mutant.site.operator.partition("/")[2]
    lines = [f"{where}, {by}", mutant.module, f"- {mutant.removed}"]
    return "\n".join([*lines, *([f"+ {mutant.added}"] if mutant.added else [])])
