"""Python environments: made whole, recognised when they are, and the package in them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from devtool.shell import BUILD, PACKAGE, ROOT, DevError, environment, step

REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
VENV_NPU = ROOT / ".venv-npu"
MINIMAL = BUILD / "venv-minimal"
PEERS = BUILD / "venv-peers"
MUTATION = BUILD / "venv-mutation"
METADATA = ("pyproject.toml", "setup.py", "python/xllm_kernel/version.py")

# Run by an environment's own Python: is every file that pip installed still there, in full?
HEALTH = """
import csv, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
for record in site.glob("*.dist-info/RECORD"):
    for name, _, size in csv.reader(record.open()):
        assert not size or name.endswith(".pyc") or (site / name).stat().st_size == int(size), name
"""


def pip(venv: Path, *arguments: object) -> list[object]:
    """Return a pip command line."""
    return [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", *arguments]


def is_complete(venv: Path, key: str) -> bool:
    """Tell whether an environment's stamp fits, its Python runs and its files are all there."""
    stamp, python = venv / "complete", venv / "bin/python"
    if not (stamp.is_file() and stamp.read_text() == key and python.exists()):
        return False
    return subprocess.run([python, "-I", "-c", HEALTH], capture_output=True).returncode == 0


def ensure_venv(venv: Path, requirements: str, *bare: str) -> None:
    """Make an environment, unless it is complete; its stamp is written last.

    Args:
        venv: its folder.
        requirements: file of what to install, with all that it depends on.
        *bare: files of what to install then, without what it depends on.
    """
    files = sorted(REQUIREMENTS.glob("*.txt"))
    parts = [sys.version, sys.base_prefix, str(venv), *(file.read_text() for file in files)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    if is_complete(venv, key):
        return
    name = venv.relative_to(ROOT)
    (venv / "complete").unlink(missing_ok=True)
    if venv.exists():
        print(f"{name} is unfinished, damaged or out of date: making it anew", flush=True)
        shutil.rmtree(venv)
    python = os.path.realpath(sys.executable)  # never one that lies in an environment
    step(f"Create {name} with Python {platform.python_version()}", python, "-m", "venv", venv)
    refuse_cuda_torch(venv)
    install = pip(venv, "install", "--no-input", "--progress-bar", "off")
    step(f"Install packages into {name}", *install, "-r", REQUIREMENTS / requirements)
    for file in bare:
        title = f"Install {Path(file).stem} packages into {name}"
        step(title, *install, "--no-deps", "-r", REQUIREMENTS / file)
    (venv / "complete").write_text(key)


def installed(venv: Path, package: str) -> Path:
    """Return the folder of a package that an environment has."""
    (folder,) = venv.glob(f"lib/python3.*/site-packages/{package}")
    return folder


def refuse_cuda_torch(venv: Path) -> None:
    """Stop before pip fetches a CUDA build of torch that nobody asked for."""
    x86 = platform.system() == "Linux" and platform.machine() == "x86_64"
    if not x86 or os.environ.get("XLLM_DEV_CUDA_TORCH") == "1":
        return
    pinned = re.search(r"^torch==(\S+)", (REQUIREMENTS / "minimal.txt").read_text(), re.MULTILINE)
    command = [str(part) for part in pip(venv, "index", "versions", "torch")]
    listed = subprocess.run(command, capture_output=True, text=True, env=environment()).stdout
    if pinned and listed and f"{pinned[1]}+cpu" not in re.split(r"[\s,]+", listed):
        raise DevError(
            f"pip finds no CPU build of torch {pinned[1]} for Python {platform.python_version()},"
            " only a CUDA build of several gigabytes. Do one of these:\n"
            "  name an index of CPU builds, as PyTorch's own: PIP_EXTRA_INDEX_URL=... ./dev ...\n"
            "  use another Python, if pip finds one there: python3.11 dev ...\n"
            "  take the CUDA build: XLLM_DEV_CUDA_TORCH=1 ./dev ..."
        )


def install_editable(venv: Path) -> None:
    """Install the package, editable and pure, unless its metadata is as it was."""
    stamp = venv / "package"
    metadata = "".join((PACKAGE / name).read_text() for name in METADATA)
    if stamp.is_file() and stamp.read_text() == metadata:
        return
    install = pip(venv, "install", "--no-deps", "--no-build-isolation", "--editable", PACKAGE)
    step(f"Install xllm-kernel into {venv.name}, editable", *install)
    stamp.write_text(metadata)


def install_plain() -> None:
    """Install the package into the minimal environment as users do, from a clean copy."""
    source = BUILD / "package-source"
    shutil.rmtree(source, ignore_errors=True)
    built = shutil.ignore_patterns("build", "dist", "_build", "*.egg-info", "__pycache__")
    shutil.copytree(PACKAGE, source, ignore=built)
    options = ["--no-deps", "--no-build-isolation", "--force-reinstall"]
    step(
        f"Install xllm-kernel into {MINIMAL.relative_to(ROOT)}",
        *pip(MINIMAL, "install", *options, source),
    )


def install_peers() -> None:
    """Install each library to compare with, unless it is there; one that fails is tried again."""
    for file in sorted((REQUIREMENTS / "peers").glob("*.txt")):
        stamp, pins = PEERS / f"peer-{file.stem}", file.read_text()
        if stamp.is_file() and stamp.read_text() == pins:
            continue
        install = pip(PEERS, "install", "--no-input", "--progress-bar", "off", "--no-deps")
        if step(f"Install the peer {file.stem}", *install, "-r", file, check=False):
            print(f"Going on without {file.stem}.", flush=True)
        else:
            stamp.write_text(pins)
