"""What differs by device type: modes, synchronisation, graphs, clocks, environment facts.

Platforms import their framework when first used, so that naming one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.platforms.npu import NpuPlatform


class Platform(Protocol):
    """The interface through which shared runners treat every device alike.

    Attributes:
        name: device type.
        execution_modes: modes in which a function can be captured.
        recovers: whether what runs after an error can be trusted.
        submits: whether calls return before their work is done.
    """

    name: str
    execution_modes: tuple[str, ...]
    recovers: bool
    submits: bool

    def absence(self, modules: tuple[str, ...]) -> str | None:
        """Say what the system lacks for installed modules to be imported, or None.

        Imports nothing. What it names is absent, as a module that is not installed; what is there
        and does not work is for the import to say.
        """

    def require(self) -> None:
        """Raise DependencyAbsentError, naming what is missing, where the device cannot be used."""

    def use(self, number: int) -> None:
        """Work on one of several devices from now on; known once ``require`` has passed.

        Args:
            number: of this process among those that share the machine's devices, 0 first.

        Raises:
            ConfigurationError: where there are fewer devices.
        """

    def identity(self) -> str:
        """Return which device this process works on, the same word for all that share it."""

    def last_level_cache_bytes(self) -> int | None:
        """Return how much the last cache before the device's memory holds; None where unknown."""

    @property
    def evidence(self) -> str:
        """How results on this device are obtained; known once ``require`` has passed."""

    def synchronize(self) -> None:
        """Wait until all submitted work is done."""

    def environment(self) -> dict[str, Any]:
        """Return facts about device and software, as JSON values."""

    def capture(
        self,
        function: Callable[[], Any],
        mode: str,
        *,
        calls: int | None = None,
        beside: bool = False,
    ) -> Captured:
        """Prepare calls of a function as the mode runs them; graph modes capture several.

        Args:
            function: takes no arguments.
            mode: one of ``execution_modes``.
            calls: how many one unit may run; None leaves it to the mode.
            beside: whether units captured before are replayed again; without it they may be spent.
        """

    def other_stream(self) -> AbstractContextManager[object] | None:
        """Return what makes another stream current, in order with this one before and after.

        None where all work of a device happens in the order of its calls.
        """

    def release_memory(self) -> None:
        """Give back what no tensor holds, so that what is allocated next may lie there."""

    def measure(
        self, captured: Captured, iterations: int, clock: Callable[[], int]
    ) -> dict[str, float]:
        """Replay ``iterations`` times and return microseconds a call, by column name.

        Args:
            captured: what ``capture`` returned.
            iterations: number of replays in the sample.
            clock: monotonic host clock in nanoseconds.
        """


_PLATFORMS: dict[str, Callable[[], Platform]] = {"cpu": CpuPlatform, "npu": NpuPlatform}


def get_platform(device: str) -> Platform:
    """Return the platform of a device type.

    Raises:
        ConfigurationError: for a name that is no known device type.
    """
    factory = _PLATFORMS.get(device)
    if factory is None:
        raise ConfigurationError(
            f"device must be one of {', '.join(_PLATFORMS)}, got {device!r}; a device type takes "
            "no index: choose the device through the host"
        )
    return factory()
