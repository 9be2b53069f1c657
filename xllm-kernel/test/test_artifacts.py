"""Artefacts against their manifests: every way a build can be wrong, named before it is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xllm_kernel import artifacts
from xllm_kernel.artifacts import companion, file_sha256, load, source_hash, source_root, verify
from xllm_kernel.errors import ArtifactError

Manifest = dict[str, Any]
LIBRARY = "libsomething.so"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree as far as artefacts care, with an artefact in it."""
    root = tmp_path / "xllm-kernel"
    for name in ("cmake/a.cmake", "csrc/simd/b.cpp", "csrc/torch/c.cpp", "include/x/d.h"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"// {name}\n")
    (root / "CMakeLists.txt").write_text("project(x)\n")
    build = root / "python" / "xllm_kernel" / "_build"
    build.mkdir(parents=True)
    (build / LIBRARY).write_bytes(b"\x7fELF and so on" * 100)
    return root


@pytest.fixture
def build(tree: Path) -> Path:
    return tree / "python" / "xllm_kernel" / "_build"


@pytest.fixture
def manifest(tree: Path, build: Path) -> Manifest:
    return {
        "schema_version": artifacts.SCHEMA_VERSION,
        "library": LIBRARY,
        "library_sha256": file_sha256(build / LIBRARY),
        "source_hash": source_hash(tree),
        "torch_floor": "2.11",
        "torch_built_with": "2.13.0+cpu",
        "compiler": "GNU 12.2.0",
        "levels": ("avx2", "scalar"),
    }


def _verify(manifest: Manifest, build: Path, torch_version: str = "2.13.0+cpu") -> Path:
    sources = source_root(build.parent)
    return verify(manifest, build, torch_version=torch_version, sources=sources)


def test_verify_what_was_built_its_library(manifest: Manifest, build: Path) -> None:
    assert _verify(manifest, build) == build / LIBRARY


def test_verify_library_missing_named(manifest: Manifest, build: Path) -> None:
    (build / LIBRARY).unlink()
    with pytest.raises(ArtifactError, match=rf"{LIBRARY}\]: .*no such file; build it again"):
        _verify(manifest, build)


def _flip_a_byte(content: bytes) -> bytes:
    return content[:50] + bytes([content[50] ^ 1]) + content[51:]


@pytest.mark.parametrize(
    "damage",
    [_flip_a_byte, lambda c: c[:-1], lambda c: c + b"\0", lambda c: b""],
    ids=["one bit", "truncated", "longer", "empty"],
)
def test_verify_library_changed_named_with_both_digests(
    manifest: Manifest, build: Path, damage: Callable[[bytes], bytes]
) -> None:
    library = build / LIBRARY
    library.write_bytes(damage(library.read_bytes()))
    with pytest.raises(ArtifactError) as caught:
        _verify(manifest, build)
    message = str(caught.value)
    assert manifest["library_sha256"][:12] in message
    assert file_sha256(library)[:12] in message
    assert "build it again" in message


@pytest.mark.parametrize("version", [None, 0, artifacts.SCHEMA_VERSION + 1, "1"])
def test_verify_manifest_of_another_schema_named(
    manifest: Manifest, build: Path, version: object
) -> None:
    manifest["schema_version"] = version
    with pytest.raises(ArtifactError, match=rf"must have schema_version 1, found {version!r}"):
        _verify(manifest, build)


@pytest.mark.parametrize(
    "key",
    ["library", "library_sha256", "source_hash", "torch_floor", "torch_built_with", "compiler"],
)
@pytest.mark.parametrize("value", [None, "", 7])
def test_verify_manifest_incomplete_key_named(
    manifest: Manifest, build: Path, key: str, value: object
) -> None:
    manifest[key] = value
    with pytest.raises(ArtifactError, match=rf"must hold {key} \(str\), found {value!r}"):
        _verify(manifest, build)


def test_verify_manifest_without_levels_named(manifest: Manifest, build: Path) -> None:
    manifest["levels"] = ()
    with pytest.raises(ArtifactError, match=r"must hold levels \(tuple\), found \(\)"):
        _verify(manifest, build)


@pytest.mark.parametrize("name", ["../elsewhere.so", "/elsewhere.so", "sub/elsewhere.so"])
def test_verify_library_outside_its_folder_refused(
    manifest: Manifest, build: Path, name: str
) -> None:
    (build.parent / "elsewhere.so").write_bytes((build / LIBRARY).read_bytes())
    manifest["library"] = name
    with pytest.raises(ArtifactError, match="no such file"):
        _verify(manifest, build)


