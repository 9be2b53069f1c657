"""The wheel of the C++ kernels: its tag, its files, its symbols, its instructions, its levels."""

from __future__ import annotations

import platform
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest
from build_world import (
    BUILT,
    CALL,
    CALLED,
    CEILINGS,
    LIBRARY,
    SIMD,
    build_wheel,
    copy_sources,
    files_of,
    need_to_compile,
    package_files,
    run_outside,
    unpack,
)
from conftest import PACKAGE_ROOT

BASELINE = PACKAGE_ROOT / "test" / "cpp" / "check_baseline.cmake"
LEVEL = "; print(torch.ops.xllm_kernel.simd_level.default())"
X86_64 = platform.machine() in ("x86_64", "AMD64")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_to_compile()
    return copy_sources(tmp_path_factory.mktemp("wheel") / "xllm-kernel")


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    return build_wheel(tree, tree.parent / "out", env=SIMD)


@pytest.fixture(scope="module")
def site(wheel: Path, tree: Path) -> Path:
    return unpack(wheel, tree.parent / "site")


@pytest.fixture(scope="module")
def library(site: Path) -> Path:
    return site / "xllm_kernel" / "_build" / LIBRARY


def _tool(*command: object) -> str:
    """Run a tool that comes with the compiler and return what it prints."""
    line = [str(part) for part in command]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def test_wheel_tagged_for_the_platform_and_any_python(wheel: Path) -> None:
    python, abi, tag = wheel.stem.split("-")[2:]
    assert (python, abi) == ("py3", "none")
    assert tag == f"linux_{platform.machine()}"


def test_wheel_holds_the_modules_the_libraries_their_marker_and_nothing_else(wheel: Path) -> None:
    assert files_of(wheel) == package_files() | {f"xllm_kernel/_build/{name}" for name in BUILT}


def test_wheel_works_outside_the_tree(site: Path, tmp_path: Path) -> None:
    done = run_outside(tmp_path, site, CALL + "; print(xllm_kernel.__file__)")
    assert done.stdout.startswith(CALLED + str(site)), done.stderr


# ---------------------------------------------------------------- the library's symbols


def test_library_uses_torch_by_its_stable_interface_alone(library: Path) -> None:
    """Torch's own C++ names change with its versions; its C functions do not."""
    undefined = _tool("nm", "--dynamic", "--undefined-only", "--demangle", library).splitlines()
    names = [line.split(maxsplit=1)[1] for line in undefined]
    foreign = re.compile(r"(?<![\w:])(torch|c10|at|caffe2)::|^_?Py[A-Z]")
    assert [name for name in names if foreign.search(name)] == []
    assert "aoti_torch_library_init_impl" in names  # else this looked at the wrong thing


def test_library_needs_torch_and_the_runtime_and_searches_no_folder(library: Path) -> None:
    dynamic = _tool("readelf", "--dynamic", "--wide", library)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    loader = [name for name in needed if name.startswith("ld-linux-")]
    runtime = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", *loader}
    assert set(needed) - runtime == {"libtorch_cpu.so"}
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic)


def test_library_keeps_the_kernels_to_itself(library: Path) -> None:
    """Two copies of the kernels in one process must not take each other's functions."""
    exported = _tool("nm", "--dynamic", "--defined-only", "--demangle", library)
    assert "xllm_kernel" not in exported
    assert "xllm_kernel::simd_level()" in _tool("nm", "--demangle", library)


def test_probe_exports_its_interface_alone_and_needs_no_torch(site: Path) -> None:
    probe = site / "xllm_kernel" / "_build" / CEILINGS
    exported = _tool("nm", "--dynamic", "--defined-only", probe).split()[2::3]
    names = ("copy", "copy_streaming", "dot", "error", "fma", "level", "read", "update", "waited")
    assert sorted(exported) == [f"xllm_ceiling_{name}" for name in names]
    dynamic = _tool("readelf", "--dynamic", "--wide", probe)
    assert "torch" not in dynamic
    assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic)
    assert probe.stat().st_size < 200_000


# ---------------------------------------------------------------- older processors


@pytest.mark.skipif(not X86_64, reason="needs an x86-64 machine")
def test_objects_outside_the_levels_files_run_on_the_baseline(wheel: Path, tree: Path) -> None:
    (work,) = (p for p in (tree / "build" / "native").iterdir() if p.is_dir())
    objects = [*work.rglob("xllm_kernel_torch.dir/**/*.o"), work / "libxllm_kernel.a"]
    bridges = {path.stem for path in (tree / "csrc" / "torch").glob("*.cpp")}
    assert {path.name.split(".")[0] for path in objects[:-1]} == bridges
    command = ["cmake", "-DOBJDUMP=objdump", f"-DOBJECTS={';'.join(map(str, objects))}"]
    done = subprocess.run([*command, "-P", BASELINE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_wheel_each_level_forced_serves_or_is_refused_with_those_that_exist(
    site: Path, tmp_path: Path
) -> None:
    marker = runpy.run_path(str(site / "xllm_kernel" / "_build" / "simd.py"))
    levels = marker["MANIFEST"]["levels"]
    assert levels[-1] == "scalar"
    served = []
    for level in levels:
        done = run_outside(tmp_path, site, CALL + LEVEL, env={"XLLM_KERNEL_SIMD_LEVEL": level})
        if done.returncode == 0:
            assert done.stdout == f"{CALLED}{level}\n"
            served.append(level)
        else:
            assert f"got '{level}'" in done.stderr
    assert "scalar" in served
    done = run_outside(tmp_path, site, CALL, env={"XLLM_KERNEL_SIMD_LEVEL": "doesnotexist"})
    assert done.returncode == 1
    assert f"({', '.join(served)}), got 'doesnotexist'" in done.stderr


@pytest.mark.skipif(not X86_64, reason="needs an x86-64 machine")
def test_wheel_works_on_a_processor_without_avx512(site: Path, tmp_path: Path) -> None:
    """Under emulation, which ends the process at an instruction that the processor lacks."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("needs the Debian package qemu-user")
    done = run_outside(tmp_path, site, CALL + LEVEL, under=(emulator, "-cpu", "Haswell"))
    assert done.stdout == f"{CALLED}avx2\n", done.stderr
