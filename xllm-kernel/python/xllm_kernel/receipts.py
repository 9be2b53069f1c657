"""Receipts: which implementation each operation got, and why every other one was passed over.

A receipt's hash tells whether two processes got the same; it covers what was chosen, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from types import BuiltinFunctionType

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.registry import KernelRegistry, PreparedKernel
from xllm_kernel.version import __version__


@dataclass(frozen=True, slots=True)
class Excluded:
    """A candidate that was passed over.

    Attributes:
        name: implementation, or its module where nothing was registered.
        code: ``missing``, ``device``, ``contract``, ``mode``, ``override`` or ``priority``.
        reason: the code's sentence.
    """

    name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """One operation's choice, as plain values.

    Attributes:
        operation: name of the operation.
        contract_version: version of the contract that the choice fulfils.
        implementation: full name of the choice.
        solution: its short name.
        device: its device type.
        execution_modes: modes it supports.
        priority: its priority.
        input_domain: what it accepts.
        guarantees: what it promises beyond the contract, as ``name: sentence``.
        build: what was loaded for it.
        caveats: what a reader of any result must be told of it.
        entry: what the bound callable is.
        generation: number of the publication.
        excluded: every other candidate.
        plan_hash: SHA-256 of the choice: contract, declaration, binaries, entry and versions. Equal
            in processes that compute with the same code and settings, so that they can compare.
    """

    operation: str
    contract_version: int
    implementation: str
    solution: str
    device: str
    execution_modes: tuple[str, ...]
    priority: int
    input_domain: str
    guarantees: tuple[str, ...]
    build: tuple[str, ...]
    caveats: tuple[str, ...]
    entry: str
    generation: int
    excluded: tuple[Excluded, ...]
    plan_hash: str

    @classmethod
    def of(cls, plan: PreparedKernel) -> Receipt:
        """Write a plan's receipt."""
        spec = plan.spec
        return cls(
            operation=spec.contract.operation,
            contract_version=spec.contract.version,
            implementation=spec.name,
            solution=spec.solution,
            device=spec.device,
            execution_modes=spec.execution_modes,
            priority=spec.priority,
            input_domain=spec.input_domain,
            guarantees=tuple(f"{name}: {GUARANTEES[name]}" for name in spec.guarantees),
            build=spec.build,
            caveats=spec.caveats,
            entry=_entry(plan.function),
            generation=plan.generation,
            excluded=tuple(_excluded(name, reason) for name, reason in plan.excluded),
            plan_hash=_plan_hash(plan),
        )

    def as_dict(self) -> dict[str, object]:
        """Return the receipt as JSON values."""
        return asdict(self)


def receipts() -> dict[str, Receipt]:
    """Return the receipts of this process's published plans, by operation.

    Raises:
        ConfigurationError: before ``xllm_kernel.initialize``.
    """
    published = KernelRegistry.get().published
    if published is None:
        raise ConfigurationError(
            "xllm_kernel.receipts: kernels must be initialised first, none are published; call "
            "xllm_kernel.initialize(device=...)"
        )
    return {operation: Receipt.of(plan) for operation, plan in published.items()}


def _plan_hash(plan: PreparedKernel) -> str:
    """Hash what was chosen.

    Left out is what differs between processes that chose alike: the generation, and the candidates
    that were passed over. Threads are a matter of the process, and of no plan.
    """
    spec = plan.spec
    frameworks = {name: sys.modules.get(name) for name in ("torch", "torch_npu")}
    chosen = {
        "name": spec.name,
        "contract": asdict(spec.contract),
        "device": spec.device,
        "execution_modes": spec.execution_modes,
        "input_domain": spec.input_domain,
        "guarantees": spec.guarantees,
        "build": spec.build,
        "caveats": spec.caveats,
        "entry": _entry(plan.function),
        "xllm_kernel": __version__,
        "python": sys.version_info[:2],
        **{name: str(getattr(m, "__version__", None)) for name, m in frameworks.items()},
    }
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()


def _excluded(name: str, reason: str) -> Excluded:
    code, _, sentence = reason.partition(": ")
    return Excluded(name, code, sentence)


def _entry(function: object) -> str:
    """Describe a bound callable: Torch overload, C builtin over one, or function of a module."""
    if isinstance(function, BuiltinFunctionType):
        return (
            f"C builtin {function.__module__}.{function.__name__} over {_entry(function.__self__)}"
        )
    if type(function).__name__ == "OpOverload":
        return f"torch operator {function}"
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{type(function).__name__} {module}.{getattr(function, '__qualname__', '?')}"
