"""What tests read of the simulated Ascend runtime: reports, trace, schedule. Simulates nothing."""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any


class Simulator:
    """The simulated runtime that this process has loaded."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.ascend_sim_version.restype = ctypes.c_char_p
        for name in ("take_reports", "trace", "schedule"):
            reader = getattr(library, f"ascend_sim_{name}")
            reader.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
            reader.restype = ctypes.c_size_t

    @property
    def version(self) -> str:
        return self._library.ascend_sim_version().decode()

    def take_reports(self) -> list[dict[str, str]]:
        """Return what no correct program does, as ``kind`` and ``text``, and forget it."""
        return self._read("take_reports")

    def tasks(self) -> list[dict[str, Any]]:
        """Return the trace's entries of the tasks that have run, in their order."""
        return [e for e in self._read("trace")["traceEvents"] if e.get("cat") == "task"]

    def waits(self) -> list[str]:
        """Return the names of the host's calls that waited for a device, copies among them."""
        events = self._read("trace")["traceEvents"]
        return [e["name"] for e in events if e.get("cat") in ("wait", "copy")]

    def schedule(self) -> list[str]:
        """Return the names of the tasks that have run, in their order."""
        return self._read("schedule")

    def _read(self, name: str) -> Any:
        reader = getattr(self._library, f"ascend_sim_{name}")
        size = reader(None, 0)
        while True:
            buffer = ctypes.create_string_buffer(size)
            needed = reader(buffer, size)
            if needed <= size:
                return json.loads(buffer.value)
            size = needed


def find_simulator() -> Simulator | None:
    """Return the simulated runtime, or None where the loaded one is real, or none is."""
    try:
        library = ctypes.CDLL("libascendcl.so", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    return Simulator(library) if hasattr(library, "ascend_sim_version") else None
