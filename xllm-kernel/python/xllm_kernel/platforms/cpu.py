"""The host processor: everything is done when a call returns."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

from xllm_kernel.errors import DependencyAbsentError
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.compiled import compiled


class CpuPlatform:
    """PyTorch on the processor."""

    name = "cpu"
    execution_modes: tuple[str, ...] = ("eager", "compile")
    recovers = True
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

    def synchronize(self) -> None:
        """Return at once: a call on the processor is complete when it returns."""

    def environment(self) -> dict[str, Any]:
        """Return processor, PyTorch, threads, what steers how they wait, and how busy it is."""
        import torch

        waiting = ("OMP_", "KMP_", "GOMP_", "MKL_")
        return {
            "device_name": processor_name(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "affinity": len(os.sched_getaffinity(0)),
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


def processor_name() -> str:
    """Return the processor's model name, or its architecture where the system hides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()
