"""The probe of what memory and arithmetic allow: our C++ library's passes, for a stated work.

Knows no operator and judges nothing: ``roofline`` does. Imports no framework.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xllm_kernel import artifacts
from xllm_kernel.benchmark.ceilings.memory import Ring
from xllm_kernel.errors import ArtifactError, ConfigurationError, KernelError
from xllm_kernel.numerics.suite import Work
from xllm_kernel.platforms.processor import last_level_cache_bytes

LIBRARY = "libxllm_kernel_ceilings.so"

# Of the library: more are refused.
MOST_THREADS = 256
GRAIN = 1536  # XLLM_CEILING_GRAIN of the library's header

# So much in one call of the library, where passes are smaller: reading the clock is then nothing.
_LEAST_BYTES = 1 << 18
_LEAST_OPERATIONS = GRAIN << 8

# Where the system hides its caches: more than most processors have.
_CACHE_BYTES = 64 << 20

_POINTER, _INT64, _INT32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# Each is given threads (int32) and repetitions (int64) at the end.
_SIGNATURES = {
    "read": (_POINTER, _INT64),
    "copy": (_POINTER, _POINTER, _INT64),
    "copy_streaming": (_POINTER, _POINTER, _INT64),
    "update": (_POINTER, _INT64),
    "fma": (_INT64,),
    "dot": (_INT64,),
}

Call = Callable[..., float]
"""Takes a function's name and its arguments; returns the seconds of one repetition."""

Part = tuple[str, int]
"""A function of the library, and the bytes that it goes over in each of its buffers."""


class CeilingsAbsentError(KernelError):
    """There is no probe here; says why."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A way to move as much as a work moves, or to compute as much.

    Attributes:
        name: as reports show it.
        kind: what it keeps busy.
        measure: does at least so many passes and returns the microseconds of one.
        waited: returns the seconds that threads have waited for processors in all passes so far.
    """

    name: str
    kind: Literal["memory", "compute"]
    measure: Callable[[int], float]
    waited: Callable[[], float] = lambda: 0.0


