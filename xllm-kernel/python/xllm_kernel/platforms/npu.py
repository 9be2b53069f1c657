"""Ascend devices through torch_npu: the caller's stream, device events, ACL graphs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat
from typing import Any

from xllm_kernel.errors import (
    ConfigurationError,
    DependencyAbsentError,
    DependencyBrokenError,
    describe,
)
from xllm_kernel.platforms import ascend
from xllm_kernel.platforms.captured import Captured, eager
from xllm_kernel.platforms.evidence import SIMULATED

CALLS_A_GRAPH = 64
_MODULES = ("torch", "torch_npu")


class NpuPlatform:
    """PyTorch with torch_npu."""

    name = "npu"
    execution_modes: tuple[str, ...] = ("eager", "aclgraph")
    # An error on the device is raised once, at some later call; from then on work may be dropped
    # without a word, and what is read back is what was there before.
    recovers = False
    submits = True

    def absence(self, modules: tuple[str, ...]) -> str | None:
        """Say that CANN is missing, where one of the modules links it; imports nothing."""
        return ascend.absence(modules)

    def require(self) -> None:
        """Raise unless a call can reach a device.

        Raises:
            DependencyAbsentError: naming what is missing: modules, CANN, or a visible device.
            DependencyBrokenError: where all is installed and torch_npu cannot be imported.
        """
        missing = [name for name in _MODULES if not _is_installed(name)]
        if missing:
            raise DependencyAbsentError(
                f"platform npu: torch and torch_npu must be installed, absent: "
                f"{', '.join(missing)}; install the versions that match the device's CANN"
            )
        without = self.absence(_MODULES)
        if without is not None:
            raise DependencyAbsentError(f"platform npu: {without}")
        try:
            npu = _npu()
        except Exception as error:
            raise DependencyBrokenError(
                f"platform npu: torch_npu and CANN are installed, so torch_npu must import, but it "
                f"raised {describe(error)}; repair the installation"
            ) from error
        _require_device(npu)

    def use(self, number: int) -> None:
        """Make a visible device the current one; the first process keeps the host's choice.

        Raises:
            ConfigurationError: where fewer are visible.
        """
        if number == 0:
            return
        count = _npu().device_count()
        if number >= count:
            raise ConfigurationError(
                f"platform npu: each process needs a device of its own, number {number} was asked "
                f"for and {count} are visible; start fewer processes, or see "
                "ASCEND_RT_VISIBLE_DEVICES"
            )
        _npu().set_device(number)

    @property
    def evidence(self) -> str:
        """``simulated`` where the process runs over the simulated runtime, else ``device``."""
        _npu()
        return "device" if ascend.simulator() is None else SIMULATED

    def identity(self) -> str:
        """Return the current device's number on the machine, whatever this process may see."""
        seen = os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "")
        current = int(_npu().current_device())
        visible = [word.strip() for word in seen.split(",") if word.strip()]
        return f"npu {visible[current] if current < len(visible) else current}"

    def last_level_cache_bytes(self) -> int | None:
        """Return the size of the cache that all of a device's cores share, where torch_npu says."""
        size = getattr(_npu().get_device_properties(), "L2_cache_size", None)
        return size if isinstance(size, int) and size > 0 else None

    def synchronize(self) -> None:
        """Wait for all work on the current device."""
        _npu().synchronize()

    def environment(self) -> dict[str, Any]:
        """Return versions, the device, its load, and what steers the runtime."""
        import torch
        import torch_npu

        from xllm_kernel.platforms import npu_facts

        facts = npu_facts.facts(_npu(), torch_npu, ascend.simulator())
        return {"torch": torch.__version__, **facts}

    def capture(
        self,
        function: Callable[[], Any],
        mode: str,
        *,
        calls: int | None = None,
        beside: bool = False,
    ) -> Captured:
        """Prepare calls: eager as they are, ``aclgraph`` as one graph of independent calls, 64.

        Graphs live beside each other in any case: each has its memory for itself.

        A graph is captured on a stream of its own, the default one cannot be; a first call there
        lets whatever is set up once a stream, workspaces say, happen outside of the graph.

        Raises:
            RuntimeError: what the capture raised; a call's own error first, where there is one.
        """
        if mode == "eager":
            return eager(function)
        npu = _npu()
        graph, stream = npu.NPUGraph(), npu.Stream()
        stream.wait_stream(npu.current_stream())
        calls = CALLS_A_GRAPH if calls is None else calls
        # torch_npu's context leaves its stream current where a failed capture cannot be ended.
        with npu.stream(stream):
            function()
            stream.synchronize()
            outputs = _record(npu.graph(graph, stream=stream), function, calls)
        # The bound method keeps the graph, and the graph its memory, as long as the outputs live.
        return Captured(calls=calls, replay=graph.replay, outputs=lambda: outputs)

    def other_stream(self) -> AbstractContextManager[object]:
        """Make a new stream current, ordered by events after and before the current one."""
        return _aside(_npu())

    def release_memory(self) -> None:
        """Return the caching allocator's free blocks to the device."""
        npu = _npu()
        npu.synchronize()
        npu.empty_cache()

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


@contextmanager
def _aside(npu: Any) -> Iterator[None]:
    """Make a stream current that begins after the current one and that the current one awaits."""
    current, side = npu.current_stream(), npu.Stream()
    side.wait_stream(current)
    with npu.stream(side):
        yield
    current.wait_stream(side)


def _record(
    capture: AbstractContextManager[object], function: Callable[[], Any], calls: int
) -> list[Any]:
    """Call a function while its calls are captured and return what each returned.

    A call that raises breaks the capture, and ending a broken capture raises again, about that
    alone; the error then names both.
    """
    cause: Exception | None = None
    try:
        with capture:
            try:
                return [function() for _ in range(calls)]
            except Exception as error:
                cause = error
                raise
    except RuntimeError as error:
        if cause is None or cause is error:
            raise
        raise RuntimeError(
            f"{type(cause).__name__}: {cause} (then, ending the capture: {error})"
        ) from cause


def _is_installed(module: str) -> bool:
    """Say whether a top-level module is loaded or can be found, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return importlib.util.find_spec(module) is not None


def _require_device(npu: Any) -> None:
    """Raise DependencyAbsentError unless the runtime starts and sees a device."""
    try:
        count = npu.device_count()
        if count > 0:
            npu.current_device()  # starts the runtime
            return
        seen = "the runtime counts none"
    except RuntimeError as error:
        seen = f"the runtime says: {error}"
    raise DependencyAbsentError(
        f"platform npu: a visible device that starts is needed, {seen}; look at `npu-smi "
        "info`, at ASCEND_RT_VISIBLE_DEVICES, at the permissions of /dev/davinci* and at which "
        "processors this torch_npu supports"
    )


def _npu() -> Any:
    """Return torch's device module, which torch_npu adds when imported."""
    import torch
    import torch_npu  # noqa: F401

    return torch.npu  # type: ignore[attr-defined]
