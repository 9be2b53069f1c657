"""Shared code names no operator: the architecture's rule, checked on the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import PACKAGE_ROOT

from xllm_kernel import catalog

# Where an operator's name is data for discovery or the public interface, not logic.
INTEGRATION_POINTS = {
    "python/xllm_kernel/__init__.py",
    "python/xllm_kernel/catalog.py",
    "python/xllm_kernel/ops/__init__.py",
    "python/xllm_kernel/numerics/catalog.py",
}
PEERS = "bench/peers/libraries/"  # a file says how one library's operators are called
BUILD_SCRIPTS = {"setup.py", "CMakeLists.txt"}  # their source lists are integration points too
SUFFIXES = {".py", ".h", ".cpp", ".cmake", ".txt", ".toml"}


def _spellings(operation: str) -> re.Pattern[str]:
    """Match ``some_op``, ``SomeOp``, ``SOME_OP``, ``someop``, ``Some-Op``."""
    return re.compile("[_ -]?".join(operation.split("_")), re.IGNORECASE)


def _own_files(operation: str, path: Path) -> bool:
    """Say whether a file is an operator's: its folder, its file, or a part of it by name."""
    stems = [part.partition(".")[0] for part in path.parts]
    return any(stem == operation or stem.startswith(operation + "_") for stem in stems)


def shared_files(root: Path) -> list[Path]:
    """Return the sources of the package that belong to no one operator."""
    operations = catalog.operations()
    found = []
    for folder in ("python/xllm_kernel", "csrc", "include", "cmake", "bench"):
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root)
            if path.suffix not in SUFFIXES or "_build" in relative.parts:
                continue
            if not any(_own_files(name, relative) for name in operations):
                found.append(path)
    return found


def mentions(root: Path) -> list[str]:
    """Return every line of a shared file that names an operator, as ``file:line: text``."""
    patterns = [_spellings(name) for name in catalog.operations()]
    lines = []
    for path in shared_files(root):
        relative = path.relative_to(root).as_posix()
        integrates = relative in INTEGRATION_POINTS or relative.startswith(PEERS)
        if integrates or path.name in BUILD_SCRIPTS:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if any(p.search(line) for p in patterns):
                lines.append(f"{relative}:{number}: {line.strip()}")
    return lines


def test_shared_files_name_no_operator() -> None:
    names = {p.name for p in shared_files(PACKAGE_ROOT)}
    assert {"registry.py", "runtime.py", "selection.py", "verify.py", "report.py"} <= names
    assert {"row_kernels.h", "row_scale.h", "operands.h", "variants.h", "clauses.cpp"} <= names
    assert {"instructions.py", "count.h", "kernels.h"} <= names
    assert {"rows.h", "row_clauses.py", "backend_support.py"} <= names
    assert mentions(PACKAGE_ROOT) == []


@pytest.mark.parametrize("spelling", ["rms_norm", "RmsNorm", "RMSNorm", "RMS_NORM", "rms-norm"])
def test_a_planted_name_is_found(tmp_path: Path, spelling: str) -> None:
    planted = tmp_path / "python/xllm_kernel/runtime.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"x = 1\nif name == '{spelling}': pass\n")
    assert mentions(tmp_path) == [f"python/xllm_kernel/runtime.py:2: if name == '{spelling}': pass"]
