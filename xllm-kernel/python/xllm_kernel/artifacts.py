"""Built artefacts: what a build records about itself, and what is checked before it is loaded.

The build (setup.py) and the run time use the same functions. Needs no framework.
"""

from __future__ import annotations

import hashlib
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xllm_kernel import launchers
from xllm_kernel.errors import ArtifactError

SCHEMA_VERSION = 1

BUILD_COMMAND = "(cd xllm-kernel && XLLM_KERNEL_BUILD_SIMD=1 python setup.py build_ext --inplace)"
FASTCALL_BUILD_COMMAND = BUILD_COMMAND.replace(
    "XLLM_KERNEL_BUILD_SIMD=1", "XLLM_KERNEL_BUILD_SIMD=1 XLLM_KERNEL_BUILD_FASTCALL=1"
)
XLITE_BUILD_COMMAND = BUILD_COMMAND.replace("SIMD", "XLITE")

# Everything that the bridge's build reads, relative to the package's root folder.
SOURCES = (
    "CMakeLists.txt",
    "bench/ceilings",
    "cmake",
    "csrc/simd",
    "csrc/torch",
    "include",
    "python/xllm_kernel/version.py",
)

# What every manifest of this schema holds beyond its version.
_COMMON: dict[str, type[Any]] = {
    "library": str,
    "library_sha256": str,
    "source_hash": str,
    "torch_built_with": str,
    "compiler": str,
}
_KERNELS: dict[str, type[Any]] = {**_COMMON, "torch_floor": str, "levels": tuple}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What distinguishes the artefacts of one marker module.

    Attributes:
        marker: the module's name.
        sources: what its build reads.
        fields: what its manifest holds.
        command: how to build it again.
        without: what a worker does without, where it is removed.
    """

    marker: str
    sources: tuple[str, ...]
    fields: Mapping[str, type[Any]]
    command: str
    without: str


_EVERY_KIND = (
    _Kind("simd", SOURCES, _KERNELS, BUILD_COMMAND, "the C++ kernels"),
    _Kind(
        "fastcall",
        (*SOURCES, "csrc/fastcall"),
        {**_KERNELS, "python_abi": str},
        FASTCALL_BUILD_COMMAND,
        "its builtins",
    ),
    _Kind(
        "xlite",
        (
            "CMakeLists.txt",
            "cmake",
            "csrc/torch/refusal.cpp",
            "csrc/torch/refusal.h",
            "csrc/xlite",
            "python/xllm_kernel/version.py",
        ),
        {
            **_COMMON,
            "torch_npu_built_with": str,
            "revision_required": str,
            "revision_found": str,
            "revision_allowed": bool,
            "launchers": dict,
        },
        XLITE_BUILD_COMMAND,
        "xlite",
    ),
)
_KINDS = {kind.marker: kind for kind in _EVERY_KIND}


@dataclass(frozen=True, slots=True)
class Beside:
    """What an artefact finds beside PyTorch of what it was built against.

    Attributes:
        torch_npu: version.
        launchers: folder of the launcher libraries; None where xlite is not installed.
    """

    torch_npu: str
    launchers: Path | None

    @classmethod
    def here(cls) -> Beside:
        """Look at this environment, as the build did at its own."""
        import importlib.metadata  # which brings half of the standard library along

        return cls(importlib.metadata.version("torch_npu"), launchers.folder())


# Library path to digest of those this process has loaded: one cannot be unloaded.
_loaded: dict[str, str] = {}


def file_sha256(path: Path) -> str:
    """Return the hexadecimal digest of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def python_abi() -> str:
    """Return the tag of the running interpreter's binary interface, e.g. ``cpython-311-...``."""
    return str(sysconfig.get_config_var("SOABI"))


