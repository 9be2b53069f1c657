"""The Ascend runtime (CANN) beneath torch_npu: whether it is there, and whether it is simulated.

Imports no framework. It asks the dynamic loader, because an import of torch that fails half-way
leaves the process without a usable torch.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from xllm_kernel.errors import DependencyBrokenError

RUNTIME = "libascendcl.so"

# Linked by every torch_npu and shipped with none. Where one is absent there is no CANN to speak of;
# another that is absent beside these makes an incomplete CANN, which is broken.
_LIBRARIES = (RUNTIME, "libhccl.so")
_LINKED_BY = "torch_npu"
_ABSENT = ": cannot open shared object file: No such file or directory"


@dataclass(frozen=True, slots=True)
class Simulator:
    """The simulated runtime in this process.

    Attributes:
        version: what it calls itself.
        seed: what its schedules are drawn from.
    """

    version: str
    seed: str


def absence(modules: tuple[str, ...]) -> str | None:
    """Say what is missing of CANN for installed modules to be imported, or None.

    Args:
        modules: import paths, none of them absent itself.

    Returns:
        A sentence, where one of them links CANN, is not loaded yet, and the loader cannot find
        CANN or what CANN itself links. A library that is found and cannot be loaded for another
        reason is broken, not absent: importing the module then says so.
    """
    if _LINKED_BY not in modules or _LINKED_BY in sys.modules:
        return None
    missing = list(dict.fromkeys(filter(None, map(_missing, _LIBRARIES))))
    if not missing:
        return None
    return (
        f"{_LINKED_BY} is installed, but CANN, which it links, is absent: no {', '.join(missing)}; "
        "install CANN and the device's driver, and source CANN's set_env.sh"
    )


def simulator() -> Simulator | None:
    """Recognise the simulated runtime by a symbol that it exports; None on a device.

    Every loaded library is asked, for one that was renamed or preloaded answers torch_npu's calls
    as well. Call it once torch_npu is loaded.

    Raises:
        DependencyBrokenError: where no runtime is loaded, so that nothing tells which one ran.
    """
    mapped = sorted({p for p in _mapped_files() if ".so" in p.rpartition("/")[2]})
    for library in (None, *mapped):
        handle = _loaded(library)
        if handle is not None and hasattr(handle, "ascend_sim_version"):
            version = handle.ascend_sim_version
            version.restype = ctypes.c_char_p
            return Simulator(version().decode(), os.environ.get("ASCEND_SIM_SEED", "1"))
    if _loaded(RUNTIME) is None:
        raise DependencyBrokenError(
            f"platform npu: torch_npu must have loaded {RUNTIME}, it has not, so that nothing "
            "tells a device from a simulator; load CANN by its own name"
        )
    return None


def _mapped_files() -> list[str]:
    """Return the files that this process has mapped."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return [fields[5] for line in lines if len(fields := line.split(maxsplit=5)) == 6]


def _loaded(library: str | None) -> ctypes.CDLL | None:
    """Return a library that this process has loaded, the global scope for None; loads nothing."""
    try:
        return ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None


def _missing(library: str) -> str | None:
    """Return what the loader does not find for a library: itself, or one that it links."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        name, separator, _ = str(error).partition(_ABSENT)
        return name if separator else None
    return None
