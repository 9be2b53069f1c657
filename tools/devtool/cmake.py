"""CMake builds under build/ and the tests in them; knows no project."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from devtool.shell import BUILD, CPUS, alone, step
from devtool.suites import Suite, read_suite, report_path

if TYPE_CHECKING:
    from pathlib import Path


def configure(source: Path, directory: Path, *options: object) -> None:
    """Configure a build; a broken cache is thrown away."""
    command = ["cmake", "-S", source, "-B", directory, "-G", "Ninja", *options]
    title = f"Configure {directory.relative_to(BUILD.parent)}"
    if step(title, *command, check=False):
        shutil.rmtree(directory, ignore_errors=True)
        step(f"{title} afresh", *command)


def compile_all(title: str, directory: Path) -> None:
    """Build everything that a directory was configured for."""
    step(title, "cmake", "--build", directory, "--parallel", CPUS)


def run_ctest(name: str, source: Path, directory: Path, *options: object, only: str = ".") -> Suite:
    """Build a project's tests and run them, or ``only`` those of such names."""
    with alone():
        configure(source, directory, *options)
        compile_all(f"Build the tests, {name}", directory)
    report = report_path(name)
    command = ["ctest", "--test-dir", directory, "--output-on-failure", "--no-tests=error"]
    command += ["--parallel", CPUS, "--output-junit", report, "--tests-regex", only]
    return read_suite(name, step(f"Run the tests, {name}", *command, check=False), report)