@pytest.mark.parametrize("version", ["2.10.0", "2.10.1+cpu", "2.9", "1.13.1", "2.10.0a0+git1"])
def test_verify_torch_below_the_floor_named(manifest: Manifest, build: Path, version: str) -> None:
    wanted = rf"needs torch >= 2\.11 \(built with 2\.13\.0\+cpu\), found {re.escape(version)}"
    with pytest.raises(ArtifactError, match=wanted):
        _verify(manifest, build, version)


@pytest.mark.parametrize("version", ["2.11", "2.11.0", "2.13.0+cpu", "2.100.0", "3.0.0a0+git1"])
def test_verify_torch_from_the_floor_on_fine(manifest: Manifest, build: Path, version: str) -> None:
    _verify(manifest, build, version)


@pytest.fixture
def exact(manifest: Manifest, tree: Path) -> Manifest:
    """The manifest of builtins, which fit one framework and one interpreter."""
    (tree / "csrc" / "fastcall").mkdir()
    (tree / "csrc" / "fastcall" / "e.cpp").write_text("// e\n")
    return manifest | {
        "source_hash": source_hash(tree, "fastcall"),
        "python_abi": artifacts.python_abi(),
    }


def _verify_exact(manifest: Manifest, build: Path, torch_version: str = "2.13.0+cpu") -> Path:
    sources = source_root(build.parent)
    return verify(manifest, build, torch_version=torch_version, sources=sources, kind="fastcall")


def test_verify_builtins_of_this_torch_and_python_fine(exact: Manifest, build: Path) -> None:
    assert _verify_exact(exact, build) == build / LIBRARY


