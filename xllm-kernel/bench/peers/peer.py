"""What a peer is: a library's name, how it is loaded, and how its operators are called.

Names no library and no operator: each library has a file in a folder, which is listed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xllm_kernel.errors import DependencyAbsentError

if TYPE_CHECKING:
    import torch

    Tensors = tuple[torch.Tensor, ...]

LIBRARIES = Path(__file__).with_name("libraries")
OURS = "ours"
"""Stem of the file that calls our own operators."""


class PeerError(DependencyAbsentError):
    """Why a library takes no part, at all or in one case."""


@dataclass(frozen=True, slots=True)
class Library:
    """What loading a library gave.

    Attributes:
        api: what its binders take.
        built: what was loaded, version first, for the report.
    """

    api: Any
    built: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One library's operator, bound to a case's arguments.

    Attributes:
        run: makes one call and nothing else: it is what is timed.
        results: returns the outputs as tensors, given what ``run`` returned; only judges call it.
    """

    run: Callable[[], object]
    results: Callable[[Any], Tensors]


Binder = Callable[[Any, Mapping[str, Any]], Call]
"""Takes what was loaded and a case's arguments by name; threads are ``torch.get_num_threads()``."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library.

    Attributes:
        name: as shown.
        load: imports it; raises PeerError, or whatever it raises, where it cannot take part.
        calls: its operators, by operation and form.
    """

    name: str
    load: Callable[[], Library]
    calls: Mapping[tuple[str, str], Binder]


def discover(folder: Path = LIBRARIES) -> dict[str, Peer]:
    """Return the ``PEER`` of every file in a folder by the file's stem, ours first.

    A file that cannot be read as one is a library that does not load, with that as its reason.
    """
    stems = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    stems.sort(key=lambda stem: stem != OURS)
    return {stem: _peer(folder / f"{stem}.py") for stem in stems}


def _peer(path: Path) -> Peer:
    try:
        return _defined(path)
    except Exception as error:  # noqa: BLE001 - of any kind: one file must not end the others' run
        why = f"{_place(path, error)}: {reason(error)}"
        return Peer(path.stem, partial(_refuse, why), {})


def _refuse(why: str) -> Library:
    raise PeerError(why)


def _place(path: Path, error: Exception) -> str:
    """Return the file's name, with the line that was being executed."""
    if isinstance(error, SyntaxError):
        return f"{path.name}, line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f"{path.name}, line {own[-1]}" if own else path.name


def _defined(path: Path) -> Peer:
    spec = importlib.util.spec_from_file_location(f"peers.libraries.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} must be a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses of the file look for it
    spec.loader.exec_module(module)
    if not isinstance(getattr(module, "PEER", None), Peer):
        raise ImportError(f"{path} must define PEER, a peers.peer.Peer")
    peer: Peer = module.PEER
    return peer


def version(distribution: str) -> str:
    """Return an installed distribution's name and version.

    Raises:
        PeerError: where it is not installed.
    """
    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError as error:
        raise PeerError(f"not installed: {distribution}; pip says why it failed") from error


def processor_flags() -> set[str]:
    """Return what this processor can do, in the system's words."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return {flag for line in lines if line.startswith("flags") for flag in line.split()}


def returned(value: Any) -> Tensors:
    """Take the outputs from what a call returned: a tensor or several."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def standing(*tensors: torch.Tensor) -> Callable[[object], Tensors]:
    """Take the outputs from the buffers that a call writes to."""
    return lambda _value: tensors


def reason(error: Exception) -> str:
    """Return one line for a foreign error, and the whole of one of ours."""
    if isinstance(error, PeerError):
        return str(error)
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'without a word'}"[:200]
