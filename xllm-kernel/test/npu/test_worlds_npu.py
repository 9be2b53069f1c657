"""What a worker finds on a machine, by real packages: chosen, passed over, or raised by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from npu_host import VARIABLE, host_library
from npu_worlds import World, flip_last_byte, receipt
from processes import Command, Done, run_all, text_of

from xllm_kernel.artifacts import XLITE_BUILD_COMMAND

NATIVE, XLITE = "npu.xllm_native.rms_norm", "npu.xlite.rms_norm"
EXPLAIN = ("-m", "xllm_kernel", "explain", "rms_norm", "--device", "npu")
OVERRIDE = "XLLM_KERNEL_OVERRIDE_RMS_NORM"

EXPLAINED = ("neither", "torch_npu only", "no bridge", "both", "both, xlite chosen")
# How each world is broken, and what the error must say.
BROKEN = {
    "tampered launchers": r"ArtifactError: .*libxlite_kernels_bf16_npu\.so.*sha256",
    "tampered bridge": r"ArtifactError: .*libxllm_kernel_xlite\.so.*sha256",
    "another torch_npu's ABI": r"ArtifactError: .*torch_npu.*0\.0\.1",
    "another release's manifest": r"ArtifactError: .*schema_version.*999",
    "unsupported processor": r"DependencyBrokenError: .*got Ascend310P3",
    "failing registration": r"DependencyBrokenError: .*libxlite_kernels_\w+\.so.*wrote nothing",
}
FILE = "xllm-kernel/test/npu/test_kernel_rms_norm_npu.py"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "eps_counts", FILE)
CLI = ("--operation", "rms_norm", "--device", "npu", "--implementation", NATIVE)
WITHOUT_CANN = {
    "explain": EXPLAIN,
    "numerics": ("-m", "xllm_kernel.numerics", *CLI, "--mode", "eager"),
    "benchmark": ("-m", "xllm_kernel.benchmark", *CLI, "--mode", "aclgraph"),
    "pytest": PYTEST,
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, simulator) -> dict[str, Done]:
    """What came of every world, all run side by side: each takes seconds to import PyTorch."""
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    folder = tmp_path_factory.mktemp("worlds")
    commands = {**_explained(folder), **_broken(folder), **_without_cann(folder)}
    commands["host absent"] = Command(PYTEST, {VARIABLE: "/nowhere/host.so", OVERRIDE: None})
    commands["other binding"] = Command(PYTEST, {OVERRIDE: "xlite"})
    return dict(zip(commands, run_all(commands.values()), strict=True))


def _explained(folder: Path) -> dict[str, Command]:
    explain = (*EXPLAIN, "--json")
    neither = World(folder / "neither", without=("torch_npu", "xlite"), bridge=False)
    native = World(folder / "native", without=("xlite",), bridge=False)
    unbuilt = World(folder / "unbuilt", bridge=False)
    both = World(folder / "both")
    worlds = (neither, native, unbuilt, both, both)
    chosen: list[dict[str, str]] = [{}, {}, {}, {}, {OVERRIDE: "xlite"}]
    return {
        name: world.command(*explain, **environment)
        for name, world, environment in zip(EXPLAINED, worlds, chosen, strict=True)
    }


def _broken(folder: Path) -> dict[str, Command]:
    launchers = World(folder / "launchers")
    flip_last_byte(launchers.own_copy("xlite") / "lib/libxlite_kernels_bf16_npu.so")
    bridge = World(folder / "bridge")
    flip_last_byte(bridge.package / "_build/libxllm_kernel_xlite.so")
    abi = World(folder / "abi")
    abi.rewrite_manifest("'torch_npu_built_with': '", "'torch_npu_built_with': '0.0.1.")
    release = World(folder / "release")
    release.rewrite_manifest("'schema_version': ", "'schema_version': 999")
    intact = World(folder / "intact")
    commands = [world.command(*EXPLAIN) for world in (launchers, bridge, abi, release)]
    commands.append(intact.command(*EXPLAIN, ASCEND_SIM_SOC="Ascend310P3"))
    commands.append(intact.command(*EXPLAIN, ASCEND_SIM_FAULT="register:*"))
    # Not even on request does another backend take the place of a broken one.
    return dict(zip(BROKEN, commands, strict=True)) | {
        f"{name}, native chosen": Command(
            command.arguments, {**command.environment, OVERRIDE: "native"}
        )
        for name, command in list(zip(BROKEN, commands, strict=True))[:1]
    }


def _without_cann(folder: Path) -> dict[str, Command]:
    gone = {"LD_LIBRARY_PATH": None, OVERRIDE: None}
    return {
        f"without CANN: {name}": Command(
            (*arguments, "--output", str(folder / f"{name}.json"))
            if "." in arguments[1]
            else arguments,
            gone,
        )
        for name, arguments in WITHOUT_CANN.items()
    }


def test_neither_module_is_absent_and_named(outcomes: dict[str, Done]) -> None:
    done = outcomes["neither"]
    assert done.returncode == 3, text_of(done)
    assert "DependencyAbsentError" in done.stdout
    assert "torch_npu" in done.stdout


def test_torch_npu_alone_gives_native(outcomes: dict[str, Done]) -> None:
    done = outcomes["torch_npu only"]
    assert done.returncode == 0, text_of(done)
    chosen = receipt(done.stdout)
    assert chosen["implementation"] == NATIVE
    assert _passed_over(chosen)[0] == "missing"
    assert "xlite" in _passed_over(chosen)[1]


def test_xlite_without_its_bridge_is_excluded_with_the_command(outcomes: dict[str, Done]) -> None:
    done = outcomes["no bridge"]
    assert done.returncode == 0, text_of(done)
    chosen = receipt(done.stdout)
    assert chosen["implementation"] == NATIVE
    code, reason = _passed_over(chosen)
    assert code == "missing"
    assert "xllm_kernel._build.xlite" in reason
    assert XLITE_BUILD_COMMAND in reason


def test_both_give_native_by_priority(outcomes: dict[str, Done]) -> None:
    done = outcomes["both"]
    assert done.returncode == 0, text_of(done)
    chosen = receipt(done.stdout)
    assert chosen["implementation"] == NATIVE
    assert _passed_over(chosen) == ("priority", f"0 is lower than 10 of {NATIVE}")


def test_both_give_xlite_on_request(outcomes: dict[str, Done]) -> None:
    done = outcomes["both, xlite chosen"]
    assert done.returncode == 0, text_of(done)
    chosen = receipt(done.stdout)
    assert chosen["implementation"] == XLITE
    assert "GVirt" in json_text(chosen)


@pytest.mark.parametrize("name", [*BROKEN, "tampered launchers, native chosen"])
def test_a_broken_xlite_raises_and_nothing_takes_its_place(
    outcomes: dict[str, Done], name: str
) -> None:
    done = outcomes[name]
    assert done.returncode == 1, text_of(done)
    said = BROKEN[name.partition(", native")[0]]
    assert re.search(said, done.stderr), text_of(done)
    assert "xlite" in done.stderr.lower()
    assert "chosen" not in done.stdout


@pytest.mark.parametrize("name", WITHOUT_CANN)
def test_without_cann_a_command_exits_3_with_the_reason(
    outcomes: dict[str, Done], name: str
) -> None:
    done = outcomes[f"without CANN: {name}"]
    assert done.returncode == 3, text_of(done)
    assert "libhccl.so" in text_of(done)


def test_a_host_that_is_not_there_ends_the_run(outcomes: dict[str, Done]) -> None:
    done = outcomes["host absent"]
    assert done.returncode == 3, text_of(done)
    assert "there is no /nowhere/host.so" in text_of(done)


def test_a_file_of_another_binding_names_the_command(outcomes: dict[str, Done]) -> None:
    done = outcomes["other binding"]
    assert done.returncode == 1, text_of(done)
    assert f"{OVERRIDE}={NATIVE} python -m pytest -q {FILE}" in text_of(done)


def test_hardware_without_a_host_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=f"{VARIABLE} must name the library"):
        host_library(simulated=False)


def _passed_over(chosen: dict) -> tuple[str, str]:
    """Return code and reason of the other implementation."""
    (other,) = [
        e
        for e in chosen["excluded"]
        if e["name"].startswith(("npu.", "xllm_kernel.ops.rms_norm.xlite"))
    ]
    return other["code"], other["reason"]


def json_text(chosen: dict) -> str:
    return str(chosen)
