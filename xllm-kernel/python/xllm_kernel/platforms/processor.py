"""What Linux says of the processors: their name, their caches, who sets their clock.

Measures nothing. What the system hides is None, never a guess.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def processor_name() -> str:
    """Return the processor's model name, or its architecture where the system hides it."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def last_level_cache_bytes(cpus: Path = _CPUS) -> int | None:
    """Return the bytes of the first processor's outermost data cache, or None where unknown.

    It is one cache; a machine may have several of its kind.

    Args:
        cpus: folder in which Linux describes the processors.
    """
    found = {}
    for folder in (cpus / "cpu0" / "cache").glob("index*"):
        level, size = (_read(folder / name).strip() for name in ("level", "size"))
        unit = _UNITS.get(size[-1:])
        number = size[:-1] if unit else size
        if _read(folder / "type").strip() != "Instruction" and level.isdigit() and number.isdigit():
            found[int(level)] = int(number) * (unit or 1)
    return found[max(found)] if found else None


def frequency_governor(numbers: Sequence[int], cpus: Path = _CPUS) -> str | None:
    """Return what sets some processors' clocks, e.g. ``performance``, or None where unknown.

    Args:
        numbers: the processors'; governors that differ are all named.
        cpus: folder in which Linux describes the processors.
    """
    files = (cpus / f"cpu{number}" / "cpufreq" / "scaling_governor" for number in numbers)
    found = {_read(path).strip() for path in files} - {""}
    return ", ".join(sorted(found)) or None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
