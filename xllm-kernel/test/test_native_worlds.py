"""What a worker gets from each state a native build can be in: chosen, excluded, an error."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import need_native
from native_world import NativeWorld

need_native()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NativeWorld:
    return NativeWorld(tmp_path_factory.mktemp("worlds"), with_build=True)


@pytest.fixture
def build_restored(world: NativeWorld, tmp_path: Path) -> Iterator[NativeWorld]:
    """The world; whatever a test does to the build and the sources is undone."""
    saved = tmp_path / "saved"
    shutil.copytree(world.root, saved)
    yield world
    shutil.rmtree(world.root)
    shutil.copytree(saved, world.root)


def _explain(world: NativeWorld, **env: str):
    return world.run("-m", "xllm_kernel", "explain", "--device", "cpu", "--json", env=env)


def test_built_simd_is_chosen_and_torch_passed_over_for_priority(world: NativeWorld) -> None:
    done = _explain(world)
    assert done.returncode == 0, done.stdout + done.stderr
    receipt = json.loads(done.stdout)["rms_norm"]
    assert receipt["implementation"] == "cpu.simd.rms_norm"
    operator = "torch operator xllm_kernel.simd_rms_norm.default"
    builtin = "C builtin xllm_kernel._build.fastcall_native.simd_rms_norm over "
    assert receipt["entry"] == (builtin + operator if world.has_fastcall else operator)
    assert receipt["guarantees"]
    codes = {e["name"]: e["code"] for e in receipt["excluded"]}
    assert codes["cpu.torch.rms_norm"] == "priority"


def test_not_built_torch_is_chosen_and_simd_excluded_with_the_build_command(
    build_restored: NativeWorld,
) -> None:
    shutil.rmtree(build_restored.build_folder)
    done = _explain(build_restored)
    receipt = json.loads(done.stdout)["rms_norm"]
    assert receipt["implementation"] == "cpu.torch.rms_norm"
    reason = next(e for e in receipt["excluded"] if e["name"].endswith(".simd"))
    assert reason["code"] == "missing"
    assert "xllm_kernel._build.simd" in reason["reason"]
    assert "XLLM_KERNEL_BUILD_SIMD=1 python setup.py build_ext --inplace" in reason["reason"]


def test_not_built_an_override_for_simd_is_an_error(build_restored: NativeWorld) -> None:
    shutil.rmtree(build_restored.build_folder)
    done = _explain(build_restored, XLLM_KERNEL_OVERRIDE_RMS_NORM="simd")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"] == "DependencyAbsentError"


def _edit_manifest(key: str, value: str, module: str = "simd") -> Callable[[NativeWorld], None]:
    def damage(world: NativeWorld) -> None:
        marker = world.build_folder / f"{module}.py"
        text, count = re.subn(
            f"'{key}': [^\n}}]*?(,?\n|}})", f"'{key}': {value}\\1", marker.read_text()
        )
        assert count == 1
        marker.write_text(text)

    return damage


def _edit_source(world: NativeWorld) -> None:
    path = world.root / "csrc" / "simd" / "core" / "half.h"
    path.write_text(path.read_text() + "// another line\n")


def _truncate_library(world: NativeWorld) -> None:
    world.library.write_bytes(world.library.read_bytes()[:4096])


def _remove_library(world: NativeWorld) -> None:
    world.library.unlink()


def _break_marker(world: NativeWorld) -> None:
    (world.build_folder / "simd.py").write_text("MANIFEST = {")


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (_edit_source, "ArtifactError", "must be built from the sources beside it"),
        (_truncate_library, "ArtifactError", "4096 bytes"),
        (_remove_library, "ArtifactError", "there is no such file"),
        (_edit_manifest("torch_floor", "'99.1'"), "ArtifactError", r"needs torch >= 99\.1"),
        (_edit_manifest("library_sha256", "'0' * 64"), "ArtifactError", "000000000000"),
        (_edit_manifest("schema_version", "7"), "ArtifactError", "schema_version 1, found 7"),
        (_edit_manifest("source_hash", "''"), "ArtifactError", "must hold source_hash"),
        (_edit_manifest("torch_floor", "'x99'"), "ArtifactError", "torch_floor must be a version"),
        (_break_marker, "DependencyBrokenError", "SyntaxError"),
    ],
)
def test_built_and_damaged_is_an_error_and_never_another_backend(
    build_restored: NativeWorld, damage, error: str, message: str
) -> None:
    damage(build_restored)
    done = _explain(build_restored)
    answer = json.loads(done.stdout)
    assert done.returncode == 1, answer
    assert answer["error"] == error
    assert re.search(message, answer["message"]), answer["message"]
    assert "nothing was published" in answer["message"]


def _need_fastcall(world: NativeWorld) -> None:
    if not world.has_fastcall:
        pytest.skip("builtins absent: ./dev build")


def test_builtins_not_built_the_operator_itself_is_registered(build_restored: NativeWorld) -> None:
    (build_restored.build_folder / "fastcall.py").unlink(missing_ok=True)
    receipt = json.loads(_explain(build_restored).stdout)["rms_norm"]
    assert receipt["implementation"] == "cpu.simd.rms_norm"
    assert receipt["entry"] == "torch operator xllm_kernel.simd_rms_norm.default"


def _truncate_builtins(world: NativeWorld) -> None:
    (library,) = world.build_folder.glob("fastcall_native*.so")
    library.write_bytes(library.read_bytes()[:4096])


def _edit_builtins_source(world: NativeWorld) -> None:
    path = world.root / "csrc" / "fastcall" / "guard.h"
    path.write_text(path.read_text() + "// another line\n")


def _break_builtins_marker(world: NativeWorld) -> None:
    (world.build_folder / "fastcall.py").write_text("MANIFEST = {")


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (_edit_builtins_source, "ArtifactError", "must be built from the sources beside it"),
        (_truncate_builtins, "ArtifactError", "4096 bytes"),
        (
            _edit_manifest("torch_built_with", "'2.99.0+cpu'", "fastcall"),
            "ArtifactError",
            r"needs the torch it was built with, 2\.99\.0\+cpu, found \d.*BUILD_FASTCALL=1",
        ),
        (
            _edit_manifest("python_abi", "'cpython-399-x'", "fastcall"),
            "ArtifactError",
            r"needs the Python ABI it was built with, cpython-399-x, found cpython-3",
        ),
        (_break_builtins_marker, "DependencyBrokenError", "SyntaxError"),
    ],
)
def test_builtins_damaged_or_of_another_torch_an_error_and_never_the_operator(
    build_restored: NativeWorld, damage, error: str, message: str
) -> None:
    _need_fastcall(build_restored)
    damage(build_restored)
    done = _explain(build_restored)
    answer = json.loads(done.stdout)
    assert done.returncode == 1, answer
    assert answer["error"] == error
    assert re.search(message, answer["message"]), answer["message"]
    assert "nothing was published" in answer["message"]


def test_builtins_repaired_taken_by_a_retry_in_the_same_process(
    build_restored: NativeWorld,
) -> None:
    _need_fastcall(build_restored)
    code = """