@pytest.mark.parametrize("version", ["2.13.1+cpu", "2.13.0", "2.13.0+cu130", "2.12.0+cpu", "2.9"])
def test_verify_builtins_of_another_torch_named(exact: Manifest, build: Path, version: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        _verify_exact(exact, build, version)
    message = str(caught.value)
    assert f"needs the torch it was built with, 2.13.0+cpu, found {version};" in message
    assert artifacts.FASTCALL_BUILD_COMMAND in message
    assert f"remove {build / 'fastcall.py'}" in message


def test_verify_builtins_of_another_python_named(exact: Manifest, build: Path) -> None:
    exact["python_abi"] = "cpython-399-x86_64-linux-gnu"
    with pytest.raises(ArtifactError, match="needs the Python ABI it was built with, cpython-399"):
        _verify_exact(exact, build)


@pytest.mark.parametrize("value", [None, "", 7])
def test_verify_builtins_manifest_without_its_python_named(
    exact: Manifest, build: Path, value: object
) -> None:
    exact["python_abi"] = value
    with pytest.raises(ArtifactError, match=rf"must hold python_abi \(str\), found {value!r}"):
        _verify_exact(exact, build)


def test_source_hash_of_builtins_counts_their_own_sources(exact: Manifest, tree: Path) -> None:
    before = source_hash(tree), source_hash(tree, "fastcall")
    (tree / "csrc" / "fastcall" / "e.cpp").write_text("// other\n")
    assert source_hash(tree) == before[0]
    assert source_hash(tree, "fastcall") != before[1]
    (tree / "csrc" / "torch" / "c.cpp").write_text("// other\n")
    assert source_hash(tree) != before[0]


PROBE = "libprobe.so"


@pytest.fixture
def accompanied(manifest: Manifest, build: Path) -> Manifest:
    """The manifest of a build that made another library too."""
    (build / PROBE).write_bytes(b"\x7fELF, another one")
    return manifest | {"companions": {PROBE: file_sha256(build / PROBE)}}


def test_companion_what_was_built_its_path(accompanied: Manifest, build: Path) -> None:
    assert companion(accompanied, build, PROBE) == build / PROBE


def test_companion_of_an_older_build_named(manifest: Manifest, build: Path) -> None:
    with pytest.raises(ArtifactError, match=r"must name this library, found none; build it again"):
        companion(manifest, build, PROBE)


def test_companion_missing_or_changed_named(accompanied: Manifest, build: Path) -> None:
    (build / PROBE).write_bytes(b"\x7fELF, another 1")
    with pytest.raises(ArtifactError, match="truncated, changed or replaced; build it again"):
        companion(accompanied, build, PROBE)
    (build / PROBE).unlink()
    with pytest.raises(ArtifactError, match="no such file; build it again"):
        companion(accompanied, build, PROBE)


def test_companion_sources_edited_named(accompanied: Manifest, tree: Path, build: Path) -> None:
    (tree / "bench" / "ceilings").mkdir(parents=True)
    (tree / "bench" / "ceilings" / "p.cpp").write_text("// p\n")
    with pytest.raises(ArtifactError, match="must be built from the sources beside it"):
        companion(accompanied, build, PROBE)


def test_verify_sources_edited_named(manifest: Manifest, tree: Path, build: Path) -> None:
    with (tree / "include" / "x" / "d.h").open("a") as header:
        header.write("// one more line\n")
    with pytest.raises(ArtifactError) as caught:
        _verify(manifest, build)
    message = str(caught.value)
    assert manifest["source_hash"][:12] in message
    assert source_hash(tree)[:12] in message


def test_verify_installed_without_sources_not_compared(
    manifest: Manifest, tree: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    (tree / "python").rename(site)
    build = site / "xllm_kernel" / "_build"
    manifest["source_hash"] = "0" * 64
    assert source_root(build.parent) is None
    assert _verify(manifest, build) == build / LIBRARY


def test_source_hash_touched_only_same(tree: Path) -> None:
    before = source_hash(tree)
    for path in tree.rglob("*"):
        os.utime(path, (1, 1))
    assert source_hash(tree) == before


@pytest.mark.parametrize("folder", ["cmake", "csrc/simd", "csrc/torch", "include"])
def test_source_hash_file_added_renamed_or_edited_other(tree: Path, folder: str) -> None:
    seen = {source_hash(tree)}
    added = tree / folder / "added.h"
    for change in (
        lambda: added.write_text("1"),
        lambda: added.write_text("2"),
        lambda: added.rename(added.with_name("renamed.h")),
    ):
        change()
        seen.add(source_hash(tree))
    assert len(seen) == 4


def test_source_hash_boundaries_between_files_count(tree: Path) -> None:
    (tree / "include" / "e").write_text("ab")
    one = source_hash(tree)
    (tree / "include" / "e").write_text("a")
    (tree / "include" / "f").write_text("b")
    assert source_hash(tree) != one


def test_source_hash_what_no_build_reads_same(tree: Path) -> None:
    before = source_hash(tree)
    for name in ("test/cpp/t.cpp", "csrc/xlite/bridge.cpp", "csrc/simd/.b.cpp.swp", "README.md"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("anything")
    assert source_hash(tree) == before


class Loader:
    """Stands in for the framework's loader; remembers what it was given."""

    def __init__(self, error: OSError | None = None) -> None:
        self.error = error
        self.paths: list[str] = []

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        if self.error is not None:
            raise self.error


def _load(manifest: Manifest, build: Path, loader: Loader) -> None:
    load(manifest, build, torch_version="2.13.0", load_library=loader)


def test_load_verified_library_given_to_the_loader(manifest: Manifest, build: Path) -> None:
    loader = Loader()
    _load(manifest, build, loader)
    _load(manifest, build, loader)
    assert set(loader.paths) == {str(build / LIBRARY)}


def test_load_damaged_library_never_reaches_the_loader(manifest: Manifest, build: Path) -> None:
    (build / LIBRARY).write_bytes(b"short")
    loader = Loader()
    with pytest.raises(ArtifactError):
        _load(manifest, build, loader)
    assert loader.paths == []


def test_load_refused_by_the_loader_named_and_may_be_tried_again(
    manifest: Manifest, build: Path
) -> None:
    with pytest.raises(ArtifactError, match=r"GNU 12\.2\.0 and torch 2\.13.*undefined symbol: _Z"):
        _load(manifest, build, Loader(OSError("undefined symbol: _Z")))
    (build / LIBRARY).write_bytes(b"another build")
    manifest["library_sha256"] = file_sha256(build / LIBRARY)
    _load(manifest, build, Loader())


def test_load_refused_import_named(exact: Manifest, build: Path) -> None:
    def refuse(path: str) -> None:
        raise ImportError("undefined symbol: _Z")

    with pytest.raises(ArtifactError, match=r"undefined symbol: _Z; .*BUILD_FASTCALL=1"):
        load(exact, build, torch_version="2.13.0+cpu", load_library=refuse, kind="fastcall")


def test_load_another_build_in_one_process_needs_a_new_worker(
    manifest: Manifest, build: Path
) -> None:
    _load(manifest, build, Loader())
    (build / LIBRARY).write_bytes(b"another build")
    manifest["library_sha256"] = file_sha256(build / LIBRARY)
    loader = Loader()
    with pytest.raises(ArtifactError, match="built again meanwhile; start a new worker"):
        _load(manifest, build, loader)
    assert loader.paths == []
