"""Initialisation: from declarations to one published, read-only set of plans.

An attempt is a transaction. It knows no operator and no device by name.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from xllm_kernel import catalog, selection
from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.errors import (
    ConfigurationError,
    DependencyBrokenError,
    KernelError,
    describe,
)
from xllm_kernel.platforms import get_platform
from xllm_kernel.registry import KernelRegistry, PreparedKernel
from xllm_kernel.selection import Absent, Override

logger = logging.getLogger("xllm_kernel")

Overrides = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Configuration:
    """What a publication was made from; another one needs a new process."""

    device: str
    execution_mode: str
    overrides: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        chosen = ", ".join(f"{k}={v}" for k, v in self.overrides) or "none"
        return f"device={self.device}, mode={self.execution_mode}, overrides: {chosen}"


_lock = threading.RLock()
_preparing = False
_configuration: tuple[KernelRegistry, _Configuration] | None = None


def initialize(
    device: str,
    execution_mode: str = "eager",
    overrides: Overrides | None = None,
) -> Mapping[str, PreparedKernel]:
    """Choose and publish one implementation for every operation of a device.

    Call it once a worker, after the host loaded its own operators and before models are imported
    or graphs captured. The same effective configuration again returns the same mapping.

    Args:
        device: device type, e.g. ``"cpu"`` or ``"npu"``.
        execution_mode: how models will call, e.g. ``"eager"``.
        overrides: operation to solution or full implementation name. The environment variables
            ``XLLM_KERNEL_OVERRIDE_<OPERATION>`` win over it.

    Returns:
        A read-only mapping from operation to its plan.

    Raises:
        ConfigurationError: unknown device, mode, operation or target; an incompatible choice; an
            operation without a survivor; another configuration after publication.
        DependencyAbsentError: what was asked for, or all there is, needs a module that is missing.
        DependencyBrokenError: an installed backend failed while it was imported.
        ArtifactError: a built artefact does not match its manifest.
    """
    global _configuration, _preparing
    with _lock:
        if _preparing:
            raise ConfigurationError(
                "xllm_kernel.initialize: must not be called while a backend is being prepared; "
                "remove the call from the backend's module"
            )
        registry = KernelRegistry.get()
        with _step("read the configuration"):
            _check_mode(device, execution_mode)
            definitions = catalog.operations()
            chosen = selection.resolve_overrides(definitions, overrides, os.environ)
        wanted = _Configuration(
            device, execution_mode, tuple(sorted((k, o.target) for k, o in chosen.items()))
        )
        if registry.published is not None:
            _check_unchanged(registry, wanted)
            return registry.published
        _preparing = True
        try:
            published = _attempt(registry, definitions, device, execution_mode, chosen)
        finally:
            _preparing = False
        _configuration = (registry, wanted)
        for operation, plan in published.items():
            logger.info("%s: %s", operation, plan.spec.name)
        return published


def _attempt(
    registry: KernelRegistry,
    definitions: Mapping[str, Operation],
    device: str,
    execution_mode: str,
    overrides: Mapping[str, Override],
) -> Mapping[str, PreparedKernel]:
    """Import, freeze, select and publish; leave nothing behind on failure."""
    importlib.invalidate_caches()  # a build may have written a module since the last attempt
    before = registry.state()
    modules_before = set(sys.modules)
    try:
        taking_part = {n: d for n, d in definitions.items() if device in d.devices}
        with _step("check the overrides"):
            _check_overrides(registry, definitions, device, overrides)
        absent: dict[str, tuple[Absent, ...]] = {}
        for name, definition in taking_part.items():
            with _step(f"import the backends of {name}"):
                absent[name] = tuple(_import_backends(registry, definition, device))
        registry.freeze()
        plans: dict[str, PreparedKernel] = {}
        for name, definition in taking_part.items():
            with _step(f"select for {name}"):
                winner, excluded = selection.select(
                    name,
                    definition,
                    device,
                    execution_mode,
                    overrides.get(name),
                    registry.candidates(name),
                    absent[name],
                )
            plans[name] = PreparedKernel(
                winner.spec, winner.function, registry.generation + 1, excluded
            )
        others = {n: d.devices for n, d in definitions.items() if n not in taking_part}
        return registry.publish(plans, others)
    except BaseException:
        registry.restore(before)
        _forget_modules(definitions, modules_before)
        raise


def _check_mode(device: str, execution_mode: str) -> None:
    modes = get_platform(device).execution_modes
    if execution_mode not in modes:
        raise ConfigurationError(
            f"xllm_kernel.initialize: execution_mode must be one of {', '.join(modes)} on device "
            f"'{device}', got {execution_mode!r}"
        )


def _check_unchanged(registry: KernelRegistry, wanted: _Configuration) -> None:
    if _configuration is None or _configuration[0] is not registry:
        raise ConfigurationError(
            "xllm_kernel.initialize: plans were published without it; use the published ones"
        )
    current = _configuration[1]
    if current != wanted:
        raise ConfigurationError(
            f"xllm_kernel.initialize: kernels are published for ({current}), which cannot change "
            f"to ({wanted}) in this process; start a new worker and capture its graphs anew"
        )


def _check_overrides(
    registry: KernelRegistry,
    definitions: Mapping[str, Operation],
    device: str,
    overrides: Mapping[str, Override],
) -> None:
    for name, override in overrides.items():
        definition = definitions[name]
        if device not in definition.devices:
            raise ConfigurationError(
                f"{name} [{override.source}]: no backend is declared for device '{device}'; it "
                f"has backends for {', '.join(definition.devices)}; remove the override"
            )
        registered = registry.specs(name)
        selection.check_target(name, definition, override, device, registered)


def _import_backends(
    registry: KernelRegistry, definition: Operation, device: str
) -> Iterator[Absent]:
    """Import the backends declared for a device; yield those that were not imported, and why."""
    for backend in definition.backends:
        if backend.device != device:
            sentence = f"declared for '{backend.device}', the worker runs '{device}'"
            yield Absent(backend, "device", sentence)
            continue
        lack = _lack(backend)
        if lack is not None:
            yield Absent(backend, "missing", lack)
            continue
        _import_backend(registry, definition, backend)


def _lack(backend: BackendModule) -> str | None:
    """Say what is absent of what a backend requires: modules, or what the system must bring."""
    missing = [m for m in backend.requires if not _is_present(m)]
    if not missing:
        return get_platform(backend.device).absence(backend.requires)
    hint = f"; {backend.hint}" if backend.hint else ""
    plural = "modules are" if len(missing) > 1 else "module is"
    return f"required {plural} absent: {', '.join(missing)}{hint}"


def _is_present(module: str) -> bool:
    """Say whether a module can be found, without importing it (its parents are imported).

    Raises:
        DependencyBrokenError: when a parent is installed and fails to import.
    """
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        prefix = ".".join(parts[:end])
        if sys.modules.get(prefix) is not None:
            continue
        if prefix in sys.modules:
            return False
        parent = prefix.rpartition(".")[0]
        try:
            if parent and not hasattr(importlib.import_module(parent), "__path__"):
                return False
            if importlib.util.find_spec(prefix) is None:
                return False
        except Exception as error:
            raise DependencyBrokenError(
                f"{module}: it is required, and its package '{parent}' is installed, so that must "
                f"import, but it raised {describe(error)}; repair the installation"
            ) from error
    return True


def _import_backend(
    registry: KernelRegistry, definition: Operation, backend: BackendModule
) -> None:
    operation = definition.contract.operation
    try:
        importlib.import_module(backend.module)
    except KernelError:
        raise
    except (Exception, SystemExit) as error:  # a module that exits is broken, not done
        raise DependencyBrokenError(
            f"{operation} [{backend.module}]: the modules it requires are present, so it must "
            f"import, but it raised {describe(error)}; repair the installation, or "
            "remove the broken package to do without it"
        ) from error
    registered = registry.registered_by(backend.module)
    lacking = [name for name in backend.implementations if name not in registered]
    if lacking or not registered:
        raise ConfigurationError(
            f"{operation} [{backend.module}]: importing it must register "
            f"{', '.join(backend.implementations) or 'an implementation'}, it registered "
            f"{', '.join(registered) or 'none'}; correct its declaration or its registration"
        )


def _forget_modules(definitions: Mapping[str, Operation], before: set[str]) -> None:
    """Drop the backend modules that a failed attempt imported, so that a retry runs them again.

    A backend's required modules go too where they belong to its own package (build markers), or a
    retry after a repair would read the old ones. Frameworks and SDKs stay.
    """
    for definition in definitions.values():
        for backend in definition.backends:
            own_package = backend.module.partition(".")[0] + "."
            markers = [m for m in backend.requires if m.startswith(own_package)]
            for name in (backend.module, *markers):
                if name not in before and name in sys.modules:
                    _forget_module(name)


def _forget_module(name: str) -> None:
    module = sys.modules.pop(name)
    parent, _, child = name.rpartition(".")
    if getattr(sys.modules.get(parent), child, None) is module:
        delattr(sys.modules[parent], child)


@contextmanager
def _step(name: str) -> Iterator[None]:
    """Name the step in every error of ours that leaves it."""
    try:
        yield
    except KernelError as error:
        published = KernelRegistry.get().published is not None
        error.at_step(name, "the published plans stay" if published else "nothing was published")
        raise
