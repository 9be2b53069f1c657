"""Builds: options, what a wheel holds, and when the native part is built again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from build_world import (
    BUILT,
    CALL,
    CALLED,
    CEILINGS,
    FASTCALL,
    LIBRARY,
    SIMD,
    Done,
    build_wheel,
    copy_sources,
    files_of,
    need_to_compile,
    package_files,
    run_outside,
    run_setup,
    unpack,
)

PROBE = "from xllm_kernel.benchmark.ceilings.probe import Probe; print(bool(Probe.load().level))"
BUILTINS = f"fastcall_native{sysconfig.get_config_var('EXT_SUFFIX')}"


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


@pytest.fixture(scope="module")
def pure_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_sources(tmp_path_factory.mktemp("pure") / "xllm-kernel")


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (
            {"XLLM_KERNEL_BUILD_TURBO": "1"},
            "build options are XLLM_KERNEL_BUILD_SIMD, XLLM_KERNEL_BUILD_FASTCALL, "
            "XLLM_KERNEL_BUILD_XLITE, got XLLM_KERNEL_BUILD_TURBO=1",
        ),
        ({"XLLM_KERNEL_BUILD_TURBO": "0", **SIMD}, "got XLLM_KERNEL_BUILD_TURBO=0"),
        ({"XLLM_KERNEL_BUILD_": "1"}, "got XLLM_KERNEL_BUILD_=1"),
        ({"XLLM_KERNEL_BUILD_SIMD": "yes"}, "XLLM_KERNEL_BUILD_SIMD must be 0 or 1, got 'yes'"),
        ({"XLLM_KERNEL_BUILD_SIMD": "2"}, "must be 0 or 1, got '2'"),
        ({"XLLM_KERNEL_BUILD_SIMD": ""}, "must be 0 or 1, got ''"),
        ({"XLLM_KERNEL_BUILD_FASTCALL": "on"}, "FASTCALL must be 0 or 1, got 'on'"),
        (
            {"XLLM_KERNEL_BUILD_FASTCALL": "1"},
            "XLLM_KERNEL_BUILD_FASTCALL=1 needs XLLM_KERNEL_BUILD_SIMD=1 too",
        ),
        (
            {"XLLM_KERNEL_BUILD_FASTCALL": "1", "XLLM_KERNEL_BUILD_SIMD": "0"},
            "got XLLM_KERNEL_BUILD_SIMD=0; set both",
        ),
    ],
)
def test_option_unknown_or_neither_0_nor_1_refused(
    pure_tree: Path, env: dict[str, str], said: str
) -> None:
    done = run_setup(pure_tree, "--version", env=env)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("xllm-kernel setup: ")
    assert said in line


def test_option_0_is_a_pure_build(pure_tree: Path, tmp_path: Path) -> None:
    wheel = build_wheel(pure_tree, tmp_path, env={"XLLM_KERNEL_BUILD_SIMD": "0"})
    assert wheel.name.endswith("-py3-none-any.whl")


def test_build_without_torch_refused_by_name(pure_tree: Path) -> None:
    code = (
        "import runpy, sys; sys.modules['torch'] = None; "
        "sys.argv = ['setup.py', 'build_ext', '--inplace']; "
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    done = run_setup(pure_tree, env=SIMD, code=code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "needs torch in the environment that builds, found none" in last
    assert "--no-build-isolation" in last
    assert not (pure_tree / "python" / "xllm_kernel" / "_build" / "simd.py").exists()


def test_build_without_a_compiler_refused_by_name(pure_tree: Path) -> None:
    pytest.importorskip("torch")
    done = run_setup(
        pure_tree, "build_ext", "--inplace", env={**SIMD, "CXX": "no-such-compiler -v"}
    )
    assert done.returncode == 1
    assert "needs no-such-compiler, found none; install it (Debian: " in done.stderr


# ---------------------------------------------------------------- the pure wheel


def test_pure_wheel_holds_the_modules_and_nothing_else(pure_tree: Path, tmp_path: Path) -> None:
    wheel = build_wheel(pure_tree, tmp_path)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert files_of(wheel) == package_files()


def test_pure_wheel_depends_on_nothing(pure_tree: Path, tmp_path: Path) -> None:
    metadata = Parser().parsestr(_metadata(build_wheel(pure_tree, tmp_path)))
    requirements = metadata.get_all("Requires-Dist") or []
    assert all("extra ==" in requirement for requirement in requirements)
    assert metadata["Name"] == "xllm-kernel"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"


def test_version_of_metadata_and_module_agree(pure_tree: Path, tmp_path: Path) -> None:
    import xllm_kernel

    metadata = Parser().parsestr(_metadata(build_wheel(pure_tree, tmp_path)))
    assert metadata["Version"] == xllm_kernel.__version__


def test_pure_wheel_after_other_builds_clean(tmp_path: Path) -> None:
    """Leave in the tree whatever earlier builds may have left."""
    tree = copy_sources(tmp_path / "xllm-kernel")
    leftovers = [
        "python/xllm_kernel/_build/simd.py",
        f"python/xllm_kernel/_build/{LIBRARY}",
        "python/xllm_kernel/_build/__init__.py",
        "build/lib/xllm_kernel/_build/simd.py",
        "build/pure-wheel/lib/xllm_kernel/_build/simd.py",
        "build/pure-wheel/lib/xllm_kernel/removed_module.py",
        "build/native-wheel/lib/xllm_kernel/_build/simd.py",
    ]
    for name in leftovers:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("raise SystemExit('left behind')\n")
    assert files_of(build_wheel(tree, tmp_path / "out")) == package_files()


def test_pure_wheel_works_outside_the_tree(pure_tree: Path, tmp_path: Path) -> None:
    site = unpack(build_wheel(pure_tree, tmp_path / "out"), tmp_path / "site")
    done = run_outside(tmp_path, site, "import xllm_kernel; print(xllm_kernel.__file__)")
    assert done.stdout.startswith(str(site)), done.stderr
    done = run_outside(
        tmp_path,
        site,
        "import runpy, sys; sys.argv[1:] = ['explain', '--device', 'cpu']; "
        "runpy.run_module('xllm_kernel', run_name='__main__')",
    )
    assert "cpu.torch.rms_norm" in done.stdout, done.stderr
    assert "xllm_kernel._build.simd" in done.stdout


# ---------------------------------------------------------------- the native part


@pytest.fixture(scope="module")
def built_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with its native part built in place."""
    need_to_compile()
    tree = copy_sources(tmp_path_factory.mktemp("native") / "xllm-kernel")
    done = _build(tree)
    assert "setup: built" in done.stdout, done.stdout + done.stderr
    return tree


