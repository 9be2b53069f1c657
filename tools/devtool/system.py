"""What the system must have: Debian packages, installed where that is allowed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from devtool.shell import DevError, run, step


def missing_packages(tests: bool) -> list[str]:
    """Return the Debian packages whose commands, headers or modules are not there."""
    compiler = (os.environ.get("CXX") or "c++").split()[0]
    commands = {"cmake": "cmake", "ninja": "ninja-build", compiler: "g++"}
    missing = [package for command, package in commands.items() if not shutil.which(command)]
    headers = [Path(prefix, "include/gtest/gtest.h") for prefix in ("/usr", "/usr/local")]
    if tests and not any(header.is_file() for header in headers):
        missing.append("libgtest-dev")
    if not importlib.util.find_spec("ensurepip"):
        missing.append(f"python3.{sys.version_info.minor}-venv")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        missing.append(f"python3.{sys.version_info.minor}-dev")
    return missing


def require_packages(tests: bool = False) -> None:
    """Install the Debian packages that are missing, if allowed, or name the command that does."""
    missing = missing_packages(tests)
    if not missing:
        return
    install = ["install", "-y", "--no-install-recommends", *missing]
    wanted = f"missing: {' '.join(missing)}. Install, then run this again:\n"
    wanted += f"  sudo apt-get update && sudo apt-get {' '.join(install)}"
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    allowed = not root or (
        shutil.which("sudo") and not run([*root, "true"], stderr=subprocess.DEVNULL)
    )
    if not shutil.which("apt-get") or not allowed:
        raise DevError(wanted)
    apt = [
        *root,
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=99",
    ]
    step("Finish earlier installations", *root, "dpkg", "--configure", "-a")
    step("Update the list of Debian packages", *apt, "update")
    step(f"Install {' '.join(missing)}", *apt, *install)
    if missing_packages(tests):
        raise DevError(f"installed, and still {wanted}")
