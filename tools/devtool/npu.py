"""The NPU paths over the simulated Ascend runtime: wheels, libraries, bridge, and their tests.

No NPU and no CANN is needed or looked for; `evidence.py` is for machines that have them.
"""

from __future__ import annotations

import platform
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from devtool.cmake import compile_all, configure, run_ctest
from devtool.environments import VENV_NPU, ensure_venv, install_editable, installed
from devtool.legs import Leg
from devtool.shell import (
    BUILD,
    CPUS,
    PACKAGE,
    ROOT,
    SIMULATOR,
    DevError,
    alone,
    environment,
    run,
    step,
)
from devtool.suites import Suite, read_suite, report_path
from devtool.system import require_packages

if TYPE_CHECKING:
    from pathlib import Path

PYTHONS = ((3, 11), (3, 12))  # for which every wheel of requirements/npu-wheels.txt exists
LIBRARIES = BUILD / "ascend-sim"
OWN, DEVICE = "ascend-sim", "NPU, simulated"  # legs
NATIVE, XLITE = "npu.xllm_native.rms_norm", "npu.xlite.rms_norm"
TESTS = {
    NATIVE: "xllm-kernel/test/npu/test_kernel_rms_norm_npu.py",
    XLITE: "xllm-kernel/test/npu/test_kernel_xlite_rms_norm_npu.py",
}
RELEASE = "-DCMAKE_BUILD_TYPE=Release"
# Lines for a sanitizer's reports, and no more: compiling is most of the time, running is little.
SANITIZE = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1")
# Name, folder of build/, and what -fsanitize= is given.
SANITIZED = (
    ("ascend-sim, ASan, UBSan", "ascend-sim-asan", "address,undefined"),
    ("ascend-sim, TSan", "ascend-sim-tsan", "thread"),
)


def short_name(implementation: str) -> str:
    """Return the solution of an implementation, for titles and file names."""
    return implementation.split(".")[1].removeprefix("xllm_")


def unavailable() -> str | None:
    """Return why the wheels cannot be installed here, or None."""
    found = f"{platform.system()} {platform.machine()} with Python {platform.python_version()}"
    fits = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    if fits and sys.version_info[:2] in PYTHONS:
        return None
    pythons = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return f"torch-npu and xlite have wheels for x86-64 Linux with Python {pythons}, not {found}"


def prepare() -> None:
    """Make .venv-npu, the simulated libraries, the stand-in host and the bridge to xlite."""
    reason = unavailable()
    if reason is not None:
        raise DevError(reason)
    require_packages(tests=True)
    with alone():
        _prepare_runtime()
        _prepare_package()


def _prepare_runtime() -> None:
    """Make the environment, the simulated libraries and the stand-in host."""
    with alone():
        ensure_venv(VENV_NPU, "npu-sim.txt", "npu-wheels.txt")
        configure(SIMULATOR, LIBRARIES, RELEASE, "-DASCEND_SIM_BUILD_TESTS=OFF", *_headers())
        compile_all("Build the simulated Ascend runtime", LIBRARIES)
        host = LIBRARIES / "host"
        torch = installed(VENV_NPU, "torch")
        configure(PACKAGE / "test/npu/host", host, f"-DXLLM_KERNEL_TORCH_DIR={torch}")
        compile_all("Build the stand-in host", host)


def _prepare_package() -> None:
    """Install the package into the environment, and build the bridge, both in place."""
    with alone():
        install_editable(VENV_NPU)
        _build_bridge()


def _headers() -> list[str]:
    """Return the option that names the runtime's headers, which come with torch_npu."""
    headers = installed(VENV_NPU, "torch_npu") / "include/third_party/acl/inc"
    return [f"-DASCEND_SIM_ACL_INCLUDE={headers}"]


def _build_bridge() -> None:
    """Build the bridge to xlite's launchers in place, whatever revision the wheel is of."""
    options = {"XLLM_KERNEL_BUILD_XLITE": "1", "XLLM_KERNEL_XLITE_ALLOW_REVISION": "1"}
    # The build imports no torch_npu, which would need the libraries.
    options |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "MAX_JOBS": CPUS}
    command = [VENV_NPU / "bin/python", "setup.py", "build_ext", "--inplace"]
    env = environment(VENV_NPU, **options)
    step("Build the bridge to xlite", *command, cwd=PACKAGE, env=env)