def _build(tree: Path) -> Done:
    return run_setup(tree, "build_ext", "--inplace", env=SIMD)


def _build_folder(tree: Path) -> Path:
    return tree / "python" / "xllm_kernel" / "_build"


def test_native_in_place_marker_and_libraries(built_tree: Path) -> None:
    folder = _build_folder(built_tree)
    assert {p.name for p in folder.iterdir() if p.is_file()} == BUILT


@pytest.mark.parametrize("name", [LIBRARY, CEILINGS])
def test_native_binary_names_no_folder_of_the_machine(built_tree: Path, name: str) -> None:
    content = (_build_folder(built_tree) / name).read_bytes()
    assert str(built_tree).encode() not in content
    assert sys.prefix.encode() not in content


def test_native_touched_sources_not_built_again(built_tree: Path) -> None:
    for folder in ("csrc", "include", "cmake"):
        for path in (built_tree / folder).rglob("*"):
            os.utime(path)
    os.utime(built_tree / "CMakeLists.txt")
    before = (_build_folder(built_tree) / LIBRARY).stat()
    done = _build(built_tree)
    assert "is up to date" in done.stdout, done.stdout + done.stderr
    assert "Building" not in done.stdout
    after = (_build_folder(built_tree) / LIBRARY).stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_native_build_leaves_the_bridge_to_launchers(built_tree: Path) -> None:
    """It is another option's, for other environments, and says itself when it is stale."""
    others = [_build_folder(built_tree) / name for name in ("xlite.py", "libxllm_kernel_xlite.so")]
    for path in others:
        path.write_text("")
    assert "is up to date" in _build(built_tree).stdout
    for path in others:
        path.unlink()


def test_native_header_edited_built_again(built_tree: Path, tmp_path: Path) -> None:
    header = built_tree / "include" / "xllm_kernel" / "rms_norm.h"
    header.write_text(header.read_text() + "// one more line\n")
    stale = run_outside(tmp_path, built_tree / "python", CALL)
    assert "must be built from the sources beside it" in stale.stderr
    done = _build(built_tree)
    assert "setup: built" in done.stdout, done.stdout + done.stderr
    assert run_outside(tmp_path, built_tree / "python", CALL).stdout == CALLED


def test_native_damaged_library_built_again(built_tree: Path, tmp_path: Path) -> None:
    library = _build_folder(built_tree) / LIBRARY
    library.write_bytes(library.read_bytes()[:1000])
    damaged = run_outside(tmp_path, built_tree / "python", CALL)
    assert "truncated, changed or replaced" in damaged.stderr
    assert "setup: built" in _build(built_tree).stdout
    assert run_outside(tmp_path, built_tree / "python", CALL).stdout == CALLED


