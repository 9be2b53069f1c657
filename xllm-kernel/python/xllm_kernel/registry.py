"""Declared implementations, and the plans that were published from them.

Holds data and its rules only: which modules are imported is the runtime's business, and which
candidate wins is the selection's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from xllm_kernel.errors import ConfigurationError, ContractError
from xllm_kernel.guarantees import GUARANTEES

if TYPE_CHECKING:
    from xllm_kernel.domain import Domain

KernelFunction = Callable[..., Any]
_Function = TypeVar("_Function", bound=KernelFunction)


@dataclass(frozen=True, slots=True)
class OpContract:
    """What every implementation of an operation does alike.

    Attributes:
        operation: name of the operation, a Python identifier.
        version: raised when the meaning changes.
        mutates: names of the arguments that the operation writes to.
        aliases_inputs: whether an output may share storage with an input.
        numerical_mode: how results may differ between implementations, e.g. ``"tolerance"``.
        conventions: choices that change results, as ``"name: value"``.
    """

    operation: str
    version: int = 1
    mutates: tuple[str, ...] = ()
    aliases_inputs: bool = False
    numerical_mode: str = "tolerance"
    conventions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """What one implementation declares about itself.

    Attributes:
        name: full name, unique in the process: ``<device>.<solution>.<operation>``.
        contract: the contract it fulfils.
        device: device type it runs on, e.g. ``"cpu"``.
        execution_modes: modes it supports, e.g. ``("eager", "aclgraph")``.
        input_domain: sentence that describes the arguments it accepts.
        solution: short name by which an override may choose it.
        priority: the highest wins; equal priorities go by name.
        domain: executable form of ``input_domain``; None where a vendor checks its own operator.
        guarantees: names of what it promises beyond the contract; see ``guarantees``.
        build: what was loaded for it: level, digest, compiler; empty where nothing was built.
        caveats: what a reader of any result must be told of what was loaded.
    """

    name: str
    contract: OpContract
    device: str
    execution_modes: tuple[str, ...]
    input_domain: str
    solution: str
    priority: int = 0
    domain: Domain | None = None
    guarantees: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """A published choice.

    Attributes:
        spec: the chosen implementation's declaration.
        function: the registered callable itself, for eager calls and graph capture.
        generation: number of the publication that made it, 1 first.
        excluded: every candidate passed over, as ``(name, "code: sentence")``.
    """

    spec: KernelSpec
    function: KernelFunction
    generation: int
    excluded: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A registered implementation, its callable and where it was registered (``file:line``)."""

    spec: KernelSpec
    function: KernelFunction
    site: str
    module: str


@dataclass(frozen=True, slots=True)
class RegistryState:
    """A point to which a failed initialisation returns."""

    candidates: Mapping[str, Candidate]
    frozen: bool


