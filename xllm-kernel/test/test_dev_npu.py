"""The verbs of `dev` for NPUs: what is refused, what is bundled, where there are no wheels."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from conftest import PACKAGE_ROOT, REPOSITORY_ROOT, need
from pretended_npu import SIMULATOR, Machine

sys.path.insert(0, str(REPOSITORY_ROOT / "tools"))

from devtool import evidence, npu, shell, verbs
from devtool.shell import DevError
from devtool.suites import Suite

# Stands for `python` on a machine with a device: the probe runs for real, commands are pretended.
PYTHON = """#!{executable}
import json, os, pathlib, sys
arguments = sys.argv[1:]
if arguments[0] == "-c":
    os.execv({executable!r}, [{executable!r}, *arguments])
with open({log!r}, "a") as log:
    log.write(" ".join(arguments) + "\\n")
print("ran", *arguments, os.environ.get("XLLM_KERNEL_OVERRIDE_RMS_NORM"))
if "--output" in arguments:
    report = {{"evidence": {evidence!r}}}
    pathlib.Path(arguments[arguments.index("--output") + 1]).write_text(json.dumps(report))
sys.exit({failing!r} in " ".join(arguments))
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with CANN and a device, in this process's own environment."""
    need("torch")
    machine = Machine(tmp_path)
    monkeypatch.setattr(shell, "BUILD", tmp_path / "build")
    monkeypatch.setattr(evidence, "_git", lambda *arguments: " ".join(arguments))
    monkeypatch.setenv("PYTHONPATH", str(machine.modules))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(machine.libraries))
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    _install_python(tmp_path)
    return machine


def _install_python(folder: Path, evidence: str = "device", failing: str = "nothing") -> None:
    python = folder / "bin" / "python"
    places = {"executable": sys.executable, "log": str(folder / "commands")}
    python.write_text(PYTHON.format(**places, evidence=evidence, failing=failing))
    python.chmod(0o755)


def _commands(folder: Path) -> list[str]:
    log = folder / "commands"
    return log.read_text().splitlines() if log.exists() else []


def _bundle(folder: Path) -> dict[str, bytes]:
    (archive,) = (folder / "out").glob("npu-evidence-*.tar.gz")
    with tarfile.open(archive) as bundle:
        files = [member for member in bundle if member.isfile()]
        assert {Path(f.name).parent.name for f in files} == {archive.name.removesuffix(".tar.gz")}
        return {Path(f.name).name: bundle.extractfile(f).read() for f in files}  # type: ignore[union-attr]


def test_evidence_on_the_simulator_is_refused_before_anything_runs(
    machine: Machine, tmp_path: Path
) -> None:
    machine.install_cann(SIMULATOR)
    machine.install_device()
    with pytest.raises(DevError, match=r"'simulated', not 'device'.*no evidence for an NPU"):
        evidence.gather(tmp_path / "out")
    assert _commands(tmp_path) == []
    assert not (tmp_path / "out").exists()


def test_evidence_without_cann_exits_3_with_the_reason(machine, tmp_path: Path, capsys) -> None:
    machine.install_torch_npu("raise SystemExit('imported')")
    assert evidence.gather(tmp_path / "out") == 3
    assert "CANN, which it links, is absent" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_evidence_with_a_broken_torch_npu_shows_what_it_raised(machine, tmp_path: Path) -> None:
    machine.install_cann()
    machine.install_torch_npu("raise ImportError('undefined symbol: aclTest')")
    with pytest.raises(DevError, match="undefined symbol: aclTest"):
        evidence.gather(tmp_path / "out")


def test_evidence_bundles_reports_logs_facts_and_their_digests(
    machine: Machine, tmp_path: Path
) -> None:
    machine.install_cann()
    machine.install_device()
    smi = tmp_path / "bin" / "npu-smi"
    smi.write_text("#!/bin/sh\necho the devices\n")
    smi.chmod(0o755)
    assert evidence.gather(tmp_path / "out") == 0
    files = _bundle(tmp_path)
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["sha256"] == {n: hashlib.sha256(c).hexdigest() for n, c in files.items()}
    assert {"native-numerics.json", "native-benchmark.json", "explain.log"} <= set(files)
    assert files["npu-smi-before.txt"] == files["npu-smi-after.txt"] == b"the devices\n"
    assert b"npu.xllm_native.rms_norm" in files["native-tests.log"]  # its override
    assert (manifest["evidence"], manifest["environment"]["simulated"]) == ("device", False)
    assert manifest["revision"] == "rev-parse HEAD"
    assert manifest["uncommitted"] == ["status --porcelain"]
    runtime = machine.libraries / "libascendcl.so"
    digest = hashlib.sha256(runtime.read_bytes()).hexdigest()
    assert manifest["binaries"][str(runtime)] == digest


