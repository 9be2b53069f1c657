"""xlite's launcher libraries: where they lie, which revision they are, how a process gets them.

Imports neither xlite nor a framework, which both need the device's own libraries: the build and the
run time find everything by name. Knows no operator.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

from xllm_kernel.errors import ArtifactError

PACKAGE = "xlite"
LIBRARIES = ("libxlite_kernels_bf16_npu.so", "libxlite_kernels_f16_npu.so")
# Of GVirt, the project that xlite is built from: its launchers' arguments are those that the bridge
# passes.
REVISION = "4a6dc3102d5778928e4d21116bc4d4694d51e584"
UNKNOWN = "unknown"
ALLOW = "XLLM_KERNEL_XLITE_ALLOW_REVISION"


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, without importing it; None where it is absent."""
    spec = importlib.util.find_spec(package)
    locations = None if spec is None else spec.submodule_search_locations
    return None if not locations else Path(next(iter(locations)))


def folder() -> Path | None:
    """Return the folder of the launcher libraries, whether or not they are in it."""
    package = package_folder(PACKAGE)
    return None if package is None else package / "lib"


def found_revision() -> str:
    """Return what the installed package says of its revision, or ``"unknown"``."""
    package = package_folder(PACKAGE)
    version = None if package is None else package / "_version.py"
    if version is None or not version.is_file():
        return UNKNOWN
    match = re.search(r"""^.*\bcommit_id\s*=\s*['"]([^'"]+)['"]""", version.read_text(), re.M)
    return match[1] if match else UNKNOWN


def is_pinned(revision: str) -> bool:
    """Say whether a revision, perhaps shortened as version files do, is the pinned one."""
    digits = revision.removeprefix("g")
    return len(digits) >= 7 and REVISION.startswith(digits)


def missing_libraries(place: Path | None) -> tuple[str, ...]:
    """Return the names of the libraries that a folder lacks."""
    return tuple(n for n in LIBRARIES if place is None or not (place / n).is_file())


def preload(provider: Path, libraries: Iterable[Path]) -> None:
    """Load libraries from where they were checked, before anything that needs them by name.

    Args:
        provider: a library that this process has loaded. The launchers name only some of the
            device's libraries that they need, and find the others among what it brought along.
        libraries: in any order.

    Raises:
        ArtifactError: for one that does not load, or of whose name another one is loaded already.
    """
    try:
        ctypes.CDLL(str(provider), mode=os.RTLD_NOLOAD | os.RTLD_GLOBAL | os.RTLD_LAZY)
        for library in libraries:
            _refuse_another(library)
            ctypes.CDLL(str(library))
    except OSError as error:
        raise ArtifactError(
            f"xlite: its launcher libraries must load beside {provider}, but: {error}; install the "
            "CANN version that both were made for"
        ) from error


def _refuse_another(library: Path) -> None:
    """A loader takes whichever library of a name it has: another one would not be what we check."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        loaded = Path("/", line.partition("/")[2])
        if loaded.name == library.name and not loaded.samefile(library):
            raise ArtifactError(
                f"xlite: this process must have {library}, found {loaded} of the same name loaded "
                "before; start a worker whose LD_LIBRARY_PATH does not lead there"
            )