@pytest.mark.parametrize("damage", ["other", "missing"])
def test_native_damaged_probe_built_again_and_serves(
    built_tree: Path, tmp_path: Path, damage: str
) -> None:
    library = _build_folder(built_tree) / CEILINGS
    if damage == "missing":
        library.unlink()
    else:
        library.write_bytes(library.read_bytes() + b"!")
    refused = run_outside(tmp_path, built_tree / "python", PROBE)
    assert "build it again" in refused.stderr
    assert run_outside(tmp_path, built_tree / "python", CALL).stdout == CALLED
    assert "setup: built" in _build(built_tree).stdout
    assert run_outside(tmp_path, built_tree / "python", PROBE).stdout == "True\n"


def test_native_failed_compilation_keeps_no_half_build(built_tree: Path) -> None:
    source = built_tree / "csrc" / "simd" / "core" / "view.cpp"
    good = source.read_text()
    folder = _build_folder(built_tree)
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    source.write_text("#error not today\n" + good)
    try:
        done = _build(built_tree)
        assert done.returncode != 0
        assert "ended with status" in done.stderr
        assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before
    finally:
        source.write_text(good)
    assert "is up to date" in _build(built_tree).stdout


@pytest.mark.parametrize("damage", ["moved", "interrupted"])
def test_native_cmake_folder_of_no_use_made_afresh(
    built_tree: Path, tmp_path: Path, damage: str
) -> None:
    tree = tmp_path / "xllm-kernel"
    shutil.copytree(built_tree, tree)
    shutil.rmtree(_build_folder(tree))
    if damage == "interrupted":
        (work,) = (p for p in (tree / "build" / "native").iterdir() if p.is_dir())
        shutil.rmtree(work)
        work.mkdir()
        (work / "CMakeCache.txt").write_text("CMAKE_GENERATOR:INTERNAL=Unix Mak")
    done = _build(tree)
    assert "setup: built" in done.stdout, done.stdout + done.stderr
    assert "starting afresh" in done.stdout


def test_native_builds_started_together_one_builds(built_tree: Path) -> None:
    shutil.rmtree(_build_folder(built_tree))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XLLM_KERNEL_")} | SIMD
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    running = [
        subprocess.Popen(
            command,
            cwd=built_tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4, outputs
    assert sum("setup: built" in output for output in outputs) == 1
    assert sum("is up to date" in output for output in outputs) == 3


def test_native_tree_pure_wheel_stays_pure(built_tree: Path, tmp_path: Path) -> None:
    build_wheel(built_tree, tmp_path / "native", env=SIMD)
    wheel = build_wheel(built_tree, tmp_path / "pure")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert files_of(wheel) == package_files()


# ---------------------------------------------------------------- the builtins


def _need_python_headers() -> None:
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file():
        pytest.skip("needs Python's headers to build the builtins")


def test_builtins_without_python_headers_refused_by_name(built_tree: Path) -> None:
    code = (
        "import runpy, sys, sysconfig; paths = dict(sysconfig.get_paths(), include='/nowhere'); "
        "sysconfig.get_paths = lambda *a, **k: paths; "
        "sys.argv = ['setup.py', 'build_ext', '--inplace']; "
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    done = run_setup(built_tree, env=FASTCALL, code=code)
    assert done.returncode == 1
    assert "needs Python.h, found none in /nowhere" in done.stderr
    assert "python3-dev" in done.stderr


def test_builtins_in_place_in_a_wheel_and_removed_when_not_asked_for(
    built_tree: Path, tmp_path: Path
) -> None:
    """One test, for each build of them takes most of a minute."""
    _need_python_headers()
    kind = CALL + "; print(type(plan.function).__name__)"
    done = run_setup(built_tree, "build_ext", "--inplace", env=FASTCALL)
    assert f"built {_build_folder(built_tree) / BUILTINS}" in done.stdout, done.stdout + done.stderr
    content = (_build_folder(built_tree) / BUILTINS).read_bytes()
    assert str(built_tree).encode() not in content
    assert sys.prefix.encode() not in content
    done = run_outside(tmp_path, built_tree / "python", kind)
    assert done.stdout == f"{CALLED}builtin_function_or_method\n", done.stderr

    wheel = build_wheel(built_tree, tmp_path / "out", env=FASTCALL)
    python, abi, platform = wheel.stem.split("-")[2:]
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert (python, abi) == (tag, tag)
    assert platform.startswith("linux_")
    added = {f"xllm_kernel/_build/{n}" for n in BUILT | {"fastcall.py", BUILTINS}}
    assert files_of(wheel) == package_files() | added
    site = unpack(wheel, tmp_path / "site")
    done = run_outside(tmp_path, site, kind)
    assert done.stdout == f"{CALLED}builtin_function_or_method\n", done.stderr

    assert "is up to date" in _build(built_tree).stdout
    assert {p.name for p in _build_folder(built_tree).iterdir() if p.is_file()} == BUILT
    done = run_outside(tmp_path, built_tree / "python", kind)
    assert done.stdout == f"{CALLED}OpOverload\n", done.stderr
