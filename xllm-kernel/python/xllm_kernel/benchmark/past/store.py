"""A folder of past runs, a file each, and an index of them that can be made again at any time.

Never overwrites a run, judges none. The index is a copy of what the files say; they decide.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from xllm_kernel.benchmark.past.documents import DocumentError, load, parse
from xllm_kernel.numerics.report import json_value, replace_text

INDEX = "index.json"
SCHEMA_VERSION = 1

_LOCK = ".lock"
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the folder, as the index knows it.

    Attributes:
        file: its name.
        size: bytes.
        modified_ns: its time stamp; with the size, tells whether it is still what was read.
        started: when its run began, ISO 8601; empty for a damaged file.
        revision: source revision, or None.
        operations: names that its rows have.
        implementations: names that its rows have.
        evidence: how its results were obtained.
        damaged: why it cannot be read, or None.
    """

    file: str
    size: int
    modified_ns: int
    started: str = ""
    revision: str | None = None
    operations: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ()
    evidence: str | None = None
    damaged: str | None = None


def add(document: Mapping[str, Any], folder: Path) -> Path:
    """Keep a report.

    Args:
        document: as written to JSON.
        folder: made where it does not exist.

    Returns:
        The new file, named for start, operation, implementation and revision.

    Raises:
        DocumentError: for what is no benchmark report.
        OSError: where the folder cannot be written to.
    """
    parse(document, "to be stored")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(json_value(document), allow_nan=False, ensure_ascii=False)
    with _locked(folder):
        path = _place(folder, _name(document), text + "\n")
        _refresh(folder)
    return path


def prepare(folder: Path) -> None:
    """Make a folder and try what ``add`` will do there.

    Raises:
        OSError: where reports cannot be added.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        _place(folder, ".tried", "").unlink()


def entries(folder: Path) -> list[Entry]:
    """Return what is in a folder, the oldest run first, damaged files last.

    The index is made again where it is missing or no longer says what is there.

    Raises:
        OSError: where the folder cannot be read.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"store '{folder}': must be a folder of runs, found none")
    try:
        with _locked(folder):
            found = _refresh(folder)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        found = _look(folder, _indexed(folder))  # somebody else's folder can still be read
    return sorted(found, key=lambda e: (e.damaged is not None, e.started, e.file))


def _name(document: Mapping[str, Any]) -> str:
    """Return a file's name without its ending: fit for every file system, sorted by time."""
    started = re.sub(r"\+00:00$", "Z", document["started"]).replace("-", "").replace(":", "")
    revision = (document.get("revision") or "no-revision")[:12]
    parts = (started, document["operation"], document["implementation"], revision)
    return "-".join(re.sub(r"[^A-Za-z0-9._+]+", "_", part)[:_LONGEST] for part in parts)


def _place(folder: Path, name: str, text: str) -> Path:
    """Write a file under the first free name, whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".adding.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        for number in count(1):
            path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
            # A link fails where the name is taken; a rename would replace what has it.
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(temporary)
                break
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def _refresh(folder: Path) -> list[Entry]:
    """Bring the index up to date; the folder is locked."""
    indexed = _indexed(folder)
    found = _look(folder, indexed)
    if {entry.file: entry for entry in found} != indexed:
        document = {
            "schema_version": SCHEMA_VERSION,
            "kind": "benchmark index",
            "runs": [asdict(entry) for entry in found],
        }
        replace_text(folder / INDEX, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return found


def _look(folder: Path, indexed: Mapping[str, Entry]) -> list[Entry]:
    """Return an entry for each file, reading those that the index does not know as they are."""
    found = []
    for path in sorted(folder.glob("*.json")):
        if path.name == INDEX or path.name.startswith(".") or not path.is_file():
            continue
        known, status = indexed.get(path.name), path.stat()
        as_known = known and (known.size, known.modified_ns) == (status.st_size, status.st_mtime_ns)
        found.append(known if known and as_known else _read(path, status))
    return found


def _read(path: Path, status: os.stat_result) -> Entry:
    entry = Entry(path.name, status.st_size, status.st_mtime_ns)
    try:
        document = load(path).document
    except DocumentError as error:
        return Entry(entry.file, entry.size, entry.modified_ns, damaged=str(error))
    rows = document["rows"]
    return Entry(
        entry.file,
        entry.size,
        entry.modified_ns,
        document["started"],
        document.get("revision"),
        tuple(sorted({row["operation"] for row in rows} | {document["operation"]})),
        tuple(sorted({row["implementation"] for row in rows} | {document["implementation"]})),
        document.get("evidence"),
    )


def _indexed(folder: Path) -> dict[str, Entry]:
    """Return the index's entries by file; none where it is missing, damaged or another version."""
    try:
        document = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        if document["schema_version"] != SCHEMA_VERSION:
            return {}
        found = [_entry(run) for run in document["runs"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {entry.file: entry for entry in found}


def _entry(run: Mapping[str, Any]) -> Entry:
    lists = {name: tuple(run[name]) for name in ("operations", "implementations")}
    return Entry(**{**run, **lists})


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time add; the lock goes with the process that holds it."""
    with (folder / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
