"""Calls something once a module has been imported, now or later, without importing it.

For modules that take seconds to import and that most processes never use.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType

_lock = threading.Lock()
_waiting: dict[str, list[Callable[[], None]]] = {}


def after_import(name: str, action: Callable[[], None]) -> None:
    """Call an action as soon as a module is complete: at once where it is already.

    An action that raises makes the import fail with what it raised.

    Args:
        name: the module's full name.
        action: imports the module itself. Where another thread is importing it that began before
            anybody waited, so that no loader of ours sees the end, the action is called at once and
            waits there.
    """
    with _lock:
        module = sys.modules.get(name)
        if module is None or (name in _waiting and _is_being_imported(module)):
            if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
                sys.meta_path.insert(0, _Finder())
            _waiting.setdefault(name, []).append(action)
            return
        # Others may have put it there without our finder.
        actions = [*_waiting.pop(name, []), action]
    for one in actions:
        one()


def _is_being_imported(module: ModuleType) -> bool:
    # What the import system itself looks at, to wait for another thread's import.
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what is waited for as everybody else does, with a loader that calls the actions."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec of a module that is waited for; None for all others."""
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            # As the import system does, pass over finders of before Python 3.4.
            if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Another loader, after which actions are called."""

    def __init__(self, own: importlib.abc.Loader) -> None:
        self._own = own

    def __getattr__(self, name: str) -> object:
        """Answer as the module's own loader: for resources, sources and the like."""
        return getattr(self._own, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Make what the module's own loader makes."""
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then every action, in the order in which they were asked for."""
        module.__loader__ = self._own
        assert module.__spec__ is not None
        module.__spec__.loader = self._own
        self._own.exec_module(module)
        with _lock:
            actions = _waiting.pop(module.__name__, [])
        for action in actions:
            action()
