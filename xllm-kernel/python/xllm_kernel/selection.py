"""The choice of one implementation for each operation: overrides, compatibility, priority.

Reads declarations only; it never looks at tensors and never calls a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.errors import ConfigurationError, DependencyAbsentError, KernelError
from xllm_kernel.registry import Candidate, KernelSpec

ENVIRONMENT_PREFIX = "XLLM_KERNEL_OVERRIDE_"


@dataclass(frozen=True, slots=True)
class Override:
    """An explicit choice: the solution or implementation asked for, and where it was asked."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Absent:
    """A backend that was not imported, and why: ``code`` and sentence."""

    backend: BackendModule
    code: str
    sentence: str

    @property
    def reason(self) -> str:
        """Code and sentence, as a receipt prints them."""
        return f"{self.code}: {self.sentence}"


def environment_key(operation: str) -> str:
    """Return the environment variable that overrides an operation's choice."""
    return ENVIRONMENT_PREFIX + operation.upper()


def resolve_overrides(
    operations: Mapping[str, Operation],
    explicit: Mapping[str, str] | None,
    environment: Mapping[str, str],
) -> dict[str, Override]:
    """Combine an explicit mapping and the environment; the environment wins.

    Args:
        operations: every known operation.
        explicit: operation to target, or None.
        environment: process environment.

    Returns:
        Operation to override, for the overridden operations only.

    Raises:
        ConfigurationError: for an unknown operation, or a target that is not a non-empty string.
    """
    resolved: dict[str, Override] = {}
    if explicit is not None and not isinstance(explicit, Mapping):
        raise ConfigurationError(
            "overrides: a mapping from operation to solution or implementation name is needed, "
            f"got {explicit!r}"
        )
    for key, target in (explicit or {}).items():
        _require_known(key, operations, f"overrides[{key!r}]")
        resolved[key] = _override(target, f"overrides[{key!r}]")
    by_variable = {environment_key(name): name for name in operations}
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = by_variable.get(variable)
        if name is None:
            raise ConfigurationError(
                f"{variable}: unknown operation; known variables are "
                f"{', '.join(sorted(by_variable))}"
            )
        resolved[name] = _override(environment[variable], variable)
    return resolved


def check_target(
    operation: str,
    definition: Operation,
    override: Override,
    device: str,
    registered: tuple[KernelSpec, ...],
) -> None:
    """Refuse an override that no backend or registered implementation answers to.

    Args:
        operation: name of the operation.
        definition: its declared backends.
        override: the choice.
        device: device being initialised, for the message.
        registered: declarations already registered for the operation, plug-ins' among them.

    Raises:
        ConfigurationError: when the target is unknown.
    """
    if any(b.answers_to(override.target) for b in definition.backends):
        return
    if any(override.target in (s.name, s.solution) for s in registered):
        return
    targets = {name for b in definition.backends for name in (b.solution, *b.implementations)}
    targets |= {name for s in registered for name in (s.name, s.solution)}
    raise ConfigurationError(
        f"{operation} [{override.source}]: unknown target '{override.target}' on device "
        f"'{device}'; choose one of {', '.join(sorted(targets))}"
    )