class KernelRegistry:
    """Registered implementations of one process, and its published plans."""

    _instance: KernelRegistry | None = None

    def __init__(self) -> None:
        self._candidates: dict[str, Candidate] = {}
        self._frozen = False
        self._published: Mapping[str, PreparedKernel] | None = None
        self._other_devices: Mapping[str, tuple[str, ...]] = {}
        self._generation = 0

    @classmethod
    def get(cls) -> KernelRegistry:
        """Return the process's registry."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @property
    def frozen(self) -> bool:
        """Whether registration is closed."""
        return self._frozen

    @property
    def generation(self) -> int:
        """How many times plans were published."""
        return self._generation

    @property
    def published(self) -> Mapping[str, PreparedKernel] | None:
        """The read-only mapping from operation to plan, or None before initialisation."""
        return self._published

    def register(
        self, spec: KernelSpec, function: KernelFunction, *, site: str, module: str
    ) -> None:
        """Add an implementation.

        Args:
            spec: its declaration.
            function: the callable that a model will hold.
            site: ``file:line`` of the registration, for messages.
            module: name of the registering module.

        Raises:
            ConfigurationError: after ``freeze()``, for a name already taken, or for a declaration
                that is incomplete.
            ContractError: when another implementation of the same operation and version was
                registered under a different contract.
        """
        who = f"register_kernel [{spec.name}]"
        if self._frozen:
            raise ConfigurationError(
                f"{who}: registration must happen before the registry is frozen, got a "
                f"registration at {site}; import the module before xllm_kernel.initialize()"
            )
        _check_declaration(who, spec, function)
        earlier = self._candidates.get(spec.name)
        if earlier is not None:
            raise ConfigurationError(
                f"{who}: an implementation name must be unique, but it is registered at "
                f"{earlier.site} and again at {site}; rename one of them"
            )
        for other in self._candidates.values():
            _check_same_contract(who, spec.contract, site, other)
        self._candidates[spec.name] = Candidate(spec, function, site, module)

    def freeze(self) -> None:
        """Close registration."""
        self._frozen = True

    def candidates(self, operation: str) -> tuple[Candidate, ...]:
        """Return an operation's candidates, best first: by descending priority, then by name.

        Raises:
            ConfigurationError: before ``freeze()``, when the set may still grow.
        """
        if not self._frozen:
            raise ConfigurationError(
                f"KernelRegistry.candidates [{operation}]: the registry must be frozen before "
                "selection; call freeze() once every backend is imported"
            )
        mine = [c for c in self._candidates.values() if c.spec.contract.operation == operation]
        return tuple(sorted(mine, key=lambda c: (-c.spec.priority, c.spec.name)))

    def specs(self, operation: str) -> tuple[KernelSpec, ...]:
        """Return what is declared for an operation so far, in order of registration."""
        specs = (c.spec for c in self._candidates.values())
        return tuple(s for s in specs if s.contract.operation == operation)

    def registered_by(self, module: str) -> tuple[str, ...]:
        """Return the names that a module registered."""
        return tuple(n for n, c in self._candidates.items() if c.module == module)

    def state(self) -> RegistryState:
        """Return a point to which ``restore`` can go back."""
        return RegistryState(dict(self._candidates), self._frozen)

    def restore(self, state: RegistryState) -> None:
        """Forget every registration and freeze made since ``state``."""
        self._candidates = dict(state.candidates)
        self._frozen = state.frozen

    def publish(
        self,
        plans: Mapping[str, PreparedKernel],
        other_devices: Mapping[str, tuple[str, ...]],
    ) -> Mapping[str, PreparedKernel]:
        """Publish all plans at once and return them as a read-only mapping.

        Args:
            plans: operation to plan.
            other_devices: devices of each operation that does not take part.
        """
        self._other_devices = dict(other_devices)
        self._generation += 1
        self._published = MappingProxyType(dict(plans))
        return self._published

    def prepared(self, operation: str) -> PreparedKernel:
        """Return the published plan of an operation.

        Raises:
            ConfigurationError: before initialisation, for an unknown operation, and for one that
                has no backend for the initialised device.
        """
        if self._published is None:
            raise ConfigurationError(
                f"{operation}: kernels must be initialised before use, but none are published; "
                "call xllm_kernel.initialize(device=...) once at worker start-up"
            )
        plan = self._published.get(operation)
        if plan is not None:
            return plan
        devices = self._other_devices.get(operation)
        if devices is not None:
            raise ConfigurationError(
                f"{operation}: no backend is declared for the initialised device; it has backends "
                f"for {', '.join(devices)}; initialise a worker for one of these"
            )
        raise ConfigurationError(
            f"{operation}: unknown operation; published are {', '.join(sorted(self._published))}"
        )


def register_kernel(
    *,
    name: str,
    contract: OpContract,
    device: str,
    execution_modes: tuple[str, ...],
    input_domain: str,
    solution: str,
    priority: int = 0,
    domain: Domain | None = None,
    guarantees: tuple[str, ...] = (),
    build: tuple[str, ...] = (),
    caveats: tuple[str, ...] = (),
) -> Callable[[_Function], _Function]:
    """Declare a callable as an implementation; use it as a decorator or on an existing callable.

    Args:
        name: full name, unique in the process.
        contract: the operation's contract.
        device: device type.
        execution_modes: supported modes.
        input_domain: sentence that describes the accepted arguments.
        solution: short name for overrides.
        priority: the highest wins.
        domain: executable form of ``input_domain``.
        guarantees: names of promises beyond the contract.
        build: what was loaded for it.
        caveats: what a reader of any result must be told of what was loaded.

    Returns:
        A function that registers its argument in ``KernelRegistry.get()`` and returns it unchanged.

    Raises:
        ConfigurationError: for a duplicate, an incomplete declaration, or a frozen registry.
        ContractError: for a contract that contradicts a registered one.
    """
    spec = KernelSpec(
        name=name,
        contract=contract,
        device=device,
        execution_modes=execution_modes,
        input_domain=input_domain,
        solution=solution,
        priority=priority,
        domain=domain,
        guarantees=guarantees,
        build=build,
        caveats=caveats,
    )
    caller = sys._getframe(1)
    site = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    module = str(caller.f_globals.get("__name__", ""))

    def register(function: _Function) -> _Function:
        KernelRegistry.get().register(spec, function, site=site, module=module)
        return function

    return register


def _check_declaration(who: str, spec: KernelSpec, function: KernelFunction) -> None:
    for field in ("name", "device", "input_domain", "solution"):
        value = getattr(spec, field)
        if not isinstance(value, str) or not value:
            raise ConfigurationError(f"{who}: {field} must be a non-empty string, got {value!r}")
    for field in ("execution_modes", "guarantees", "build", "caveats"):
        value = getattr(spec, field)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            raise ConfigurationError(f"{who}: {field} must be a tuple of strings, got {value!r}")
    unknown = [name for name in spec.guarantees if name not in GUARANTEES]
    if unknown or len(set(spec.guarantees)) < len(spec.guarantees):
        raise ConfigurationError(
            f"{who}: guarantees must be different ones of {', '.join(GUARANTEES)}, got "
            f"{', '.join(unknown or spec.guarantees)}; what has no name is not tried, so it is no "
            "guarantee"
        )
    if not isinstance(spec.contract, OpContract):
        raise ConfigurationError(f"{who}: contract must be an OpContract, got {spec.contract!r}")
    if not spec.execution_modes:
        raise ConfigurationError(f"{who}: execution_modes must name at least one mode, got none")
    if isinstance(spec.priority, bool) or not isinstance(spec.priority, int):
        raise ConfigurationError(f"{who}: priority must be an int, got {spec.priority!r}")
    if not callable(function):
        raise ConfigurationError(f"{who}: a callable must be registered, got {function!r}")


def _check_same_contract(who: str, contract: OpContract, site: str, other: Candidate) -> None:
    theirs = other.spec.contract
    if (theirs.operation, theirs.version) != (contract.operation, contract.version):
        return
    if theirs != contract:
        raise ContractError(
            f"{who}: implementations of {contract.operation} version {contract.version} must share "
            f"one contract, but {other.spec.name} ({other.site}) has {theirs} and {site} has "
            f"{contract}; give other semantics another operation, or raise the version"
        )
