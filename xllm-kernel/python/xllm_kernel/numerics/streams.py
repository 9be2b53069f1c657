"""Standard streams that are closed, full or of few characters; the exit code stands regardless."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def show(text: str) -> None:
    """Print whatever standard output can show; what it cannot becomes an escape, not an error.

    Where nobody reads, or nothing more fits, the verdict stands as the exit code has it.
    """
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        with contextlib.suppress(OSError):
            print(f"the result cannot be printed: {error}", file=sys.stderr, flush=True)
        # What is left in the buffer would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_all() -> None:
    """Give closed standard streams an end: a pipe would take their numbers otherwise."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, so this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for good)
            setattr(sys, name, nowhere)
