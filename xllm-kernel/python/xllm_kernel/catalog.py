"""Definitions of operations and their backends, and the list of built-in ones.

Discovery reads declarations only: it imports no framework and no device SDK.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.registry import OpContract

_BUILTINS: tuple[str, ...] = (
    "xllm_kernel.ops.rms_norm",
    "xllm_kernel.ops.rms_norm_out",
    "xllm_kernel.ops.fused_add_rms_norm",
    "xllm_kernel.ops.fused_add_rms_norm_inplace",
)


@dataclass(frozen=True, slots=True)
class BackendModule:
    """A module that registers implementations when imported.

    Attributes:
        module: import path; its last component is the solution's short name.
        device: device type it serves.
        requires: modules that must be present; a missing one excludes the backend.
        implementations: full names that importing it must register.
        hint: what to do when a required module is missing.
    """

    module: str
    device: str
    requires: tuple[str, ...] = ()
    implementations: tuple[str, ...] = ()
    hint: str = ""

    def __post_init__(self) -> None:
        """Refuse a string where a tuple belongs: it would read as one name a letter."""
        for field in ("requires", "implementations"):
            if not isinstance(getattr(self, field), tuple):
                raise ConfigurationError(
                    f"BackendModule [{self.module}]: {field} must be a tuple of names, got "
                    f"{getattr(self, field)!r}; a tuple of one has a comma at its end"
                )

    @property
    def solution(self) -> str:
        """Short name of the solution, by the rule that its file is ``<solution>.py``."""
        return self.module.rpartition(".")[2]

    def answers_to(self, target: str) -> bool:
        """Say whether an override's target means this backend."""
        return target == self.solution or target in self.implementations


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation's contract and the backends that may implement it."""

    contract: OpContract
    backends: tuple[BackendModule, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """Device types for which a backend is declared, in order of declaration."""
        return tuple(dict.fromkeys(b.device for b in self.backends))


def operations() -> dict[str, Operation]:
    """Return every built-in operation by name.

    Raises:
        ConfigurationError: when a listed module exports no ``OPERATION``, when two define one
            name, or when a name is no lower-case identifier.
    """
    found: dict[str, Operation] = {}
    origin: dict[str, str] = {}
    for path in _BUILTINS:
        operation = getattr(importlib.import_module(path), "OPERATION", None)
        if not isinstance(operation, Operation):
            raise ConfigurationError(
                f"catalog: {path} must export OPERATION, an Operation, got {operation!r}"
            )
        name = operation.contract.operation
        if not (name.isidentifier() and name == name.lower()):
            raise ConfigurationError(
                f"catalog: an operation's name must be a lower-case identifier, so that its "
                f"environment variable is unambiguous, but {path} defines {name!r}; rename it"
            )
        if name in found:
            raise ConfigurationError(
                f"catalog: operation '{name}' must be defined once, but {origin[name]} and {path} "
                "both define it; rename one"
            )
        found[name], origin[name] = operation, path
    return found
