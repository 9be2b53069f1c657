"""Whether all voices say the same about an argument set. Draws nothing; knows no operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch._subclasses.fake_tensor import FakeTensorMode

from domains.arguments import Arguments, Laid, UnmakeableError, fits, is_small
from domains.voices import (
    Subject,
    Word,
    word_of_call,
    word_of_check,
    word_of_clauses,
    word_of_fake,
)

UNKNOWN = ""


class OutsideVoice(Protocol):
    """A voice of another language, which has clauses but not the sentences."""

    def can_say(self, arguments: Arguments) -> bool:
        """Say whether it can be asked."""

    def disagreement(self, arguments: Arguments) -> str | None:
        """Return how it differs from the domain; None where it agrees."""


@dataclass
class Hearing:
    """What was heard about one argument set.

    Attributes:
        clause: the domain's verdict: the clause that refuses, None for accepted.
        wrong: what disagrees with it.
        voices: names of those who spoke.
    """

    clause: str | None
    wrong: list[str] = field(default_factory=list)
    voices: list[str] = field(default_factory=list)


class Judge:
    """Asks every voice of an implementation about argument sets, and compares."""

    def __init__(self, subject: Subject, others: Mapping[str, OutsideVoice] | None = None) -> None:
        """Prepare for one implementation; ``others`` are further voices by name."""
        self.subject = subject
        self._others = others or {}
        self._mode = FakeTensorMode()

    def hear(self, arguments: Arguments, claimed: str | None = UNKNOWN) -> Hearing:
        """Ask all who can speak.

        Args:
            arguments: the argument set.
            claimed: the clause that must refuse it, None for none.
        """
        expected = self._expected(arguments)
        heard = Hearing(expected.clause)
        if claimed not in (UNKNOWN, expected.clause):
            heard.wrong.append(f"made to be {_said(claimed)}, was {_said(expected.clause)}")
        _compare(heard, "clauses", word_of_clauses(self.subject, arguments), expected)
        self._hear_callables(heard, arguments, expected)
        for name, voice in self._others.items():
            if voice.can_say(arguments):
                heard.voices.append(name)
                said = voice.disagreement(arguments)
                heard.wrong += [f"{name}: {said}"] if said else []
        return heard

    def _expected(self, arguments: Arguments) -> Word:
        # A check of real tensors knows no format, and cannot be made of what is not there.
        if _has_format(arguments) or not fits(arguments):
            return word_of_clauses(self.subject, arguments)
        return word_of_check(self.subject, arguments)

    def _hear_callables(self, heard: Hearing, arguments: Arguments, expected: Word) -> None:
        results: dict[str, Any] = {}
        if fits(arguments) and (expected.clause is not None or is_small(arguments)):
            for name, call in self.subject.calls.items():
                try:
                    word = word_of_call(self.subject, call, arguments)
                except UnmakeableError:
                    continue
                _compare(heard, name, word, expected)
                results |= {} if word.clause else {name: word.result}
        if not _has_format(arguments):
            for name, call in self.subject.fakes.items():
                word = word_of_fake(call, arguments, self._mode)
                _compare(heard, f"fake {name}", word, expected)
                results |= {} if word.clause else {f"fake {name}": word.result}
        if len(set(results.values())) > 1:
            heard.wrong.append(f"the results differ: {results}")


def _compare(heard: Hearing, name: str, word: Word, expected: Word) -> None:
    heard.voices.append(name)
    if (word.clause, word.text) != (expected.clause, expected.text):
        said, domain = (one.text or "accepted" for one in (word, expected))
        heard.wrong.append(f"{name}: {said}\n  domain: {domain}")
    if word.wrote:
        heard.wrong.append(f"{name}: wrote to {word.wrote}")


def _has_format(arguments: Arguments) -> bool:
    return any(isinstance(v, Laid) and v.format is not None for v in arguments.values())


def _said(clause: str | None) -> str:
    return "accepted" if clause is None else f"refused by {clause}"
