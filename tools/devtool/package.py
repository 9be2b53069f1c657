"""Builds and test runs of the package: C++ in its variants, Python in its environments."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from devtool.cmake import run_ctest
from devtool.shell import BUILD, PACKAGE, environment, run, step
from devtool.suites import Suite, read_suite, report_path

CPP = ("-DCMAKE_BUILD_TYPE=Release", "-DXLLM_KERNEL_BUILD_TESTS=ON")


def run_cpp(name: str, folder: str, *options: object, only: str = ".") -> Suite:
    """Build the C++ tests in a folder of build/ and run them, or ``only`` those of such names."""
    return run_ctest(name, PACKAGE, BUILD / folder, *CPP, *options, only=only)


def run_cpp_for_arm() -> Suite:
    """Build the C++ tests for 64-bit Arm and run them under emulation, where that is installed."""
    name, packages = "C++, aarch64", "g++-aarch64-linux-gnu and qemu-user"
    if not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-aarch64")):
        return Suite(name, 0, 0, Counter({f"needs the Debian packages {packages}": 1}))
    toolchain = PACKAGE / "cmake/toolchains/aarch64-linux-gnu.cmake"
    return run_cpp(name, "cpp-aarch64", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")


def run_cpp_sanitized() -> list[Suite]:
    """Run the C++ tests under the sanitizers, and the fuzzers, where Clang is installed."""
    memory, threads = (f"-DXLLM_KERNEL_SANITIZE={one}" for one in ("address,undefined", "thread"))
    suites = [
        run_cpp("C++, ASan, UBSan", "cpp-asan", memory),
        run_cpp("C++, TSan", "cpp-tsan", threads, only="[Tt]hread|Spread|pool"),
    ]
    clang, fuzzer = shutil.which("clang++-16"), "/usr/lib/llvm-16/lib/clang/16/include/fuzzer"
    if not (clang and Path(fuzzer).is_dir()):
        reason = "needs the Debian packages clang-16 and libclang-rt-16-dev"
        return [*suites, Suite("C++, fuzzers", 0, 0, Counter({reason: 1}))]
    options = ["-DXLLM_KERNEL_BUILD_TESTS=OFF", "-DXLLM_KERNEL_BUILD_FUZZERS=ON", memory]
    options.append(f"-DCMAKE_CXX_COMPILER={clang}")
    return [*suites, run_cpp("C++, fuzzers", "cpp-fuzz", *options)]


def run_python(name: str, venv: Path, *arguments: str) -> Suite:
    """Run the Python tests in an environment, their output on the terminal."""
    print(f"Run the tests, {name} ...", flush=True)
    report = report_path(name)
    command = ["python", "-m", "pytest", "-q", "xllm-kernel/test", "--ignore=xllm-kernel/test/npu"]
    command += [f"--junitxml={report}", "-o", f"cache_dir={BUILD / 'pytest'}", *arguments]
    return read_suite(name, run(command, env=environment(venv)), report)


def build_ceilings() -> Path:
    """Build the probe of copies and return its library."""
    directory, target = BUILD / "ceilings", "xllm_kernel_ceilings"
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DXLLM_KERNEL_BUILD_CEILINGS=ON"]
    step("Configure the ceilings", "cmake", "-S", PACKAGE, "-B", directory, *options)
    step("Build the ceilings", "cmake", "--build", directory, "--target", target)
    return directory / f"bench/ceilings/lib{target}.so"
