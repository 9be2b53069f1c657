"""What a report records of an Ascend device: versions, load, settings; nothing is interpreted.

Facts that only some machines have are left out elsewhere; one that cannot be read says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from xllm_kernel.platforms.ascend import Simulator

# Recorded even where they are not set, since each changes what a time means.
_ALWAYS = ("TASK_QUEUE_ENABLE", "ASCEND_LAUNCH_BLOCKING")
_PREFIXES = ("ASCEND_", "PYTORCH_NPU_")
_NPU_SMI_S = 30.0


def facts(npu: Any, torch_npu: Any, simulator: Simulator | None) -> dict[str, Any]:
    """Return facts about the current device and its software, as JSON values.

    Args:
        npu: torch's device module.
        torch_npu: the module behind it.
        simulator: the simulated runtime, or None on a device.
    """
    found: dict[str, Any] = {
        "simulated": simulator is not None,
        "device_name": npu.get_device_name(),
        "device": npu.current_device(),
        "device_count": npu.device_count(),
        "torch_npu": torch_npu.__version__,
        "cann": _read(lambda: npu.utils.get_cann_version()),
        "memory_bytes": _read(lambda: _memory(npu)),
        "variables": _variables(),
    }
    if simulator is not None:
        # npu-smi would describe devices that nothing ran on.
        return found | {"simulator": simulator.version, "simulator_seed": simulator.seed}
    if shutil.which("npu-smi"):
        found["npu_smi"] = _read(_npu_smi)
    return found


def _memory(npu: Any) -> dict[str, int]:
    """Return the device's memory: all of it, and what all processes together hold."""
    free, total = npu.mem_get_info()
    return {"total": total, "in_use": total - free}


def _variables() -> dict[str, str | None]:
    """Return the environment variables that steer the runtime and torch_npu."""
    given = {k: v for k, v in sorted(os.environ.items()) if k.startswith(_PREFIXES)}
    return {name: os.environ.get(name) for name in _ALWAYS} | given


def _npu_smi() -> str:
    """Return what ``npu-smi info`` prints: driver, health, load, and the processes on devices."""
    command = ["npu-smi", "info"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_NPU_SMI_S, check=False)
    return done.stdout + done.stderr


def _read(fact: Callable[[], Any]) -> Any:
    """Return a fact, or why it cannot be read: a report is worth having without it."""
    try:
        return fact()
    except (AttributeError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        return f"not readable: {type(error).__name__}: {error}"