def traffic(work: Work) -> dict[str, tuple[Part, ...]]:
    """Return the passes that move a work's bytes, by name, and what each consists of.

    A copy reads as much as it writes, so each way it takes half of all bytes (rounded up). A work
    that reads more than twice what it writes is a copy of what it writes and a read of the rest,
    one after the other. One that writes more than twice what it reads has no pass of its own: the
    copy reads what it should write, which costs memory no more.

    In place, an update of the same bytes comes first; copies count there too, for an implementation
    may be as quick as they are.
    """
    if work.moved_bytes == 0:
        return {}
    if work.written_bytes == 0:
        return {"read": (("read", work.read_bytes),)}
    each, also = -(-work.moved_bytes // 2), ""
    rest: tuple[Part, ...] = ()
    if work.read_bytes > 2 * work.written_bytes:
        each = work.written_bytes
        rest, also = (("read", work.read_bytes - each),), " and read"
    functions = {"copy": "copy", "streaming copy": "copy_streaming"}
    if work.in_place:
        functions = {"update": "update", **functions}
    return {name + also: ((function, each), *rest) for name, function in functions.items()}


class Probe:
    """Measures passes on memory of its own, with the vectors of this process's SIMD level.

    It keeps four buffers at most: two of up to four times the last-level cache (256 MiB where that
    is more) for passes over the same bytes, two of three times that cache for cold ones. Larger
    works go round in them. The buffers grow when passes are asked for, and stay.

    Attributes:
        level: name of the SIMD level.
    """

    def __init__(
        self,
        call: Call,
        level: str,
        *,
        has_dot: bool,
        cache_bytes: int | None = None,
        waited: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Measure through some library's functions.

        Args:
            call: calls one of them.
            level: the library's SIMD level.
            has_dot: whether that level has dot products.
            cache_bytes: of the last-level cache; None where unknown.
            waited: returns the seconds that its threads have waited for processors.
        """
        self.level, self._waited = level, waited
        self._call, self._has_dot = call, has_dot
        self._cache_bytes = cache_bytes or _CACHE_BYTES
        self._hot, self._cold = Ring(), Ring()

    @classmethod
    def load(cls) -> Probe:
        """Load the probe that was built with the C++ kernels.

        Raises:
            CeilingsAbsentError: where none was built, or it is damaged, stale or of no use here.
        """
        library = _open(_find())
        level = library.level()
        try:
            library("fma", GRAIN, 1, 1)
        except ConfigurationError as error:  # a forced level that does not exist
            raise CeilingsAbsentError(str(error)) from error
        try:
            library("dot", GRAIN, 1, 1)
        except ConfigurationError:
            has_dot = False
        else:
            has_dot = True
        return cls(
            library,
            level,
            has_dot=has_dot,
            cache_bytes=last_level_cache_bytes(),
            waited=lambda: library.waited,
        )

    def passes(self, work: Work, threads: int, *, cold: bool) -> list[Pass]:
        """Return the passes that a work is held against, their memory in place.

        Args:
            work: what a call must at least do. Dot products count as multiply-adds where the level
                has none.
            threads: that share each pass, 1 to ``MOST_THREADS``.
            cold: whether what a pass touches was last touched three times the last-level cache
                ago; otherwise each goes over the same bytes again and again.

        Returns:
            None of a kind of which the work has nothing.
        """
        found = []
        for name, parts in traffic(work).items():
            measures = [self._moving(*part, threads, cold=cold) for part in parts]
            found.append(Pass(name, "memory", _total(measures), self._waited))
        if work.operations:
            name = work.arithmetic if self._has_dot else "fma"
            measure = self._computing(name, work.operations, threads)
            found.append(Pass(name, "compute", measure, self._waited))
        return found

    def close(self) -> None:
        """Give the memory back; passes of this probe measure no more."""
        self._hot.close()
        self._cold.close()

    def _moving(
        self, function: str, size: int, threads: int, *, cold: bool
    ) -> Callable[[int], float]:
        """Return the measure of passes over so many bytes in each buffer."""
        ring = self._cold if cold else self._hot
        most = max(4 * self._cache_bytes, 256 << 20)
        again = not cold and size <= most
        ring.reserve(3 * self._cache_bytes + 4096 if cold else min(size, most))

        def measure(count: int) -> float:
            count = max(count, -(-_LEAST_BYTES // size))
            if again:
                return self._over(ring, function, 0, size, threads, count) * 1e6
            seconds = 0.0
            for begin, length in ring.stretches(count * size):
                seconds += self._over(ring, function, begin, length, threads, 1)
            return seconds * 1e6 / count

        return measure

    def _over(
        self, ring: Ring, function: str, begin: int, size: int, threads: int, count: int
    ) -> float:
        """Return the seconds of one pass over a stretch."""
        # Looked up at each call: a ring that grew lies elsewhere.
        buffers = [ring.source.address + begin]
        if function.startswith("copy"):
            buffers.insert(0, ring.destination.address + begin)
        return self._call(function, *buffers, size, threads, count)

    def _computing(self, function: str, operations: int, threads: int) -> Callable[[int], float]:
        """Return the measure of so many operations."""

        def measure(count: int) -> float:
            grain = GRAIN * threads
            done = -(-max(operations * count, _LEAST_OPERATIONS) // grain) * grain
            return self._call(function, done, threads, 1) * 1e6 * operations / done

        return measure


def _total(measures: list[Callable[[int], float]]) -> Callable[[int], float]:
    """Return the measure of several parts, each done for all passes before the next."""
    return lambda count: sum(measure(count) for measure in measures)


class _Library:
    """The library's functions by their names.

    Attributes:
        waited: seconds that their threads have waited for processors, in all calls so far.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._functions = {name: getattr(library, f"xllm_ceiling_{name}") for name in _SIGNATURES}
        for name, function in self._functions.items():
            function.argtypes = (*_SIGNATURES[name], _INT32, _INT64)
            function.restype = ctypes.c_double
        self._error, self._level = library.xllm_ceiling_error, library.xllm_ceiling_level
        self._error.restype = self._level.restype = ctypes.c_char_p
        self._last_waited, self.waited = library.xllm_ceiling_waited, 0.0
        self._last_waited.restype = ctypes.c_double

    def __call__(self, name: str, *arguments: int) -> float:
        seconds: float = self._functions[name](*arguments)
        if seconds < 0:
            raise ConfigurationError(f"ceilings [{name}]: {self._error().decode()}")
        self.waited += self._last_waited()
        return seconds

    def level(self) -> str:
        level: str = self._level().decode()
        return level


def _find() -> Path:
    try:
        import xllm_kernel._build.simd as build
    except (ImportError, SyntaxError) as error:
        raise CeilingsAbsentError(
            "ceilings: the probe is built with the C++ kernels, which are not here or damaged "
            f"({error}); build them: {artifacts.BUILD_COMMAND}"
        ) from error
    try:
        return artifacts.companion(build.MANIFEST, Path(build.__file__).parent, LIBRARY)
    except ArtifactError as error:
        raise CeilingsAbsentError(f"ceilings: {error}") from error


def _open(path: Path) -> _Library:
    try:
        return _Library(ctypes.CDLL(str(path)))
    except (OSError, AttributeError) as error:
        raise CeilingsAbsentError(
            f"ceilings [{path}]: must be a library that loads here: {error}; build it again: "
            f"{artifacts.BUILD_COMMAND}"
        ) from error
