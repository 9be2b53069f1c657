"""Failure classes of the package.

Every message says who speaks, what must hold, what was seen and what to do. This module imports
nothing, so that any other may use it.
"""

from __future__ import annotations

# What an implementation may raise. One that ends the process ends its case, not the run.
RAISED = (Exception, SystemExit, GeneratorExit)


class KernelError(RuntimeError):
    """Base of every error this package raises on purpose."""

    def at_step(self, step: str, outcome: str) -> None:
        """Add the initialisation step that failed to the message.

        Args:
            step: what was being done, e.g. ``"check the overrides"``.
            outcome: what the failure means for the process, e.g. ``"nothing was published"``.
        """
        message = self.args[0] if self.args else type(self).__name__
        self.args = (f"{message} [initialize: failed at '{step}'; {outcome}]",)


def describe(error: BaseException) -> str:
    """Return an exception's type and message, and those of what caused it, innermost last."""
    said = f"{type(error).__name__}: {error}"
    return said if error.__cause__ is None else f"{said} (because of {describe(error.__cause__)})"


class ConfigurationError(KernelError):
    """A configuration cannot be honoured: an unknown name or target, an incompatible choice."""


class DependencyAbsentError(KernelError):
    """A declared dependency is not installed, and what was asked for needs it."""


class DependencyBrokenError(KernelError):
    """A dependency is installed, but importing or registering what needs it failed."""


class DomainError(KernelError, ValueError):
    """An argument lies outside an implementation's domain.

    Attributes:
        clause: name of the violated clause, e.g. ``"weight.width"``.
    """

    def __init__(self, message: str, clause: str) -> None:
        super().__init__(message)
        self.clause = clause

    def __reduce__(self) -> tuple[type[DomainError], tuple[str, str]]:
        """Pickle both arguments, so that the error crosses process boundaries."""
        return type(self), (self.args[0], self.clause)


class ContractError(KernelError):
    """An implementation broke its operation's contract, or two contracts contradict each other."""


class ArtifactError(KernelError):
    """A built artefact does not match its manifest, its sources or the installed framework."""
