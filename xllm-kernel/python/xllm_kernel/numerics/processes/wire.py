"""What the processes of a run tell one another: JSON objects, one a line.

Unlike a report, a line keeps nonfinite numbers as what they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from xllm_kernel.numerics.report import json_value

Event = dict[str, Any]
"""``event`` names what happened; the other keys are its own.

A worker tells ``facts`` (of the run), ``ready``, then of each row ``start``, ``step`` (each) and
``row`` (its results), and ``end`` where the run is over early. It is told ``run``. Whoever watches
over it adds ``death`` and ``restart``, and among ranks ``lost``, ``idle`` and ``done``.

Amid a row whose case passed a worker may ask what to do next (``QUESTIONS``), and is told
``sample`` or ``enough``.
"""

QUESTIONS = ("timed", "sampled")
"""Events that want an answer: a regime can be sampled, and a sample was taken."""


class GarbledError(Exception):
    """What arrived is no line of this protocol."""


def encode(event: Event) -> bytes:
    """Return an event as a line."""
    return json.dumps(json_value(event, nonfinite=float)).encode() + b"\n"


def decode(line: bytes) -> Event:
    """Return a line's event.

    Raises:
        GarbledError: when it is none.
    """
    try:
        event = json.loads(line)
    except ValueError as error:
        raise GarbledError(f"no JSON: {line[:80]!r}") from error
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise GarbledError(f"no event: {line[:80]!r}")
    return event


class Lines:
    """Puts the pieces that a pipe delivers together again."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take a piece and return the events that are complete now.

        Raises:
            GarbledError: as ``decode``.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        return map(decode, lines)
