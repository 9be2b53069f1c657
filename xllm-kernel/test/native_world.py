"""A copy of the package's tree that a test may damage, build and run, apart from the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import PACKAGE_ROOT

_COPIED = (
    "CMakeLists.txt",
    "bench/ceilings",
    "cmake",
    "csrc",
    "include",
    "python",
    "setup.py",
    "pyproject.toml",
)


class NativeWorld:
    """The sources and the Python package in a folder of their own.

    Attributes:
        root: the copied package root.
        build_folder: where the in-place build puts library and marker module.
    """

    def __init__(self, folder: Path, *, with_build: bool) -> None:
        """Copy the tree; ``with_build`` takes the real build along."""
        self.root = folder / "xllm-kernel"
        self.root.mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__", *([] if with_build else ["_build"]))
        for name in (*_COPIED, "README.md"):
            source = PACKAGE_ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=ignored)
            else:
                shutil.copy2(source, self.root / name)
        self.build_folder = self.root / "python" / "xllm_kernel" / "_build"
        self.library = self.build_folder / "libxllm_kernel_torch.so"

    @property
    def has_fastcall(self) -> bool:
        """Whether the builtins were built too."""
        return (self.build_folder / "fastcall.py").is_file()

    def run(
        self, *arguments: str, env: dict[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run Python over this copy of the package, without overrides from outside."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("XLLM_KERNEL_")}
        environment |= {"PYTHONPATH": str(self.root / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment | (env or {}),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def build(self) -> None:
        """Build the kernels in place, as the package's README says."""
        done = self.run(
            "setup.py", "build_ext", "--inplace", env={"XLLM_KERNEL_BUILD_SIMD": "1"}, timeout=600
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def fault(self, *replacements: tuple[str, str, str]) -> Iterator[None]:
        """Replace text in source files, build, and put everything back afterwards.

        Args:
            *replacements: file relative to ``csrc/simd``, text that stands there, text instead.
        """
        originals = {}
        for name, old, new in replacements:
            path = self.root / "csrc" / "simd" / name
            text = path.read_text()
            assert old in text, f"{name} no longer holds what this fault replaces: {old}"
            originals.setdefault(path, text)
            path.write_text(text.replace(old, new))
        try:
            self.build()
            yield
        finally:
            for path, text in originals.items():
                path.write_text(text)
