"""What a machine must have for device npu: each thing that is absent or broken, and who says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import need
from pretended_npu import SIMULATOR, Machine

need("torch")

# As torch raises it, which loads torch_npu by itself.
BROKEN = """
try:
    raise ImportError("undefined symbol: aclTest")
except ImportError as error:
    raise RuntimeError("failed to load") from error
"""
SAID = "RuntimeError: failed to load (because of ImportError: undefined symbol: aclTest)"
NATIVE = ("--device", "npu", "--implementation", "npu.xllm_native.rms_norm")
EXPLAIN = ("-m", "xllm_kernel", "explain", "--device", "npu")
COMMANDS = {
    "explain": EXPLAIN,
    "numerics": ("-m", "xllm_kernel.numerics", "--operation", "rms_norm", *NATIVE),
    "benchmark": ("-m", "xllm_kernel.benchmark", *NATIVE, "--mode", "aclgraph"),
}
ALL = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _text(done) -> str:
    return done.stdout + done.stderr


@ALL
def test_without_cann_every_command_exits_3_and_imports_nothing(
    machine: Machine, command: str
) -> None:
    machine.install_torch_npu("raise SystemExit('imported')")
    done = machine.run(*COMMANDS[command])
    assert done.returncode == 3, _text(done)
    assert "CANN, which it links, is absent: no libascendcl.so, libhccl.so" in _text(done)
    assert "set_env.sh" in _text(done)
    assert "imported" not in _text(done)


@ALL
def test_with_cann_but_without_what_it_links_the_missing_library_is_named(
    machine: Machine, command: str
) -> None:
    machine.install_cann("", "libascend_hal.so")
    machine.remove("libascend_hal.so")
    machine.install_torch_npu("raise SystemExit('imported')")
    done = machine.run(*COMMANDS[command])
    assert done.returncode == 3, _text(done)
    assert "is absent: no libascend_hal.so;" in _text(done)


@ALL
@pytest.mark.parametrize(
    ("machine_has", "seen"),
    [
        ({"devices": 0}, "the runtime counts none"),
        ({"start": "raise RuntimeError('aclInit failed, 500000')"}, "aclInit failed, 500000"),
    ],
)
def test_without_a_device_every_command_exits_3(
    machine: Machine, command: str, machine_has: dict, seen: str
) -> None:
    machine.install_cann()
    machine.install_device(**machine_has)
    done = machine.run(*COMMANDS[command])
    assert done.returncode == 3, _text(done)
    assert f"a visible device that starts is needed, {seen}" in _text(done).replace(
        "the runtime says: ", ""
    )


@pytest.mark.parametrize(("command", "code"), [("explain", 1), ("numerics", 3), ("benchmark", 3)])
def test_broken_torch_npu_propagates_and_is_not_called_absent(
    machine: Machine, command: str, code: int
) -> None:
    machine.install_cann()
    machine.install_torch_npu(BROKEN)
    done = machine.run(*COMMANDS[command])
    assert done.returncode == code
    assert "DependencyBrokenError" in _text(done)
    assert SAID in _text(done)


def test_library_that_is_there_and_cannot_be_loaded_is_not_absent(machine: Machine) -> None:
    machine.install_cann()
    (machine.libraries / "libhccl.so").write_text("truncated")
    machine.install_torch_npu(BROKEN)
    done = machine.run(*EXPLAIN)
    assert done.returncode == 1, _text(done)
    assert SAID in _text(done)


INITIALIZE = "import xllm_kernel; xllm_kernel.initialize(device='npu')"


def test_initialize_without_cann_excludes_what_links_it_and_publishes_nothing(
    machine: Machine,
) -> None:
    machine.install_torch_npu("raise SystemExit('imported')")
    done = machine.run("-c", INITIALIZE)
    assert "DependencyAbsentError: rms_norm: no implementation is left" in done.stderr
    assert "xllm_kernel.ops.rms_norm.native (missing: torch_npu is installed, but CANN" in (
        done.stderr
    )
    assert "nothing was published" in done.stderr


def test_initialize_without_cann_leaves_a_process_that_can_still_serve_a_processor(
    machine: Machine,
) -> None:
    """A torch that failed half-way through its import could not be imported again."""
    machine.install_torch_npu("raise SystemExit('imported')")
    code = (
        "import xllm_kernel\n"
        "try: xllm_kernel.initialize(device='npu')\n"
        "except xllm_kernel.errors.DependencyAbsentError: pass\n"
        "print(xllm_kernel.initialize(device='cpu')['rms_norm'].spec.name)"
    )
    done = machine.run("-c", code)
    assert done.stdout.startswith("cpu."), _text(done)


def test_initialize_with_a_broken_torch_npu_propagates(machine: Machine) -> None:
    machine.install_cann()
    machine.install_torch_npu(BROKEN)
    done = machine.run("-c", INITIALIZE)
    assert "DependencyBrokenError: rms_norm [xllm_kernel.ops.rms_norm.native]" in done.stderr


PLATFORM = """
import json
from xllm_kernel.platforms import get_platform
npu = get_platform("npu")
npu.require()
print(json.dumps([npu.evidence, npu.environment()]))
"""


def _platform(machine: Machine, **env: str) -> tuple[str, dict]:
    done = machine.run("-c", PLATFORM, **env)
    assert done.returncode == 0, done.stderr
    evidence, facts = json.loads(done.stdout)
    return evidence, facts


def test_device_is_called_device_and_its_facts_are_read(machine: Machine) -> None:
    machine.install_cann()
    machine.install_device(devices=3)
    smi = machine.modules / "npu-smi"
    smi.write_text("#!/bin/sh\necho smi $1\n")
    smi.chmod(0o755)
    settings = {"TASK_QUEUE_ENABLE": "2", "ASCEND_RT_VISIBLE_DEVICES": "0,1,2"}
    evidence, facts = _platform(machine, PATH=f"{machine.modules}:/usr/bin:/bin", **settings)
    assert evidence == "device"
    assert facts.pop("torch")
    assert facts == {
        "simulated": False,
        "device_name": "AscendTest",
        "device": 0,
        "device_count": 3,
        "torch_npu": "2.13.0-test",
        "cann": "9.9",
        "memory_bytes": {"total": 8, "in_use": 5},
        "variables": {**settings, "ASCEND_LAUNCH_BLOCKING": None},
        "npu_smi": "smi info\n",
    }


def test_simulator_is_recognised_by_its_symbol_and_said_with_version_and_seed(
    machine: Machine,
) -> None:
    machine.install_cann(SIMULATOR)
    machine.install_device()
    evidence, facts = _platform(machine, ASCEND_SIM_SEED="17")
    assert evidence == "simulated"
    assert facts["simulated"] is True
    assert (facts["simulator"], facts["simulator_seed"]) == ("0.1-test", "17")
    assert "npu_smi" not in facts


def test_simulator_under_another_name_is_recognised(machine: Machine) -> None:
    """Beside a libascendcl.so that does not have the symbol, preloaded or loaded by a module."""
    machine.install_cann()
    machine.install_library("libother.so", SIMULATOR)
    machine.install_device()
    assert _platform(machine, LD_PRELOAD="libother.so")[0] == "simulated"
    module = machine.modules / "torch_npu.py"
    module.write_text(module.read_text() + "ctypes.CDLL('libother.so')\n")
    assert _platform(machine)[0] == "simulated"


def test_no_runtime_in_the_process_is_neither_device_nor_simulator(machine: Machine) -> None:
    """A torch_npu that loads no runtime: whoever cannot tell must not say device."""
    machine.install_cann()
    machine.install_device(runtime="")
    code = "import sys, torch_npu\n" + PLATFORM  # loaded already, so no library is asked for
    done = machine.run("-c", code)
    assert "DependencyBrokenError" in done.stderr
    assert "nothing tells a device from a simulator" in done.stderr


def test_fact_that_cannot_be_read_says_why_and_costs_no_other(machine: Machine) -> None:
    machine.install_cann()
    machine.install_device()
    module = machine.modules / "torch_npu.py"
    module.write_text(module.read_text() + "del torch.npu.mem_get_info\n")
    _, facts = _platform(machine)
    assert facts["memory_bytes"].startswith("not readable: AttributeError")
    assert facts["device_name"] == "AscendTest"


def test_explain_over_the_simulator_says_so_and_keeps_its_json_clean(machine: Machine) -> None:
    machine.install_cann(SIMULATOR)
    machine.install_device()
    done = machine.run(*EXPLAIN, "--json")
    assert done.returncode == 0, _text(done)
    receipt = json.loads(done.stdout)["rms_norm"]
    assert receipt["implementation"] == "npu.xllm_native.rms_norm"
    assert receipt["evidence"] == "simulated"
    notice = "simulated: ran on a stand-in for the device"
    assert machine.run(*EXPLAIN).stdout.startswith(notice)
    machine.install_cann()
    on_device = machine.run(*EXPLAIN)
    assert "simulated" not in _text(on_device)
    receipt = json.loads(machine.run(*EXPLAIN, "--json").stdout)["rms_norm"]
    assert receipt["evidence"] == "device"


def test_explain_keeps_what_libraries_print_out_of_its_json(machine: Machine) -> None:
    says = '__attribute__((constructor)) static void say() { std::puts("from C"); }\n'
    machine.install_cann("#include <cstdio>\n" + says)
    machine.install_device()
    done = machine.run(*EXPLAIN, "--json")
    assert json.loads(done.stdout)["rms_norm"]["evidence"] == "device"
    assert "from C" in done.stderr
