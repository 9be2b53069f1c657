"""Throw-away operations for tests of discovery, selection and publication.

Each is written to disk as an operation's folder is, so that the real import machinery runs.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from xllm_kernel import catalog

_counter = itertools.count()


@dataclass(frozen=True)
class Backend:
    """One solution of a throw-away operation.

    Attributes:
        solution: file name and short name.
        device: device type it is declared and registered for.
        priority: its priority.
        modes: its execution modes.
        requires: required modules.
        prologue: code that runs before the registration, e.g. a ``raise``.
        registers: whether the module registers anything.
        name: full name instead of ``<device>.<solution>.<operation>``.
        contract: expression for its contract.
        hint: what to do where a required module is missing.
        declares: names that it is said to register; None for its own.
    """

    solution: str
    device: str = "cpu"
    priority: int = 0
    modes: tuple[str, ...] = ("eager",)
    requires: tuple[str, ...] = ()
    prologue: str = ""
    registers: bool = True
    name: str | None = None
    contract: str = "CONTRACT"
    hint: str = ""
    declares: tuple[str, ...] | None = None

    def full_name(self, operation: str) -> str:
        return self.name or f"{self.device}.{self.solution}.{operation}"

    def declared(self, operation: str) -> tuple[str, ...]:
        return (self.full_name(operation),) if self.declares is None else self.declares


class OperationBuilder:
    """Writes operations into a package of its own and points the catalogue at them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.package = f"throwaway_ops_{next(_counter)}"
        self._folder = root / self.package
        self._folder.mkdir()
        (self._folder / "__init__.py").write_text("")
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(str(root))
        monkeypatch.setattr(catalog, "_BUILTINS", ())

    def module(self, operation: str, solution: str = "") -> str:
        """Return the import path of an operation or of one of its solutions."""
        return ".".join(filter(None, (self.package, operation, solution)))

    def add(self, operation: str, *backends: Backend) -> str:
        """Write an operation and list it in the catalogue; return its module path."""
        folder = self._folder / operation
        folder.mkdir()
        declared = "".join(
            f"""
                BackendModule(
                    module={self.module(operation, b.solution)!r},
                    device={b.device!r},
                    requires={b.requires!r},
                    implementations={b.declared(operation)!r},
                    hint={b.hint!r},
                ),"""
            for b in backends
        )
        source = f"""
            from xllm_kernel.catalog import BackendModule, Operation
            from xllm_kernel.registry import OpContract

            CONTRACT = OpContract({operation!r})
            OPERATION = Operation(CONTRACT, ({declared}
            ))
            """
        (folder / "__init__.py").write_text(textwrap.dedent(source))
        for backend in backends:
            self.write(operation, backend)
        path = self.module(operation)
        self._monkeypatch.setattr(catalog, "_BUILTINS", (*catalog._BUILTINS, path))
        importlib.invalidate_caches()
        return path

    def write(self, operation: str, backend: Backend) -> None:
        """Write, or overwrite, a solution's module."""
        registration = f"""
            @register_kernel(
                name={backend.full_name(operation)!r},
                contract={backend.contract},
                device={backend.device!r},
                execution_modes={backend.modes!r},
                input_domain="anything",
                solution={backend.solution!r},
                priority={backend.priority},
            )
            def run(value):
                return ({backend.full_name(operation)!r}, value)
            """
        lines = [
            "from xllm_kernel import register_kernel",
            f"from {self.module(operation)} import CONTRACT",
            textwrap.dedent(backend.prologue),
            textwrap.dedent(registration) if backend.registers else "",
        ]
        path = self._folder / operation / f"{backend.solution}.py"
        path.write_text("\n".join(lines))
        cache = path.parent / "__pycache__"
        for stale in cache.glob(f"{backend.solution}.*"):  # same size and second: not noticed
            stale.unlink()
        importlib.invalidate_caches()

    def forget(self) -> None:
        """Drop the written modules from the process."""
        for name in list(sys.modules):
            if name == self.package or name.startswith(self.package + "."):
                del sys.modules[name]