def configure_for_lint() -> dict[str, list[object]]:
    """Configure what a linter reads; return, by name, a database and which of its files.

    The bridge, the host and the simulator's exported symbols need the wheels' headers; without
    .venv-npu they are left out, and said so.
    """
    simulator = BUILD / "lint-ascend-sim"
    if not (VENV_NPU / "complete").is_file():
        print("Going on without what needs the NPU's wheels: ./dev npu-sim installs them.")
        configure(SIMULATOR, simulator)
        return {"clang_tidy_simulator": [simulator]}
    configure(SIMULATOR, simulator, *_headers())
    torch = f"-DXLLM_KERNEL_TORCH_DIR={installed(VENV_NPU, 'torch')}"
    launchers = sorted(installed(VENV_NPU, "xlite").glob("lib/libxlite_kernels_*f16_npu.so"))
    bridge, host = BUILD / "lint-xlite", BUILD / "lint-host"
    options = [f"-DXLLM_KERNEL_TORCH_NPU_DIR={installed(VENV_NPU, 'torch_npu')}"]
    options += [f"-DXLLM_KERNEL_LAUNCHERS={';'.join(map(str, launchers))}", torch]
    configure(PACKAGE, bridge, "-DXLLM_KERNEL_BUILD_XLITE=ON", *options)
    configure(PACKAGE / "test/npu/host", host, torch)
    return {
        "clang_tidy_simulator": [simulator],
        "clang_tidy_bridge": [bridge, "csrc/xlite/"],
        "clang_tidy_host": [host],
    }


def legs(package: str) -> list[Leg]:
    """Return the simulator's own tests, plain and sanitized, and the device's tests over it.

    Args:
        package: the leg that tests the package in place, where the bridge is then built.
    """
    own = [Leg(OWN, _run_plain)]
    for name, folder, sanitizers in SANITIZED:
        options = (*SANITIZE, f"-DASCEND_SIM_SANITIZE={sanitizers}")
        # The runtime's headers are installed by then.
        run_it = partial(_run_own, name, BUILD / folder, *options)
        own.append(Leg(name, run_it, after=(OWN,)))
    return [*own, Leg(DEVICE, _run_device_tests, after=(OWN, package))]


def _run_plain() -> list[Suite]:
    """Prepare what every other leg here needs, and run the simulator's own tests."""
    if unavailable() is None:
        _prepare_runtime()
    return _run_own(OWN, LIBRARIES, RELEASE)


def _run_own(name: str, directory: Path, *options: object) -> list[Suite]:
    """Run the simulator's own tests; those of its exported symbols where the headers are."""
    headers = _headers() if unavailable() is None else []
    tests = ["-DASCEND_SIM_BUILD_TESTS=ON", *headers]
    return [run_ctest(name, SIMULATOR, directory, *options, *tests)]


def _run_device_tests() -> list[Suite]:
    """Run torch_npu's calls, each backend bound to it, then those that bind nothing or children.

    One process a backend, one after the other.
    """
    reason = unavailable()
    if reason is not None:
        return [Suite(DEVICE, 0, 0, Counter({reason: 1}))]
    _prepare_package()
    suites = [_run_pytest(f"{DEVICE}, torch_npu", ["ascend-sim/test/torch_npu_smoke.py"])]
    for implementation, file in TESTS.items():
        name = f"{DEVICE}, {short_name(implementation)}"
        suites.append(_run_pytest(name, [file], XLLM_KERNEL_OVERRIDE_RMS_NORM=implementation))
    folder = PACKAGE / "test/npu"
    every = sorted(str(path.relative_to(ROOT)) for path in folder.glob("test_*.py"))
    others = [file for file in every if file not in TESTS.values()]
    return [*suites, _run_pytest(f"{DEVICE}, others", others)]


def _run_pytest(name: str, files: list[str], **variables: str) -> Suite:
    """Run files of tests over the simulator, in one process."""
    print(f"Run the tests, {name} ...", flush=True)
    report = report_path(name)
    command = [SIMULATOR / "run", "python", "-m", "pytest", "-q", *files]
    command += [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest'}"]
    return read_suite(name, run(command, env=environment(None, **variables)), report)
