"""A machine with torch_npu, as far as a test says: CANN's libraries, the module, devices.

Every library and module here is a few lines that this file writes; nothing is real.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY_ROOT

CANN = ("libascendcl.so", "libhccl.so")
SIMULATOR = 'extern "C" const char* ascend_sim_version(void) { return "0.1-test"; }\n'

# A torch_npu over devices that can count and name themselves, and no more.
MODULE = """
import ctypes, types
import torch
__version__ = "2.13.0-test"
npu_rms_norm = lambda x, weight, epsilon: (x, None)
RUNTIME = {runtime!r}
if RUNTIME:
    ctypes.CDLL(RUNTIME)
def current_device():
    {start}
    return 0
torch.npu = types.SimpleNamespace(
    device_count=lambda: {devices}, current_device=current_device,
    get_device_name=lambda: "AscendTest", mem_get_info=lambda: (3, 8),
    utils=types.SimpleNamespace(get_cann_version=lambda: "9.9"),
)
"""


class Machine:
    """Folders that a child process searches for libraries and modules first.

    Attributes:
        libraries: searched by the dynamic loader.
        modules: searched by Python.
    """

    def __init__(self, folder: Path) -> None:
        self.libraries, self.modules = folder / "libraries", folder / "modules"
        self.libraries.mkdir()
        self.modules.mkdir()

    def install_cann(self, source: str = "", *links: str) -> None:
        """Compile CANN's libraries from C++, ``links`` (themselves empty) among what they need."""
        for name in links:
            self.install_library(name, "")
        for name in CANN:
            self.install_library(name, source if name == CANN[0] else "", *links)

    def remove(self, library: str) -> None:
        """Take a library away again."""
        (self.libraries / library).unlink()

    def install_torch_npu(self, text: str) -> None:
        """Write the module."""
        (self.modules / "torch_npu.py").write_text(text)

    def install_device(self, *, devices: int = 1, start: str = "pass", runtime: str = CANN[0]):
        """Write a torch_npu that works, over so many devices."""
        self.install_torch_npu(MODULE.format(devices=devices, start=start, runtime=runtime))

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run Python on this machine."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("XLLM_", "ASCEND_"))}
        paths = [str(self.modules), *filter(None, [os.environ.get("PYTHONPATH")])]
        clean |= {"PYTHONPATH": ":".join(paths), "LD_LIBRARY_PATH": str(self.libraries)}
        clean["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # whatever else is installed here
        return subprocess.run(
            [sys.executable, *arguments],
            env=clean | env,
            cwd=REPOSITORY_ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def install_library(self, name: str, source: str, *links: str) -> None:
        """Compile a library from C++, which links others of this machine."""
        compiler = os.environ.get("CXX") or "c++"
        if shutil.which(compiler) is None:
            pytest.skip("needs a C++ compiler")
        path = self.libraries / name
        command = [compiler, "-x", "c++", "-", "-shared", "-fPIC", f"-Wl,-soname,{name}"]
        command += ["-o", str(path), f"-L{self.libraries}", "-Wl,--no-as-needed", "-xnone"]
        command += [f"-l:{link}" for link in links]
        subprocess.run(command, input=source, text=True, check=True)
