"""The build of the bridge to xlite's launchers: what it refuses, each by name, before it compiles.

Over packages that are folders of nothing: a build against the real ones is for a machine that has
them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from build_world import Done, copy_sources, need_tools_to_build, run_setup

from xllm_kernel import launchers

XLITE = {"XLLM_KERNEL_BUILD_XLITE": "1"}
BOTH = ", ".join(f"xlite's {name}" for name in launchers.LIBRARIES)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_tools_to_build()
    return copy_sources(tmp_path_factory.mktemp("xlite") / "xllm-kernel")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Packages that come before installed ones; importing one would fail."""
    for name in ("torch_npu", "xlite"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('no device here')\n")
    metadata = tmp_path / "torch_npu-2.13.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_npu\nVersion: 2.13.0\n")
    folder = tmp_path / "xlite" / "lib"
    folder.mkdir()
    for name in launchers.LIBRARIES:
        (folder / name).write_bytes(b"no library")
    _set_revision(tmp_path, f"g{launchers.REVISION[:9]}")
    return tmp_path


def _set_revision(site: Path, revision: str) -> None:
    text = f"__commit_id__ = commit_id = {revision!r}\n"
    (site / "xlite" / "_version.py").write_text(text)


def _build(tree: Path, site: Path | None, **env: str) -> Done:
    path = {} if site is None else {"PYTHONPATH": str(site)}
    return run_setup(tree, "build_ext", "--inplace", env=XLITE | path | env)


def _refusal(done: Done) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("xllm-kernel setup: XLLM_KERNEL_"), done.stderr
    return line


def _hide(*packages: str) -> str:
    """Return code that runs setup.py where these packages are not installed."""
    return (
        "import importlib.util, runpy, sys; find = importlib.util.find_spec; "
        f"hidden = {packages!r}; "
        "importlib.util.find_spec = lambda n, *a: None if n in hidden else find(n, *a); "
        "sys.argv = ['setup.py', 'build_ext', '--inplace']; "
        "runpy.run_path('setup.py', run_name='__main__')"
    )


def test_without_torch_refused_by_name(tree: Path, site: Path) -> None:
    done = run_setup(tree, env=XLITE | {"PYTHONPATH": str(site)}, code=_hide("torch"))
    assert "XLLM_KERNEL_BUILD_XLITE=1 needs torch in the environment" in _refusal(done)


def test_without_torch_npu_refused_by_name(tree: Path, site: Path) -> None:
    done = run_setup(tree, env=XLITE | {"PYTHONPATH": str(site)}, code=_hide("torch_npu"))
    said = _refusal(done)
    assert ": torch_npu; install" in said


def test_without_xlite_refused_by_the_names_of_its_libraries(tree: Path, site: Path) -> None:
    done = run_setup(tree, env=XLITE | {"PYTHONPATH": str(site)}, code=_hide("xlite"))
    assert f": {BOTH}; install" in _refusal(done)


def test_with_neither_each_is_named(tree: Path, site: Path) -> None:
    done = run_setup(tree, env=XLITE | {"PYTHONPATH": str(site)}, code=_hide("xlite", "torch_npu"))
    assert f": torch_npu, {BOTH}; install" in _refusal(done)


@pytest.mark.parametrize("name", launchers.LIBRARIES)
def test_without_a_library_refused_by_its_name(tree: Path, site: Path, name: str) -> None:
    (site / "xlite" / "lib" / name).unlink()
    assert f": xlite's {name}; install" in _refusal(_build(tree, site))


@pytest.mark.parametrize("revision", ["g0be1982aa", launchers.REVISION[:6], None])
def test_another_revision_refused_with_both(tree: Path, site: Path, revision: str | None) -> None:
    if revision is None:
        (site / "xlite" / "_version.py").unlink()
    else:
        _set_revision(site, revision)
    for value in ({}, {launchers.ALLOW: "0"}):
        said = _refusal(_build(tree, site, **value))
        assert f"needs launchers of GVirt revision {launchers.REVISION}" in said
        assert f"found {revision or launchers.UNKNOWN} in " in said
        assert f"set {launchers.ALLOW}=1, which every report will say" in said


@pytest.mark.parametrize("value", ["", "yes", "2"])
def test_the_allowance_is_0_or_1(tree: Path, site: Path, value: str) -> None:
    said = _refusal(_build(tree, site, **{launchers.ALLOW: value}))
    assert f"{launchers.ALLOW} must be 0 or 1, got {value!r}" in said


def test_another_revision_allowed_is_announced_and_goes_on(tree: Path, site: Path) -> None:
    """On to CMake, which finds no headers of torch_npu and says so."""
    _set_revision(site, "g0be1982aa")
    done = _build(tree, site, **{launchers.ALLOW: "1"})
    assert done.returncode == 1
    assert f"of GVirt revision g0be1982aa, not {launchers.REVISION}: allowed" in done.stdout
    said = " ".join(done.stderr.split())
    assert "XLLM_KERNEL_BUILD_XLITE needs XLLM_KERNEL_TORCH_DIR and" in said
    assert "include/torch_npu/csrc/core/npu/NPUStream.h" in said
