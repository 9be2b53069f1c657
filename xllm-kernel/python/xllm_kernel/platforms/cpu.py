"""The host processor: everything is done when a call returns."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from itertools import repeat
from typing import Any

from xllm_kernel.errors import DependencyAbsentError
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.compiled import compiled
from xllm_kernel.platforms.processor import (
    frequency_governor,
    last_level_cache_bytes,
    processor_name,
)


class CpuPlatform:
    """PyTorch on the processor."""

    name = "cpu"
    execution_modes: tuple[str, ...] = ("eager", "compile")
    recovers = True
    submits = False
    evidence = "cpu"

    def absence(self, modules: tuple[str, ...]) -> None:
        """Miss nothing: PyTorch brings what it links."""

    def require(self) -> None:
        """Raise DependencyAbsentError where PyTorch is missing."""
        if importlib.util.find_spec("torch") is None:
            raise DependencyAbsentError(
                "platform cpu: the module 'torch' must be installed, it was not found; install "
                "PyTorch"
            )

    def use(self, number: int) -> None:
        """Share the processor with whatever else runs."""

    def identity(self) -> str:
        """Return the processor: everybody on this machine has the same."""
        return "the host processor"

    def last_level_cache_bytes(self) -> int | None:
        """Return the size of the last-level cache; None where the system hides it."""
        return last_level_cache_bytes()

    def synchronize(self) -> None:
        """Return at once: a call on the processor is complete when it returns."""

    def environment(self) -> dict[str, Any]:
        """Return processor, PyTorch, threads, what steers how they wait, and how busy it is."""
        import torch

        waiting = ("OMP_", "KMP_", "GOMP_", "MKL_")
        cpus = sorted(os.sched_getaffinity(0))
        return {
            "device_name": processor_name(),
            "last_level_cache_bytes": last_level_cache_bytes(),
            "governor": frequency_governor(cpus),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "affinity": len(cpus),
            "cpus": cpus,
            "thread_variables": {k: v for k, v in os.environ.items() if k.startswith(waiting)},
            "load_average": list(os.getloadavg()),
        }

    def capture(
        self,
        function: Callable[[], Any],
        mode: str,
        *,
        calls: int | None = None,
        beside: bool = False,
    ) -> Captured:
        """Prepare one call: eager as it is, ``compile`` as ``torch.compile`` makes it.

        Equal calls in one graph might be merged, so a unit of ``compile`` is one call, too.
        """
        if mode == "eager":
            return eager(function)
        return eager(compiled(function, beside))

    def other_stream(self) -> None:
        """Have none: calls on the processor happen in their order."""

    def release_memory(self) -> None:
        """Leave it to the allocator, which keeps little."""

    def measure(
        self, captured: Captured, iterations: int, clock: Callable[[], int]
    ) -> dict[str, float]:
        """Time ``iterations`` replays as one interval; returns ``wall_us`` a call."""
        replay = captured.replay
        begin = clock()
        for _ in repeat(None, iterations):
            replay()
        elapsed_ns = clock() - begin
        return {"wall_us": elapsed_ns / 1e3 / (iterations * captured.calls)}
