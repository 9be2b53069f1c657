"""So many argument sets for one implementation: every boundary, then random ones, and the tally.

The same sets in every run. Prints nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from domains.agreement import Hearing, Judge, OutsideVoice
from domains.arguments import Arguments
from domains.boundaries import probes
from domains.strategies import argument_sets
from domains.voices import Subject

INSIDE, OUTSIDE = "inside", "outside"


@dataclass
class Tally:
    """What came of a campaign.

    Attributes:
        name: of the implementation.
        clauses: of its domain, by name.
        accepted: argument sets that the domain accepts.
        refused: argument sets by the clause that refused them.
        sides: who spoke about a clause's boundary sets, by clause and side.
        voices: argument sets by voice.
        disagreements: each with its argument set; of random ones the smallest of the first kind.
    """

    name: str
    clauses: tuple[str, ...]
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    sides: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    voices: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many argument sets were judged."""
        return self.accepted + self.refused.total()

    @property
    def one_sided(self) -> list[str]:
        """Clauses whose boundary was not met from both sides by more than the clause itself."""
        return [
            f"{name} {side}"
            for name in self.clauses
            for side in (INSIDE, OUTSIDE)
            if not self.sides[name, side] - {"clauses"}
        ]

    def count(self, heard: Hearing) -> None:
        """Note a verdict and who gave it."""
        if heard.clause is None:
            self.accepted += 1
        else:
            self.refused[heard.clause] += 1
        self.voices.update(heard.voices)


def run(subject: Subject, cases: int, others: Mapping[str, OutsideVoice] | None = None) -> Tally:
    """Judge argument sets of one implementation.

    Args:
        subject: the implementation.
        cases: how many sets; more where there are more at the boundaries.
        others: further voices, by name.
    """
    judge = Judge(subject, others)
    tally = Tally(subject.name, tuple(clause.name for clause in subject.domain.clauses))
    for probe in probes(subject.domain):
        heard = judge.hear(probe.arguments, None if probe.inside else probe.clause)
        tally.count(heard)
        tally.sides[probe.clause, INSIDE if probe.inside else OUTSIDE].update(heard.voices)
        tally.disagreements += [f"{one}\n  for {dict(probe.arguments)}" for one in heard.wrong]
    if cases > tally.cases:
        tally.disagreements += _judge_random(judge, cases - tally.cases, tally)
    return tally


class _DisagreementError(AssertionError):
    """Voices differ about a drawn argument set."""


def _judge_random(judge: Judge, cases: int, tally: Tally) -> list[str]:
    """Judge drawn sets; a disagreement is shrunk, and ends the drawing."""
    found = False

    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
    )
    @given(argument_sets(judge.subject.domain))
    def judge_one(arguments: Arguments) -> None:
        nonlocal found
        heard = judge.hear(arguments)
        if not found:  # what shrinking tries is not counted
            tally.count(heard)
        if heard.wrong:
            found = True
            raise _DisagreementError(_text(heard.wrong, arguments))

    try:
        judge_one()
    except _DisagreementError as error:
        return [str(error)]
    return []


def _text(wrong: list[str], arguments: Any) -> str:
    return "\n".join([*wrong, f"  for {dict(arguments)}"])
