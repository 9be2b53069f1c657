"""What the operating system says of this process and of all others, on Linux.

Reads only; what a reading means is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path

from peers.blocks import Progress, Reading

# Columns of the line "cpu" of /proc/stat, in ticks; "user" and "nice" contain the guests'.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_BUSY = ("user", "nice", "system", "irq", "softirq")

# A library's threads go on spinning for a while after a call, some for 200 ms, and would hold the
# processor that the next contender needs. They are asleep once the process uses next to nothing.
_PAUSE_S = 5e-4
_ASLEEP_SHARE = 0.2
_LONGEST_PAUSES = 500


def processor_times(line: str, ticks_a_second: int) -> tuple[float, float]:
    """Return busy and stolen seconds from the first line of /proc/stat.

    Raises:
        ValueError: for a line that is not that one.
    """
    name, *values = line.split()
    if name != "cpu" or len(values) < len(_COLUMNS):
        raise ValueError(f"/proc/stat: its first line must be 'cpu' and 8 counts, got {line!r}")
    ticks = dict(zip(_COLUMNS, map(int, values), strict=False))
    busy = sum(ticks[column] for column in _BUSY)
    return busy / ticks_a_second, ticks["steal"] / ticks_a_second


def read() -> Reading:
    """Read the machine now."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        busy, stolen = processor_times(file.readline(), os.sysconf("SC_CLK_TCK"))
    return Reading(at=time.monotonic(), busy=busy, own=time.process_time(), stolen=stolen)


def waited_seconds(folder: Path) -> float:
    """Return how long a process's threads waited for processors; one that just ended is left out.

    Args:
        folder: the process's ``task`` folder in /proc, with a ``schedstat`` a thread: nanoseconds
            on a processor, nanoseconds ready and waiting for one, number of turns.
    """
    total = 0
    for thread in folder.iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int((thread / "schedstat").read_bytes().split()[1])
    return total / 1e9


def progress() -> Progress:
    """Read how this process got on until now."""
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Progress(switches, waited_seconds(Path("/proc/self/task")))


def settle() -> bool:
    """Wait until this process's other threads sleep; say whether they do."""
    for _ in range(_LONGEST_PAUSES):
        used = time.process_time()
        time.sleep(_PAUSE_S)
        if time.process_time() - used < _ASLEEP_SHARE * _PAUSE_S:
            return True
    return False
