"""Copies of the sources that a test may build, what builds make, and runs outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import PACKAGE_ROOT

import xllm_kernel

Done = subprocess.CompletedProcess[str]
LIBRARY = "libxllm_kernel_torch.so"
CEILINGS = "libxllm_kernel_ceilings.so"
BUILT = {LIBRARY, CEILINGS, "simd.py"}
SIMD = {"XLLM_KERNEL_BUILD_SIMD": "1"}
FASTCALL = {**SIMD, "XLLM_KERNEL_BUILD_FASTCALL": "1"}
_LEFT_BEHIND = shutil.ignore_patterns(
    "build", "dist", "_build", "*.egg-info", "__pycache__", "test"
)

# A worker's first call, and what it prints where the C++ kernels serve.
CALL = (
    "import torch, xllm_kernel; plan = xllm_kernel.initialize(device='cpu')['rms_norm']; "
    "y = plan.function(torch.ones(2, 3), torch.full((3,), 2.0), 0.0); "
    "print(plan.spec.name, y.tolist()[1])"
)
CALLED = "cpu.simd.rms_norm [2.0, 2.0, 2.0]\n"


def need_tools_to_build() -> None:
    """Skip where the native part cannot be built, naming what is missing."""
    pytest.importorskip("torch")
    for command in ("cmake", os.environ.get("CXX", "c++").split()[0]):
        if shutil.which(command) is None:
            pytest.skip(f"needs the command '{command}' to build C++")


def need_to_compile() -> None:
    """Skip where the native part cannot be built, or the sources are not what is imported.

    A compiled copy of the sources is the same whatever else is installed, and a minute's work: the
    tests of an installed package leave it to those of the sources.
    """
    need_tools_to_build()
    if not Path(xllm_kernel.__file__).is_relative_to(PACKAGE_ROOT):
        pytest.skip("compiles the sources, which are not the package that is imported here")


def copy_sources(to: Path) -> Path:
    """Copy the package as a clone has it, so that no test builds in the tree it runs from."""
    shutil.copytree(PACKAGE_ROOT, to, ignore=_LEFT_BEHIND)
    (to / "test").mkdir()
    (to / "test" / "test_something.py").write_text("")
    return to


def run_setup(
    root: Path,
    *arguments: str,
    env: dict[str, str] | None = None,
    code: str = "",
    under: tuple[str, ...] = (),
) -> Done:
    """Run setup.py, or code in its place, without options from outside; under an emulator."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XLLM_KERNEL_")}
    command = [*under, sys.executable, *(("-c", code) if code else ("setup.py",)), *arguments]
    return subprocess.run(
        command,
        cwd=root,
        env=environment | {"MAX_JOBS": "2"} | (env or {}),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def build_wheel(root: Path, to: Path, env: dict[str, str] | None = None) -> Path:
    """Build a wheel of a copy of the sources."""
    done = run_setup(root, "-q", "bdist_wheel", "-d", str(to), env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = to.glob("*.whl")
    return wheel


def files_of(wheel: Path) -> set[str]:
    """Return the names of a wheel's files, its metadata aside."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def unpack(wheel: Path, to: Path) -> Path:
    """Unpack a wheel into a folder, as an installation does."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(to)
    return to


def package_files() -> set[str]:
    """Return what a pure wheel must hold: every module, the typing marker, and its data files."""
    root = PACKAGE_ROOT / "python"
    modules = {
        p.relative_to(root).as_posix() for p in root.rglob("*.py") if "_build" not in p.parts
    }
    page = {f"xllm_kernel/benchmark/report/page.{kind}" for kind in ("css", "js")}
    recorded = {"xllm_kernel/numerics/activations.safetensors"}
    return modules | {"xllm_kernel/py.typed"} | recorded | page


def run_outside(
    place: Path,
    site: Path,
    code: str,
    *,
    env: dict[str, str] | None = None,
    under: tuple[str, ...] = (),
) -> Done:
    """Run code in a folder where what is unpacked in another is found, not the sources."""
    # First in the path: an editable installation of the sources comes after it.
    first = f"import sys; sys.path.insert(0, {str(site)!r}); {code}"
    return run_setup(place, env=env, code=first, under=under)
