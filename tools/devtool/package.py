"""Builds and test runs of the package: C++ in its variants, Python in its environments."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from devtool.cmake import run_ctest
from devtool.legs import Leg
from devtool.shell import BUILD, PACKAGE, environment, run
from devtool.suites import Suite, read_suite, report_path

CPP = ("-DCMAKE_BUILD_TYPE=Release", "-DXLLM_KERNEL_BUILD_TESTS=ON")


def run_cpp(name: str, folder: str, *options: object, only: str = ".") -> Suite:
    """Build the C++ tests in a folder of build/ and run them, or ``only`` those of such names."""
    return run_ctest(name, PACKAGE, BUILD / folder, *CPP, *options, only=only)


def cpp_leg(name: str, folder: str, *options: object, only: str = ".") -> Leg:
    """Return the leg of such a build and run."""
    return Leg(name, lambda: [run_cpp(name, folder, *options, only=only)])


def cpp_legs() -> list[Leg]:
    """Return the C++ tests' legs: as they are, for Arm, under the sanitizers, and the fuzzers."""
    memory, threads = (f"-DXLLM_KERNEL_SANITIZE={one}" for one in ("address,undefined", "thread"))
    return [
        cpp_leg("C++", "cpp"),
        Leg("C++, aarch64", lambda: [run_cpp_for_arm("C++, aarch64")]),
        cpp_leg("C++, ASan, UBSan", "cpp-asan", memory),
        cpp_leg("C++, TSan", "cpp-tsan", threads, only="[Tt]hread|Spread|pool"),
        Leg("C++, fuzzers", lambda: [run_fuzzers("C++, fuzzers", memory)]),
    ]


def run_cpp_for_arm(name: str) -> Suite:
    """Build the C++ tests for 64-bit Arm and run them under emulation, where that is installed."""
    packages = "g++-aarch64-linux-gnu and qemu-user"
    if not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64")):
        return Suite(name, 0, 0, Counter({f"needs the Debian packages {packages}": 1}))
    toolchain = PACKAGE / "cmake/toolchains/aarch64-linux-gnu.cmake"
    return run_cpp(name, "cpp-aarch64", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")


def run_fuzzers(name: str, *options: object) -> Suite:
    """Build the fuzzers and run each for a while, where Clang is installed."""
    clang, fuzzer = shutil.which("clang++-16"), "/usr/lib/llvm-16/lib/clang/16/include/fuzzer"
    if not (clang and Path(fuzzer).is_dir()):
        reason = "needs the Debian packages clang-16 and libclang-rt-16-dev"
        return Suite(name, 0, 0, Counter({reason: 1}))
    fuzzers = ["-DXLLM_KERNEL_BUILD_TESTS=OFF", "-DXLLM_KERNEL_BUILD_FUZZERS=ON"]
    fuzzers.append(f"-DCMAKE_CXX_COMPILER={clang}")
    return run_cpp(name, "cpp-fuzz", *fuzzers, *options)


def run_python(name: str, venv: Path, *arguments: str) -> Suite:
    """Run the Python tests in an environment, their output on the terminal.

    Threads that wait sleep: beside another leg they would spin in its place.
    """
    print(f"Run the tests, {name} ...", flush=True)
    report = report_path(name)
    command = ["python", "-m", "pytest", "-q", "xllm-kernel/test", "--ignore=xllm-kernel/test/npu"]
    command += [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest'}", *arguments]
    env = environment(venv, OMP_WAIT_POLICY="passive")
    return read_suite(name, run(command, env=env), report)