def source_hash(root: Path, kind: str = "simd") -> str:
    """Hash what a native build reads: names and contents, not times.

    Args:
        root: the package's root folder, which holds ``CMakeLists.txt``.
        kind: name of the artefact's marker module.

    Returns:
        A hexadecimal digest, the same on every machine.
    """
    digest = hashlib.sha256()
    for path in _source_files(root, _KINDS[kind].sources):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(b"\0")
        digest.update(file_sha256(path).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _source_files(root: Path, sources: tuple[str, ...]) -> Iterator[Path]:
    for name in sources:
        entry = root / name
        files = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
        for path in files:
            hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
            if path.is_file() and not hidden:
                yield path


def source_root(package: Path) -> Path | None:
    """Return the source tree that a package folder lies in, or None for an installed one."""
    root = package.parent.parent
    inside = package.parent.name == "python" and (root / "csrc").is_dir()
    return root if inside and (root / "CMakeLists.txt").is_file() else None


def verify(
    manifest: Mapping[str, Any],
    directory: Path,
    *,
    torch_version: str,
    sources: Path | None = None,
    kind: str = "simd",
    beside: Beside | None = None,
) -> Path:
    """Check an artefact against its manifest, before anything of it is loaded.

    Args:
        manifest: what the build recorded.
        directory: folder of the artefact.
        torch_version: version of the framework that will load it.
        sources: root of the source tree, where there is one.
        kind: name of its marker module: ``"simd"`` runs on every framework from a floor on,
            ``"fastcall"`` only on the very framework and interpreter it was built with, ``"xlite"``
            only on the very frameworks and beside the very launcher libraries.
        beside: of ``"xlite"``, what is to be found; None looks at this environment.

    Returns:
        Path of the library.

    Raises:
        ArtifactError: for an unknown or incomplete manifest; a library that is missing or not the
            one that was built; other sources than those it was built from; a framework, an
            interpreter or launcher libraries that it does not fit.
    """
    what = _KINDS[kind]
    _check_schema(f"xllm_kernel artefact [{directory / what.marker}.py]", manifest, what)
    library = directory / str(manifest["library"])
    who = f"xllm_kernel artefact [{library}]"
    _check_library(who, manifest, library, what.command)
    _check_sources(who, manifest, sources, what)
    if "torch_floor" not in what.fields or "python_abi" in what.fields:
        _check_same(who, "torch", manifest["torch_built_with"], torch_version, directory, what)
    if "python_abi" in what.fields:
        _check_same(who, "Python ABI", manifest["python_abi"], python_abi(), directory, what)
    if "torch_floor" in what.fields:
        _check_floor(who, manifest, torch_version, directory, what)
    if "launchers" in what.fields:
        beside = beside or Beside.here()
        npu = manifest["torch_npu_built_with"]
        _check_same(who, "torch_npu", npu, beside.torch_npu, directory, what)
        _check_revision(who, manifest, what)
        _check_launchers(who, manifest["launchers"], beside.launchers, what)
    return library


def companion(manifest: Mapping[str, Any], directory: Path, name: str) -> Path:
    """Check a library that the kernels' build made beside its own; it needs no framework.

    Args:
        manifest: what the build recorded.
        directory: folder of the artefacts.
        name: the library's file name.

    Returns:
        Path of the library.

    Raises:
        ArtifactError: for a manifest that does not name it; a library that is missing or not the
            one that was built; other sources than those it was built from.
    """
    library = directory / name
    who = f"xllm_kernel artefact [{library}]"
    built = manifest.get("companions", {})
    if name not in built:
        raise ArtifactError(
            f"{who}: the manifest must name this library, found {', '.join(built) or 'none'}; "
            f"build it again: {BUILD_COMMAND}"
        )
    recorded = {"library": name, "library_sha256": built[name]}
    _check_library(who, recorded, library, BUILD_COMMAND)
    _check_sources(who, manifest, source_root(directory.parent), _KINDS["simd"])
    return library


def _check_sources(
    who: str, manifest: Mapping[str, Any], sources: Path | None, what: _Kind
) -> None:
    if sources is None:
        return
    found = source_hash(sources, what.marker)
    if found != manifest["source_hash"]:
        raise ArtifactError(
            f"{who}: must be built from the sources beside it, but it was built from "
            f"{_short(manifest['source_hash'])} and {sources} holds {_short(found)}; build it "
            f"again: {what.command}"
        )


def _check_floor(
    who: str, manifest: Mapping[str, Any], torch_version: str, directory: Path, what: _Kind
) -> None:
    floor = manifest["torch_floor"]
    if not _release(floor):
        raise ArtifactError(
            f"{who}: its manifest's torch_floor must be a version, found {floor!r}; build it "
            f"again: {what.command}"
        )
    if _release(torch_version) < _release(floor):
        raise ArtifactError(
            f"{who}: needs torch >= {floor} (built with {manifest['torch_built_with']}), found "
            f"{torch_version}; install a newer torch, or remove {directory} to do without "
            f"{what.without}"
        )


def _check_revision(who: str, manifest: Mapping[str, Any], what: _Kind) -> None:
    required, found = manifest["revision_required"], manifest["revision_found"]
    if required != launchers.REVISION:
        raise ArtifactError(
            f"{who}: must be built for GVirt revision {launchers.REVISION}, its manifest says "
            f"{required}; build it again: {what.command}"
        )
    if not launchers.is_pinned(found) and not manifest["revision_allowed"]:
        raise ArtifactError(
            f"{who}: its launchers must be of GVirt revision {required}, its manifest says {found} "
            f"and that nobody allowed another one; build it again: {what.command}"
        )


def _check_launchers(who: str, built: Mapping[str, str], folder: Path | None, what: _Kind) -> None:
    if set(built) != set(launchers.LIBRARIES):
        raise ArtifactError(
            f"{who}: its manifest must name the launcher libraries "
            f"{', '.join(launchers.LIBRARIES)}, found {', '.join(built)}; build it again: "
            f"{what.command}"
        )
    missing = launchers.missing_libraries(folder)
    if folder is None or missing:
        raise ArtifactError(
            f"{who}: needs the launcher libraries {', '.join(missing)} in "
            f"{folder or 'an installed xlite'}, found none; install xlite again"
        )
    for name, digest in built.items():
        library = folder / name
        found = file_sha256(library)
        if found != digest:
            raise ArtifactError(
                f"{who}: needs the launcher library {library} it was built against, sha256 "
                f"{_short(digest)}, found {_short(found)}: xlite was changed or replaced, and its "
                f"launchers may take other arguments; install that xlite, or build it again: "
                f"{what.command}"
            )


def _check_same(
    who: str, name: str, built_with: str, found: str, directory: Path, what: _Kind
) -> None:
    if found != built_with:
        raise ArtifactError(
            f"{who}: needs the {name} it was built with, {built_with}, found {found}; build it "
            f"again: {what.command}, or remove {directory / what.marker}.py to do without "
            f"{what.without}"
        )


def _check_schema(who: str, manifest: Mapping[str, Any], what: _Kind) -> None:
    if not isinstance(manifest, Mapping):
        raise ArtifactError(
            f"{who}: its MANIFEST must be a mapping, found {type(manifest).__name__}; build it "
            f"again: {what.command}"
        )
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ArtifactError(
            f"{who}: its manifest must have schema_version {SCHEMA_VERSION}, found {version!r}, so "
            f"another release of the package wrote it; build it again: {what.command}"
        )
    for key, type_ in what.fields.items():
        value = manifest.get(key)
        if not isinstance(value, type_) or not (value or type_ is bool):
            raise ArtifactError(
                f"{who}: its manifest must hold {key} ({type_.__name__}), found {value!r}; build "
                f"it again: {what.command}"
            )


def _check_library(who: str, manifest: Mapping[str, Any], library: Path, command: str) -> None:
    if library.name != manifest["library"] or not library.is_file():
        raise ArtifactError(
            f"{who}: the manifest names this library, but there is no such file; build it again: "
            f"{command}"
        )
    found = file_sha256(library)
    if found != manifest["library_sha256"]:
        raise ArtifactError(
            f"{who}: must be the library that was built, sha256 "
            f"{_short(manifest['library_sha256'])}, found {_short(found)} "
            f"({library.stat().st_size} bytes): it was truncated, changed or replaced; build it "
            f"again: {command}"
        )


def load(
    manifest: Mapping[str, Any],
    directory: Path,
    *,
    torch_version: str,
    load_library: Callable[[str], object],
    kind: str = "simd",
    beside: Beside | None = None,
) -> None:
    """Verify an artefact and load its library; again is free.

    Args:
        manifest: what the build recorded.
        directory: folder of the artefact, inside the package.
        torch_version: version of the framework.
        load_library: loads a library by its path: the framework's function, or an import.
        kind: name of the artefact's marker module.
        beside: as ``verify``'s.

    Raises:
        ArtifactError: as ``verify``; for a library that the loader refuses; and where this process
            has loaded another build of it, since one cannot be unloaded.
    """
    sources = source_root(directory.parent)
    library = verify(
        manifest, directory, torch_version=torch_version, sources=sources, kind=kind, beside=beside
    )
    digest: str = manifest["library_sha256"]
    earlier = _loaded.get(str(library), digest)
    if earlier != digest:
        raise ArtifactError(
            f"xllm_kernel artefact [{library}]: this process has loaded sha256 {_short(earlier)}, "
            f"found {_short(digest)}: it was built again meanwhile; start a new worker"
        )
    try:
        load_library(str(library))
    except (OSError, ImportError) as error:
        raise ArtifactError(
            f"xllm_kernel artefact [{library}]: is what was built with {manifest['compiler']} and "
            f"torch {manifest['torch_built_with']}, but torch {torch_version} could not load it: "
            f"{error.__cause__ or error}; build it again: {_KINDS[kind].command}"
        ) from error
    _loaded[str(library)] = digest


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers: 2.13.0a0+cpu gives (2, 13, 0)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _short(digest: str) -> str:
    return digest[:12]
