"""The bridge to xlite's launchers against its manifest: each damage named before anything loads."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xllm_kernel import artifacts, launchers
from xllm_kernel.artifacts import Beside, file_sha256, source_hash, source_root, verify
from xllm_kernel.errors import ArtifactError

Manifest = dict[str, Any]
LIBRARY = "libsomething.so"
TORCH, TORCH_NPU = "2.13.0+cpu", "2.13.0"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree as far as this artefact cares, with the artefact in it."""
    root = tmp_path / "xllm-kernel"
    for name in ("cmake/a.cmake", "csrc/xlite/b.cpp", "csrc/torch/refusal.cpp", "csrc/simd/c.cpp"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"// {name}\n")
    for name in ("csrc/torch/refusal.h", "CMakeLists.txt", "python/xllm_kernel/version.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    build = root / "python" / "xllm_kernel" / "_build"
    build.mkdir(parents=True)
    (build / LIBRARY).write_bytes(b"\x7fELF and so on" * 100)
    return root


@pytest.fixture
def build(tree: Path) -> Path:
    return tree / "python" / "xllm_kernel" / "_build"


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    folder = tmp_path / "site-packages" / "xlite" / "lib"
    folder.mkdir(parents=True)
    for name in launchers.LIBRARIES:
        (folder / name).write_bytes(name.encode() * 50)
    return Beside(TORCH_NPU, folder)


@pytest.fixture
def manifest(tree: Path, build: Path, beside: Beside) -> Manifest:
    assert beside.launchers is not None
    return {
        "schema_version": artifacts.SCHEMA_VERSION,
        "library": LIBRARY,
        "library_sha256": file_sha256(build / LIBRARY),
        "source_hash": source_hash(tree, "xlite"),
        "torch_built_with": TORCH,
        "torch_npu_built_with": TORCH_NPU,
        "compiler": "GNU 12.2.0",
        "revision_required": launchers.REVISION,
        "revision_found": f"g{launchers.REVISION[:9]}",
        "revision_allowed": False,
        "launchers": {n: file_sha256(beside.launchers / n) for n in launchers.LIBRARIES},
    }


def _verify(manifest: Manifest, build: Path, beside: Beside, torch_version: str = TORCH) -> Path:
    sources = source_root(build.parent)
    return verify(
        manifest, build, torch_version=torch_version, sources=sources, kind="xlite", beside=beside
    )


def _refused(manifest: Manifest, build: Path, beside: Beside, torch_version: str = TORCH) -> str:
    with pytest.raises(ArtifactError) as caught:
        _verify(manifest, build, beside, torch_version)
    return str(caught.value)


def test_what_was_built_fine(manifest: Manifest, build: Path, beside: Beside) -> None:
    assert _verify(manifest, build, beside) == build / LIBRARY


@pytest.mark.parametrize("version", ["2.13.1+cpu", "2.13.0", "2.14.0+cpu", "2.9"])
def test_another_torch_named(manifest: Manifest, build: Path, beside: Beside, version: str) -> None:
    message = _refused(manifest, build, beside, version)
    assert f"needs the torch it was built with, {TORCH}, found {version};" in message
    assert artifacts.XLITE_BUILD_COMMAND in message
    assert f"remove {build / 'xlite.py'} to do without xlite" in message


@pytest.mark.parametrize("version", ["2.13.0.post1", "2.13.1", "2.12.0"])
def test_another_torch_npu_named(
    manifest: Manifest, build: Path, beside: Beside, version: str
) -> None:
    message = _refused(manifest, build, Beside(version, beside.launchers))
    assert f"needs the torch_npu it was built with, {TORCH_NPU}, found {version};" in message


@pytest.mark.parametrize("name", launchers.LIBRARIES)
@pytest.mark.parametrize(
    "damage",
    [lambda c: bytes([c[0] ^ 1]) + c[1:], lambda c: c[:-1], lambda c: b""],
    ids=["one bit", "truncated", "empty"],
)
def test_a_launcher_library_changed_named_with_both_digests(
    manifest: Manifest,
    build: Path,
    beside: Beside,
    name: str,
    damage: Callable[[bytes], bytes],
) -> None:
    assert beside.launchers is not None
    library = beside.launchers / name
    library.write_bytes(damage(library.read_bytes()))
    message = _refused(manifest, build, beside)
    assert str(library) in message
    assert manifest["launchers"][name][:12] in message
    assert file_sha256(library)[:12] in message


@pytest.mark.parametrize("name", launchers.LIBRARIES)
def test_a_launcher_library_missing_named(
    manifest: Manifest, build: Path, beside: Beside, name: str
) -> None:
    assert beside.launchers is not None
    (beside.launchers / name).unlink()
    message = _refused(manifest, build, beside)
    assert f"needs the launcher libraries {name} in {beside.launchers}, found none" in message


def test_xlite_not_installed_named(manifest: Manifest, build: Path) -> None:
    message = _refused(manifest, build, Beside(TORCH_NPU, None))
    for name in launchers.LIBRARIES:
        assert name in message
    assert "in an installed xlite, found none" in message


@pytest.mark.parametrize("names", [(), launchers.LIBRARIES[:1], (*launchers.LIBRARIES, "more.so")])
def test_a_manifest_of_other_launchers_named(
    manifest: Manifest, build: Path, beside: Beside, names: tuple[str, ...]
) -> None:
    manifest["launchers"] = dict.fromkeys(names, "0" * 64)
    message = _refused(manifest, build, beside)
    assert "must name the launcher libraries" in message or "must hold launchers" in message


def test_another_required_revision_named(manifest: Manifest, build: Path, beside: Beside) -> None:
    manifest["revision_required"] = "f" * 40
    message = _refused(manifest, build, beside)
    assert f"must be built for GVirt revision {launchers.REVISION}" in message


@pytest.mark.parametrize("found", ["g0be1982aa", launchers.UNKNOWN])
def test_another_revision_only_where_the_build_was_allowed_it(
    manifest: Manifest, build: Path, beside: Beside, found: str
) -> None:
    manifest |= {"revision_found": found, "revision_allowed": True}
    assert _verify(manifest, build, beside) == build / LIBRARY
    manifest["revision_allowed"] = False
    message = _refused(manifest, build, beside)
    assert f"its manifest says {found} and that nobody allowed another one" in message


@pytest.mark.parametrize(
    "key",
    ["torch_built_with", "torch_npu_built_with", "revision_required", "revision_found"],
)
@pytest.mark.parametrize("value", [None, "", 7])
def test_an_incomplete_manifest_key_named(
    manifest: Manifest, build: Path, beside: Beside, key: str, value: object
) -> None:
    manifest[key] = value
    assert f"must hold {key} (str), found {value!r}" in _refused(manifest, build, beside)


@pytest.mark.parametrize("value", [None, "", 1, "yes"])
def test_a_manifest_that_does_not_say_what_was_allowed_named(
    manifest: Manifest, build: Path, beside: Beside, value: object
) -> None:
    manifest["revision_allowed"] = value
    assert f"must hold revision_allowed (bool), found {value!r}" in _refused(
        manifest, build, beside
    )


def test_another_releases_manifest_named_by_its_file(
    manifest: Manifest, build: Path, beside: Beside
) -> None:
    manifest["schema_version"] = 999
    message = _refused(manifest, build, beside)
    assert message.startswith(f"xllm_kernel artefact [{build / 'xlite.py'}]: ")
    assert "must have schema_version 1, found 999" in message


def test_the_library_changed_named(manifest: Manifest, build: Path, beside: Beside) -> None:
    (build / LIBRARY).write_bytes(b"short")
    assert "truncated, changed or replaced" in _refused(manifest, build, beside)


@pytest.mark.parametrize("name", ["csrc/xlite/b.cpp", "csrc/torch/refusal.h", "cmake/a.cmake"])
def test_sources_edited_named(
    manifest: Manifest, tree: Path, build: Path, beside: Beside, name: str
) -> None:
    (tree / name).write_text("// other\n")
    assert "must be built from the sources beside it" in _refused(manifest, build, beside)


def test_sources_of_other_parts_do_not_count(
    manifest: Manifest, tree: Path, build: Path, beside: Beside
) -> None:
    (tree / "csrc/simd/c.cpp").write_text("// other\n")
    _verify(manifest, build, beside)


# ---------------------------------------------------------------- what is installed


@pytest.mark.parametrize(
    ("revision", "pinned"),
    [
        (launchers.REVISION, True),
        (launchers.REVISION[:7], True),
        (f"g{launchers.REVISION[:9]}", True),
        (launchers.REVISION[:6], False),
        ("g", False),
        ("", False),
        ("g0be1982aa", False),
        (launchers.UNKNOWN, False),
        (launchers.REVISION + "0", False),
    ],
)
def test_is_pinned(revision: str, pinned: bool) -> None:
    assert launchers.is_pinned(revision) is pinned


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that comes before every other; each raises when imported."""
    folder = tmp_path / "site"
    (folder / "xlite" / "lib").mkdir(parents=True)
    (folder / "xlite" / "__init__.py").write_text("raise ImportError('no device here')\n")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("__commit_id__ = commit_id = 'g0be1982aa'\n", "g0be1982aa"),
        ('commit_id: str | None\ncommit_id = "4a6dc3102"\n', "4a6dc3102"),
        ("__version__ = '1'\n", launchers.UNKNOWN),
        ("__commit_id__ = commit_id = None\n", launchers.UNKNOWN),
        (None, launchers.UNKNOWN),
    ],
)
def test_found_revision_read_without_an_import(site: Path, text: str | None, revision: str) -> None:
    if text is not None:
        (site / "xlite" / "_version.py").write_text(text)
    assert launchers.found_revision() == revision
    assert launchers.folder() == site / "xlite" / "lib"
    assert "xlite" not in sys.modules


def test_nothing_installed_nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert launchers.folder() is None
    assert launchers.found_revision() == launchers.UNKNOWN
    assert launchers.missing_libraries(None) == launchers.LIBRARIES


# ---------------------------------------------------------------- into the process

PRELOAD = """
import sys
from pathlib import Path
from xllm_kernel import launchers
from xllm_kernel.errors import ArtifactError
import ctypes
first, provider, wanted = map(Path, sys.argv[1:])
ctypes.CDLL(str(provider))
if first.name:
    ctypes.CDLL(str(first))
try:
    launchers.preload(provider, [wanted])
except ArtifactError as error:
    print(error)
else:
    print(ctypes.CDLL(str(wanted)).value())
"""


@pytest.fixture
def libraries(tmp_path: Path) -> Callable[[str, str], Path]:
    """Make a shared library out of C."""

    def make(name: str, code: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
        command.append(f"-Wl,-soname,{path.name}")
        try:
            subprocess.run(command, input=code, text=True, check=True)
        except FileNotFoundError:
            pytest.skip("needs the command 'cc' to build C")
        return path

    return make


def test_preload_lends_the_launchers_what_the_provider_brought(run_python, libraries) -> None:
    provider = libraries("libruntime.so", "int runtime(void) { return 41; }")
    wanted = libraries("liblauncher.so", "int runtime(void); int value(void) { return runtime(); }")
    with pytest.raises(OSError, match="runtime"):
        ctypes.CDLL(str(wanted), mode=2)  # RTLD_NOW: nobody else has it
    done = run_python("-c", PRELOAD, "", str(provider), str(wanted))
    assert done.stdout == "41\n", done.stderr


def test_preload_refuses_another_library_of_the_name(run_python, libraries) -> None:
    provider = libraries("libruntime.so", "int runtime(void) { return 41; }")
    first = libraries("first/liblauncher.so", "int value(void) { return 1; }")
    wanted = libraries("wanted/liblauncher.so", "int value(void) { return 2; }")
    done = run_python("-c", PRELOAD, str(first), str(provider), str(wanted))
    assert f"must have {wanted}, found {first} of the same name" in done.stdout, done.stderr
    done = run_python("-c", PRELOAD, str(wanted), str(provider), str(wanted))
    assert done.stdout == "2\n", done.stderr


def test_preload_names_a_library_that_does_not_load(run_python, libraries, tmp_path) -> None:
    provider = libraries("libruntime.so", "int runtime(void) { return 41; }")
    broken = tmp_path / "liblauncher.so"
    broken.write_bytes(b"no library")
    done = run_python("-c", PRELOAD, "", str(provider), str(broken))
    assert "its launcher libraries must load beside" in done.stdout, done.stderr
    assert "liblauncher.so" in done.stdout