import pathlib, types, xllm_kernel
from xllm_kernel.errors import ArtifactError
marker = pathlib.Path(xllm_kernel.__file__).parent / "_build" / "fastcall.py"
good = marker.read_text()
marker.write_text(good.replace("'schema_version': 1", "'schema_version': 8"))
try:
    xllm_kernel.initialize(device="cpu")
except ArtifactError as error:
    assert "found 8" in str(error), error
else:
    raise SystemExit("the damaged manifest was accepted")
marker.write_text(good)
function = xllm_kernel.initialize(device="cpu")["rms_norm"].function
assert isinstance(function, types.BuiltinFunctionType), function
"""
    done = build_restored.run("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("level", ["scalar", "doesnotexist"])
def test_builtins_take_the_level_of_the_operator(world: NativeWorld, level: str) -> None:
    code = """
import torch, xllm_kernel
function = xllm_kernel.initialize(device="cpu")["rms_norm"].function
print(torch.ops.xllm_kernel.simd_level(), function(torch.ones(1, 4), torch.ones(4), 0.0).tolist())
"""
    done = world.run("-c", code, env={"XLLM_KERNEL_SIMD_LEVEL": level})
    if level == "scalar":
        assert done.stdout == "scalar [[1.0, 1.0, 1.0, 1.0]]\n", done.stderr
    else:
        assert "must name a SIMD level" in done.stderr


def test_a_repaired_build_is_taken_by_a_retry_in_the_same_process(
    build_restored: NativeWorld,
) -> None:
    code = """
import pathlib, xllm_kernel
from xllm_kernel.errors import ArtifactError
marker = pathlib.Path(xllm_kernel.__file__).parent / "_build" / "simd.py"
good = marker.read_text()
marker.write_text(good.replace("'schema_version': 1", "'schema_version': 8"))
try:
    xllm_kernel.initialize(device="cpu")
except ArtifactError as error:
    assert "found 8" in str(error), error
else:
    raise SystemExit("the damaged manifest was accepted")
marker.write_text(good)
plan = xllm_kernel.initialize(device="cpu")["rms_norm"]
assert (plan.spec.name, plan.generation) == ("cpu.simd.rms_norm", 1)
"""
    done = build_restored.run("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_corrected_simd_level_is_taken_by_a_retry_in_the_same_process(
    world: NativeWorld,
) -> None:
    code = """
import os, xllm_kernel
from xllm_kernel.errors import ConfigurationError
os.environ["XLLM_KERNEL_SIMD_LEVEL"] = "doesnotexist"
try:
    xllm_kernel.initialize(device="cpu")
except ConfigurationError as error:
    assert "got 'doesnotexist'" in str(error), error
else:
    raise SystemExit("an unknown level was accepted")
os.environ["XLLM_KERNEL_SIMD_LEVEL"] = "scalar"
plan = xllm_kernel.initialize(device="cpu")["rms_norm"]
assert plan.spec.name == "cpu.simd.rms_norm"
assert plan.spec.build[0].startswith("SIMD level scalar of "), plan.spec.build
"""
    done = world.run("-c", code)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("level", ["doesnotexist", ""])
def test_an_unknown_simd_level_is_an_error_that_lists_those_that_exist(
    world: NativeWorld, level: str
) -> None:
    done = _explain(world, XLLM_KERNEL_SIMD_LEVEL=level)
    answer = json.loads(done.stdout)
    assert done.returncode != 0
    assert "scalar" in answer["message"]