def select(
    operation: str,
    definition: Operation,
    device: str,
    execution_mode: str,
    override: Override | None,
    candidates: tuple[Candidate, ...],
    absent: tuple[Absent, ...],
) -> tuple[Candidate, tuple[tuple[str, str], ...]]:
    """Choose an operation's implementation.

    Args:
        operation: name of the operation.
        definition: its contract and backends.
        device: device type.
        execution_mode: mode in which models will call it.
        override: an explicit choice, or None.
        candidates: registered candidates, best first.
        absent: declared backends that were not imported.

    Returns:
        The chosen candidate, and each other one as ``(name, "code: sentence")``.

    Raises:
        ConfigurationError: when no candidate is compatible, or the chosen one is not.
        DependencyAbsentError: when only missing modules stand in the way.
    """
    excluded = [(a.backend.module, a.reason) for a in absent]
    fitting: list[Candidate] = []
    for candidate in candidates:
        reason = _incompatibility(candidate.spec, definition, device, execution_mode)
        if reason is None:
            fitting.append(candidate)
        else:
            excluded.append((candidate.spec.name, reason))
    if override is not None:
        chosen = _overridden(operation, override, fitting, candidates, absent, dict(excluded))
        reason = f"override: {override.source} chose '{override.target}'"
    elif fitting:
        chosen = fitting[0]
        reason = ""
    else:
        raise _no_survivor(operation, device, execution_mode, absent, excluded, bool(candidates))
    for other in fitting:
        if other is not chosen:
            excluded.append((other.spec.name, reason or _lower(other.spec, chosen.spec)))
    return chosen, tuple(excluded)


def _require_known(name: object, operations: Mapping[str, Operation], source: str) -> None:
    if name not in operations:
        raise ConfigurationError(
            f"{source}: unknown operation; known operations are {', '.join(sorted(operations))}"
        )


def _override(target: object, source: str) -> Override:
    if not isinstance(target, str) or not target.strip():
        raise ConfigurationError(
            f"{source}: a solution or implementation name is needed, got {target!r}; name one, or "
            "remove the override for the automatic choice"
        )
    return Override(target.strip(), source)


def _incompatibility(
    spec: KernelSpec, definition: Operation, device: str, execution_mode: str
) -> str | None:
    if spec.device != device:
        return f"device: implements '{spec.device}', the worker runs '{device}'"
    if spec.contract != definition.contract:
        return f"contract: implements {spec.contract}, the operation defines {definition.contract}"
    if execution_mode not in spec.execution_modes:
        modes = ", ".join(spec.execution_modes)
        return f"mode: supports {modes}, the worker runs '{execution_mode}'"
    return None


def _overridden(
    operation: str,
    override: Override,
    fitting: list[Candidate],
    candidates: tuple[Candidate, ...],
    absent: tuple[Absent, ...],
    reasons: Mapping[str, str],
) -> Candidate:
    target = override.target
    # An exact name takes precedence over a solution's, even where only the latter would fit.
    exact = [c for c in candidates if c.spec.name == target]
    meant = exact or [c for c in candidates if c.spec.solution == target]
    for candidate in fitting:
        if candidate in meant:
            return candidate
    why = [f"{c.spec.name} ({reasons[c.spec.name]})" for c in meant]
    missing = [a for a in absent if a.backend.answers_to(target)]
    why += [f"{a.backend.module} ({a.reason})" for a in missing]
    message = (
        f"{operation} [{override.source}]: the choice '{target}' cannot be honoured: "
        f"{'; '.join(why)}; an explicit choice is never replaced by another implementation"
    )
    if missing and not meant and all(a.code == "missing" for a in missing):
        raise DependencyAbsentError(message)
    raise ConfigurationError(message)


def _no_survivor(
    operation: str,
    device: str,
    execution_mode: str,
    absent: tuple[Absent, ...],
    excluded: list[tuple[str, str]],
    any_registered: bool,
) -> KernelError:
    reasons = "; ".join(f"{name} ({reason})" for name, reason in excluded)
    message = (
        f"{operation}: no implementation is left for device '{device}', mode "
        f"'{execution_mode}': {reasons or 'no backend registered one'}"
    )
    here = [a for a in absent if a.backend.device == device]
    if here and all(a.code == "missing" for a in here) and not any_registered:
        return DependencyAbsentError(message)
    return ConfigurationError(message)


def _lower(spec: KernelSpec, chosen: KernelSpec) -> str:
    if spec.priority == chosen.priority:
        return f"priority: equal to {chosen.name} ({chosen.priority}), which comes first by name"
    return f"priority: {spec.priority} is lower than {chosen.priority} of {chosen.name}"
