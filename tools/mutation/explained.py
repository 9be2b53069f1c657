"""Survivors that no test can kill, each with the reason: the file ``explained.txt``.

An entry names a mutant by its lines, so that it holds while the module moves around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("explained.txt")


class ListError(Exception):
    """The list is not written as it must be, or explains what is not there."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One survivor that changes nothing a test could see.

    Attributes:
        module: path below the package.
        removed: the lines that the mutant lacks, stripped and joined.
        added: the lines that it has instead.
        reason: why both do the same.
    """

    module: str
    removed: str
    added: str
    reason: str


def parse(text: str) -> list[Explained]:
    """Read a list: blocks of a module's name, ``- line``, ``+ line`` and ``= reason``.

    Raises:
        ListError: for a block that is none.
    """
    found: list[Explained] = []
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in filter(None, (block.strip() for block in body.split("\n\n"))):
        module, *lines = block.splitlines()
        parts = {
            mark: " ".join(ln[2:].strip() for ln in lines if ln[:2] == mark + " ") for mark in "-+="
        }
        known = all(line[:2] in ("- ", "+ ", "= ") for line in lines)
        if not (known and module.endswith(".py") and parts["-"] and parts["="]):
            raise ListError(
                f"{LIST.name}: a block must be a module's path, lines with '- ' and '+ ', and a "
                f"reason with '= ', got:\n{block}"
            )
        found.append(Explained(module, parts["-"], parts["+"], parts["="]))
    return found


def check(explained: list[Explained], module: str, code: str) -> None:
    """Refuse explanations of a module that no longer has their lines.

    Raises:
        ListError: naming the first such.
    """
    joined = " ".join(line.strip() for line in code.splitlines())
    for entry in explained:
        if entry.module == module and entry.removed not in joined:
            raise ListError(f"{LIST.name}: {module} has no such line any more: {entry.removed}")
