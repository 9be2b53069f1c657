"""The command line that runs one case again, and the cases that a command line chose.

Works on words: no case is made and nothing is loaded here.
"""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from xllm_kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from xllm_kernel.numerics.arguments import Request

# Options of a run that say nothing of a case: how many words follow each, None for all up to the
# next option.
_OF_THE_RUN: Mapping[str, int | None] = {
    "--output": 1,
    "--revision": 1,
    "--case": None,
    "--list": 0,
    "--fail-fast": 0,
    "--keep-going": 0,
}
_VARIABLES = "XLLM_KERNEL_"
_SHOWN = 3


def line(request: Request, case_id: str) -> str:
    """Return one shell command that runs a case as the request did, variables included."""
    variables = [
        f"{name}={shlex.quote(value)}"
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLES)
    ]
    command = request.command_of([*of_the_case(request.arguments), "--case", case_id])
    return " ".join([*variables, shlex.join(command)])


def of_the_case(arguments: Sequence[str]) -> list[str]:
    """Return a command line's arguments without those that say nothing of a case."""
    kept: list[str] = []
    skip: int | None = 0
    for word in arguments:
        name, equals, _ = word.partition("=")
        if name.startswith("--"):
            skip = 0
        elif skip is None or skip > 0:
            skip = None if skip is None else skip - 1
            continue
        if name in _OF_THE_RUN:
            skip = 0 if equals else _OF_THE_RUN[name]
        else:
            kept.append(word)
    return kept


def check_known(chosen: Sequence[str], known: Collection[str], kind: str) -> None:
    """Refuse identifiers that nothing has.

    Args:
        chosen: of ``--case``.
        known: all there are.
        kind: what they name, for the message.

    Raises:
        ConfigurationError: names the nearest ones, or some.
    """
    for name in chosen:
        if name not in known:
            near = difflib.get_close_matches(name, known, _SHOWN, cutoff=0.5)
            few = near or list(known)[:_SHOWN]
            shown = ", ".join(few) or "none"
            word = "the nearest are" if near else "some are"
            raise ConfigurationError(
                f"--case: {name!r} must be {kind} of this command line; {word} {shown}; --list "
                "prints all cases"
            )
