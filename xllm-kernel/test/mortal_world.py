"""Run the commands in processes of their own on the mortal operation, and read their reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import PACKAGE_ROOT

SITE = PACKAGE_ROOT / "test" / "mortal_site"
NAMED = ("--implementation", "cpu.plain.mortal")


@dataclass(frozen=True)
class Done:
    """What a process left behind; the report is empty where it wrote none."""

    code: int
    out: str
    err: str
    report: dict[str, Any]
    markdown: str

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["case_id"].removeprefix("mortal/"): row for row in self.report["rows"]}

    @property
    def states(self) -> dict[str, str]:
        return {name: row["status"] for name, row in self.rows.items()}


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of a process to which the mortal operation is all there is."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XLLM_KERNEL_", "MORTAL_"))}
    path = os.pathsep.join([str(SITE), str(PACKAGE_ROOT / "python")])
    names = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    kept.pop("PYTHONUNBUFFERED", None)
    return {**kept, "PYTHONPATH": path, "PATH": names, **variables}


def command(folder: Path, *options: str, kind: str = "numerics") -> list[str]:
    """Return a command line that leaves its report in a folder."""
    start = [sys.executable, "-m", f"xllm_kernel.{kind}", *NAMED]
    return [*start, "--output", str(folder / "r.json"), "--warmup", "1", *options]


def read(folder: Path, code: int, out: str = "", err: str = "") -> Done:
    """Read the report that a run left in a folder."""
    path = folder / "r.json"
    page = path.with_suffix(".md")
    report = json.loads(path.read_text()) if path.exists() else {}
    markdown = page.read_text() if page.exists() else ""
    return Done(code, out, err, report, markdown)


def run(folder: Path, *options: str, kind: str = "numerics", **variables: str) -> Done:
    """Run a command."""
    done = subprocess.run(
        command(folder, *options, kind=kind),
        capture_output=True,
        text=True,
        env=environment(**variables),
        cwd=folder,
        timeout=120,
        check=False,
    )
    return read(folder, done.returncode, done.stdout, done.stderr)
