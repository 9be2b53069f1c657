"""Installations to try: real packages linked into a folder, some left out, some damaged."""

from __future__ import annotations

import json
import shutil
import sysconfig
from collections.abc import Collection
from pathlib import Path

from processes import REPOSITORY_ROOT, Command

SITE = Path(sysconfig.get_path("purelib"))
SOURCES = REPOSITORY_ROOT / "xllm-kernel/python/xllm_kernel"


def copy_package(folder: Path, ignore: Collection[str] = ()) -> Path:
    """Copy this package without its sources in C++ and return the copy."""
    copy = folder / "python/xllm_kernel"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__", *ignore))
    return copy


class World:
    """A folder with everything that Python may import in it beyond its own library."""

    def __init__(self, folder: Path, *, without: Collection[str] = (), bridge: bool = True) -> None:
        """Link what this environment has.

        Args:
            folder: empty.
            without: distributions to leave out.
            bridge: whether the package has its xlite bridge.
        """
        self.site = folder / "site"
        self.site.mkdir(parents=True)
        for entry in SITE.iterdir():
            if entry.name.partition("-")[0] not in without and not entry.name.endswith(".pth"):
                (self.site / entry.name).symlink_to(entry)
        # Not beside its sources, whose hash would be one more thing to fit.
        self.package = copy_package(folder)
        self.marker = self.package / "_build/xlite.py"
        if not bridge:
            self.marker.unlink()

    def own_copy(self, name: str) -> Path:
        """Make a package of the environment one that may be damaged, and return its folder."""
        path = self.site / name
        path.unlink()
        shutil.copytree(SITE / name, path)
        return path

    def rewrite_manifest(self, old: str, new: str) -> None:
        """Replace text in what the build recorded."""
        text = self.marker.read_text()
        assert old in text, f"{self.marker} no longer holds {old}"
        self.marker.write_text(text.replace(old, new))

    def command(self, *arguments: str, **environment: str | None) -> Command:
        """Return a command line of Python's that runs in this world."""
        settings: dict[str, str | None] = {
            "PYTHONPATH": f"{self.package.parent}:{self.site}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "XLLM_KERNEL_OVERRIDE_RMS_NORM": None,
        }
        return Command(("-S", *arguments), settings | environment)


def flip_last_byte(path: Path) -> None:
    """Damage a file and keep its size."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)


def receipt(text: str) -> dict:
    """Return the receipt of RMSNorm from what ``explain --json`` printed."""
    return json.loads(text)["rms_norm"]
