"""What the operating system says of the measured processes and of all others, on Linux.

Reads only; what a reading means is decided in ``disturbance``. What a system does not say is None.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path

from xllm_kernel.benchmark.statistics.disturbance import Progress, Reading

PROC = Path("/proc")
PROCESSORS = Path("/sys/devices/system/cpu")

# Columns of the line "cpu" of /proc/stat, in ticks; "user" and "nice" contain the guests'.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_BUSY = ("user", "nice", "system", "irq", "softirq")
_THROTTLE_COUNTS = ("core_throttle_count", "package_throttle_count")

# A library's threads go on spinning for a while after a call, some for 200 ms, and would hold the
# processor that the next contender needs. They are asleep once the process uses next to nothing.
_PAUSE_S = 5e-4
_ASLEEP_SHARE = 0.2
_LONGEST_PAUSES = 500
# Some 50 us, little beside a sample.
_PACE_TURNS = 5000


def read(
    own: float | None = None,
    cpus: Iterable[int] | None = None,
    proc: Path = PROC,
    processors: Path = PROCESSORS,
) -> Reading:
    """Read the machine now.

    Args:
        own: processor seconds of all measured processes; None for this process alone.
        cpus: processors in use; None for those that this process may run on.
        proc: the kernel's folder of processes.
        processors: its folder of processors.
    """
    used = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    busy = stolen = None
    with contextlib.suppress(FileNotFoundError), (proc / "stat").open(encoding="ascii") as file:
        busy, stolen = processor_times(file.readline(), os.sysconf("SC_CLK_TCK"))
    return Reading(
        at=time.monotonic(),
        own=time.process_time() if own is None else own,
        busy=busy,
        stolen=stolen,
        throttles=throttles(processors, used),
        frequency=frequency(processors, used),
    )


def processor_times(line: str, ticks_a_second: int) -> tuple[float, float]:
    """Return busy and stolen seconds from the first line of /proc/stat.

    Raises:
        ValueError: for a line that is not that one.
    """
    name, *values = line.split() or [""]
    if name != "cpu" or len(values) < len(_COLUMNS):
        raise ValueError(f"/proc/stat: its first line must be 'cpu' and 8 counts, got {line!r}")
    ticks = dict(zip(_COLUMNS, map(int, values), strict=False))
    busy = sum(ticks[column] for column in _BUSY)
    return busy / ticks_a_second, ticks["steal"] / ticks_a_second


def throttles(processors: Path, cpus: Iterable[int]) -> int | None:
    """Return how often processors were slowed down for their heat; None where nothing counts it.

    Args:
        processors: folder with ``cpuN/thermal_throttle/*_throttle_count``.
        cpus: which to count.
    """
    folders = [processors / f"cpu{cpu}" / "thermal_throttle" for cpu in cpus]
    counts = [_number(folder / name) for folder in folders for name in _THROTTLE_COUNTS]
    seen = [int(count) for count in counts if count is not None]
    return sum(seen) if seen else None


def frequency(processors: Path, cpus: Iterable[int]) -> float | None:
    """Return the slowest processor's frequency over its highest; None where none is told.

    Args:
        processors: folder with ``cpuN/cpufreq/{scaling_cur_freq,cpuinfo_max_freq}``.
        cpus: which to look at.
    """
    shares = []
    for cpu in cpus:
        folder = processors / f"cpu{cpu}" / "cpufreq"
        now, highest = _number(folder / "scaling_cur_freq"), _number(folder / "cpuinfo_max_freq")
        if now and highest:
            shares.append(now / highest)
    return min(shares, default=None)


def _number(path: Path) -> float | None:
    """Return the number in a file; None without one, as where a driver answers "<unknown>"."""
    # A driver may also refuse: its files then exist and cannot be read.
    with contextlib.suppress(OSError, ValueError):
        return float(path.read_text(encoding="ascii"))
    return None


def waited_seconds(folder: Path) -> float:
    """Return how long a process's threads waited for processors; one that just ended is left out.

    Args:
        folder: the process's ``task`` folder in /proc, with a ``schedstat`` a thread: nanoseconds
            on a processor, nanoseconds ready and waiting for one, number of turns.
    """
    total = 0
    with contextlib.suppress(FileNotFoundError):
        for thread in folder.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                total += int((thread / "schedstat").read_bytes().split()[1])
    return total / 1e9


def pace(clock: Callable[[], int] = time.perf_counter_ns) -> float:
    """Return the microseconds of some fixed work: how fast this thread's processor is just now.

    Who shares its core is not to be seen otherwise, least of all in a virtual machine.
    """
    began = clock()
    for _ in repeat(None, _PACE_TURNS):
        pass
    return (clock() - began) / 1e3


def progress(proc: Path = PROC) -> Progress:
    """Read how this process got on until now.

    Args:
        proc: the kernel's folder of processes.
    """
    # Of all threads, also those that ended; their files in /proc are gone with them.
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return Progress(switches, waited_seconds(proc / "self" / "task"))


def settle() -> bool:
    """Wait until this process's other threads sleep; say whether they do."""
    for _ in range(_LONGEST_PAUSES):
        used = time.process_time()
        time.sleep(_PAUSE_S)
        if time.process_time() - used < _ASLEEP_SHARE * _PAUSE_S:
            return True
    return False
