"""The two-faced callable: a C builtin for plain eager tensors around an operator for all else.

The builtins read the framework's own structures, so they are built for one exact version of it and
of Python, and are optional; so is what refuses derivatives beside them. Knows no operator.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from xllm_kernel import artifacts
from xllm_kernel.after_import import after_import

MARKER = "xllm_kernel._build.fastcall"
NATIVE = "xllm_kernel._build.fastcall_native"

# Library digest and operator to its builtin. The framework's tracer knows a builtin by its address,
# so one that was made must live as long as the process.
_bound: dict[tuple[str, str], Callable[..., Any]] = {}


def bind(overload: Any) -> Callable[..., Any]:
    """Return the builtin of an operator, or the operator itself where no builtins were built.

    The builtin calls the kernel directly when it gets plain tensors on a thread without modes, and
    the operator with the same arguments otherwise. The framework's tracers see the operator alone.

    Args:
        overload: a Torch operator that one of the builtins belongs to.

    Raises:
        ArtifactError: where builtins were built, but not from these sources, or for another
            framework or Python.
    """
    built = _built()
    if built is None:
        return overload  # type: ignore[no-any-return]
    native, digest = built
    name: str = overload.name().partition("::")[2]
    key = (digest, name)
    if key not in _bound:
        builtin = native.bind(name, overload)
        _let_tracers_see(overload, builtin)
        _bound[key] = builtin
    return _bound[key]


def refuse_derivatives(name: str, who: str) -> bool:
    """Make an operator refuse calls that want a derivative; ``derivatives`` has the words.

    Args:
        name: the operator's, inside the package's namespace.
        who: operation and implementation, for messages.

    Returns:
        False, having done nothing, where no builtins were built.

    Raises:
        ArtifactError: as ``bind``.
    """
    built = _built()
    if built is None:
        return False
    built[0].refuse_derivatives(name, who)
    return True


def _built() -> tuple[Any, str] | None:
    """Load what was built and return it with its digest; None where nothing was."""
    try:
        spec = importlib.util.find_spec(MARKER)
    except ModuleNotFoundError:  # no native part at all was built, so there is no folder of them
        return None
    if spec is None or spec.origin is None:
        return None
    manifest = _read(spec).MANIFEST
    return _load(manifest, Path(spec.origin).parent), manifest["library_sha256"]


def _read(spec: importlib.machinery.ModuleSpec) -> Any:
    """Run the marker module without keeping it: after a repair a retry must see the new one."""
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load(manifest: dict[str, Any], directory: Path) -> ModuleType:
    import torch

    modules: list[ModuleType] = []

    def load_library(path: str) -> None:
        loader = importlib.machinery.ExtensionFileLoader(NATIVE, path)
        spec = importlib.util.spec_from_file_location(NATIVE, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        modules.append(module)

    artifacts.load(
        manifest,
        directory,
        torch_version=torch.__version__,
        load_library=load_library,
        kind="fastcall",
    )
    return modules[0]


def _let_tracers_see(overload: Any, builtin: Callable[..., Any]) -> None:
    """Tell the framework's compiler to trace the operator where it meets the builtin.

    Importing the compiler takes longer than all else that a process of eager calls does, so it is
    told when somebody else imports it.
    """

    def traced(*args: Any, **kwargs: Any) -> Any:
        return overload(*args, **kwargs)

    def tell() -> None:
        import torch._dynamo

        torch._dynamo.substitute_in_graph(builtin, skip_signature_check=True)(traced)

    after_import("torch._dynamo", tell)
