"""``ascend-sim/run``: what the command sees, what is missing, and whose exit status it is."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY_ROOT

SCRIPT = REPOSITORY_ROOT / "ascend-sim" / "run"


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """The process's environment, with an empty simulator and a Python environment to point at."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libascendcl.so").touch()
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho the simulated python\n")
    python.chmod(0o755)
    places = {"ASCEND_SIM_LIBRARIES": tmp_path / "lib", "ASCEND_SIM_VENV": tmp_path / "venv"}
    return {**os.environ, **{name: str(path) for name, path in places.items()}}


def _run(env: dict[str, str], *command: str, cwd: Path | None = None):
    return subprocess.run(
        [str(SCRIPT), *command], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_run_puts_environment_and_libraries_first(world, tmp_path: Path) -> None:
    world |= {"LD_LIBRARY_PATH": "/theirs", "ASCEND_HOME_PATH": "/usr/local/Ascend"}
    world |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    names = (
        "PATH%%:*",
        "LD_LIBRARY_PATH",
        "ASCEND_HOME_PATH-none",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
    )
    shown = " ".join(f"${{{name}}}" for name in names)
    done = _run(world, "sh", "-c", f"echo {shown}", cwd=tmp_path)
    assert done.stdout.split() == [f"{tmp_path}/venv/bin", f"{tmp_path}/lib:/theirs", "none", "0"]
    assert _run(world, "python").stdout == "the simulated python\n"


def test_run_without_libraries_of_others_adds_no_empty_path(world, tmp_path: Path) -> None:
    """An empty entry would mean the current directory."""
    world.pop("LD_LIBRARY_PATH", None)
    done = _run(world, "sh", "-c", "echo $LD_LIBRARY_PATH")
    assert done.stdout.strip() == f"{tmp_path}/lib"


def test_run_takes_relative_places_from_where_it_is_called(world, tmp_path: Path) -> None:
    world["ASCEND_SIM_LIBRARIES"] = "lib"
    done = _run(world, "sh", "-c", "cd /; echo $LD_LIBRARY_PATH", cwd=tmp_path)
    assert done.stdout.startswith(f"{tmp_path}/lib")


@pytest.mark.parametrize(
    ("missing", "named"),
    [("lib/libascendcl.so", "libascendcl.so"), ("venv/bin/python", "bin/python")],
)
def test_run_names_what_is_missing_and_the_command_that_makes_it(
    world, tmp_path: Path, missing: str, named: str
) -> None:
    (tmp_path / missing).unlink()
    done = _run(world, "echo", "started")
    assert (done.returncode, done.stdout) == (3, "")
    assert named in done.stderr
    assert "run ./dev npu-sim" in done.stderr


def test_run_without_a_command_is_wrong_usage(world) -> None:
    done = _run(world)
    assert done.returncode == 2
    assert "a command is needed" in done.stderr


def test_run_passes_exit_status_and_signals_on(world) -> None:
    assert _run(world, "sh", "-c", "exit 7").returncode == 7
    child = subprocess.Popen([str(SCRIPT), "sleep", "20"], env=world)
    with child:
        # exec has happened once the process is called what the command is called
        name = Path(f"/proc/{child.pid}/comm")
        while name.read_text().strip() != "sleep":
            assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM
