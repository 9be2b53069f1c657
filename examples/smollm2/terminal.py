"""Write to a terminal with colour and live lines, and to anything else without."""

from __future__ import annotations

import os
import shutil
import sys


class Style:
    """Know what standard output can show."""

    def __init__(self, live: bool | None = None) -> None:
        """Look at standard output, unless told whether it is a terminal."""
        self.live = sys.stdout.isatty() if live is None else live
        self._colour = self.live and "NO_COLOR" not in os.environ

    def bold(self, text: str) -> str:
        """Return text that stands out."""
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        """Return text that stands back."""
        return self._paint("2", text)

    def verdict(self, good: bool) -> str:
        """Return `ok` or `FAIL`, four columns wide."""
        return self._paint("32", "ok  ") if good else self._paint("1;31", "FAIL")

    def replace_line(self, text: str) -> None:
        """Overwrite the terminal's current line, cut to its width."""
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\x1b[K{text[:width]}", end="", flush=True)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text
