"""Ascend devices through torch_npu: the caller's stream, device events, ACL graphs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import repeat
from typing import Any

from xllm_kernel.errors import DependencyAbsentError
from xllm_kernel.platforms.captured import Captured, eager

CALLS_A_GRAPH = 64


class NpuPlatform:
    """PyTorch with torch_npu."""

    name = "npu"
    execution_modes: tuple[str, ...] = ("eager", "aclgraph")
    evidence = "device"

    def require(self) -> None:
        """Raise DependencyAbsentError, naming each missing module."""
        missing = [m for m in ("torch", "torch_npu") if importlib.util.find_spec(m) is None]
        if missing:
            raise DependencyAbsentError(
                f"platform npu: torch and torch_npu must be installed, absent: "
                f"{', '.join(missing)}; install the versions that match the device's CANN"
            )

    def synchronize(self) -> None:
        """Wait for all work on the current device."""
        _npu().synchronize()

    def environment(self) -> dict[str, Any]:
        """Return the device's name and the versions of PyTorch and torch_npu."""
        import torch
        import torch_npu

        return {
            "device_name": _npu().get_device_name(),
            "torch": torch.__version__,
            "torch_npu": torch_npu.__version__,
        }

    def capture(self, function: Callable[[], Any], mode: str) -> Captured:
        """Prepare calls: eager as they are, ``aclgraph`` as one graph of 64 independent calls."""
        if mode == "eager":
            return eager(function)
        npu = _npu()
        graph = npu.NPUGraph()
        with npu.graph(graph):
            outputs = [function() for _ in range(CALLS_A_GRAPH)]
        return Captured(calls=CALLS_A_GRAPH, replay=graph.replay, outputs=lambda: outputs)

    def measure(
        self, captured: Captured, iterations: int, clock: Callable[[], int]
    ) -> dict[str, float]:
        """Time ``iterations`` replays.

        Returns:
            Microseconds a call: ``host_enqueue_us`` until the last submission returned,
            ``device_interval_us`` between two events around them (submission gaps included), and
            ``wall_us`` until the device was done.
        """
        npu = _npu()
        first, last = npu.Event(enable_timing=True), npu.Event(enable_timing=True)
        replay = captured.replay
        npu.synchronize()
        begin = clock()
        first.record()
        for _ in repeat(None, iterations):
            replay()
        last.record()
        enqueued_ns = clock() - begin
        npu.synchronize()
        wall_ns = clock() - begin
        calls = iterations * captured.calls
        return {
            "host_enqueue_us": enqueued_ns / 1e3 / calls,
            "device_interval_us": first.elapsed_time(last) * 1e3 / calls,
            "wall_us": wall_ns / 1e3 / calls,
        }


def _npu() -> Any:
    """Return torch's device module, which torch_npu adds when imported."""
    import torch
    import torch_npu  # noqa: F401

    return torch.npu  # type: ignore[attr-defined]