def test_evidence_runs_the_guides_commands_in_turn(machine: Machine, tmp_path: Path) -> None:
    machine.install_cann()
    machine.install_device()
    assert evidence.gather(tmp_path / "out") == 0
    commands = [line for line in _commands(tmp_path) if "xlite" not in line]
    assert [line.split()[:2] for line in commands] == [
        ["-m", "xllm_kernel"],
        ["-m", "xllm_kernel.numerics"],
        ["-m", "xllm_kernel.benchmark"],
        ["-m", "pytest"],
    ]
    for line, mode in ((commands[1], "eager"), (commands[2], "aclgraph")):
        assert "--operation rms_norm --device npu" in line
        assert "--implementation npu.xllm_native.rms_norm --rows 1 16 --widths 6144" in line
        assert f"--mode {mode}" in line
        assert "--revision rev-parse HEAD" in line
    assert "--iterations 50" in commands[2]
    assert "xllm-kernel/test/npu/test_kernel_rms_norm_npu.py" in commands[3]


def test_evidence_of_failing_commands_is_bundled_too_and_exits_1(
    machine: Machine, tmp_path: Path, capsys
) -> None:
    machine.install_cann()
    machine.install_device()
    _install_python(tmp_path, failing="-m pytest")
    assert evidence.gather(tmp_path / "out") == 1
    assert "Failed: native-tests" in capsys.readouterr().out
    steps = json.loads(_bundle(tmp_path)["manifest.json"])["steps"]
    assert [s["exit_status"] for s in steps if "xlite" not in s["name"]] == [0, 0, 0, 1]


def test_evidence_with_a_report_that_was_not_obtained_on_a_device_is_not_bundled(
    machine: Machine, tmp_path: Path
) -> None:
    machine.install_cann()
    machine.install_device()
    _install_python(tmp_path, evidence="simulated")
    with pytest.raises(DevError, match=r"native-numerics\.json says 'simulated'"):
        evidence.gather(tmp_path / "out")
    assert list((tmp_path / "out").glob("*.tar.gz")) == []


@pytest.mark.parametrize(
    ("system", "processor", "version", "fits"),
    [
        ("Linux", "x86_64", (3, 11), True),
        ("Linux", "x86_64", (3, 12), True),
        ("Linux", "x86_64", (3, 10), False),
        ("Linux", "x86_64", (3, 13), False),
        ("Linux", "aarch64", (3, 11), False),
        ("Darwin", "x86_64", (3, 11), False),
    ],
)
def test_npu_tests_are_skipped_with_a_reason_where_no_wheels_exist(
    monkeypatch, system: str, processor: str, version: tuple[int, int], fits: bool
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    monkeypatch.setattr(platform, "python_version", lambda: ".".join(map(str, version)))
    reason = npu.unavailable()
    if fits:
        assert reason is None
        return
    assert reason is not None
    assert f"not {system} {processor} with Python {version[0]}.{version[1]}" in reason
    monkeypatch.setattr(npu, "run_ctest", lambda name, *options: Suite(name, 1, 0, Counter()))
    *own, device = [suite for leg in npu.legs("package") for suite in leg.run()]
    assert [suite.passed for suite in own] == [1, 1, 1]  # the simulator's need no wheel
    assert (device.passed, device.failed, dict(device.skips)) == (0, 0, {reason: 1})
    with pytest.raises(DevError, match="have wheels for"):
        npu.prepare()


def test_every_leg_waits_only_for_legs_that_come_before_it() -> None:
    names: list[str] = []
    for leg in verbs.test_legs():
        assert set(leg.after) <= set(names), leg.name
        names.append(leg.name)
    assert len(names) == len(set(names))


def test_every_file_of_npu_tests_that_dev_runs_exists() -> None:
    assert all((REPOSITORY_ROOT / file).is_file() for file in npu.TESTS.values())
    assert (PACKAGE_ROOT / "test/npu/host/CMakeLists.txt").is_file()


def test_dev_runs_from_any_directory_with_only_python(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(
        REPOSITORY_ROOT / "tools", copy / "tools", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(REPOSITORY_ROOT / "dev", copy)
    command = [sys.executable, "-I", "-S", str(copy / "dev"), "help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"npu-sim", "npu-evidence", "test"} <= set(done.stdout.split())
    assert not list(copy.rglob("__pycache__"))
