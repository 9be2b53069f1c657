"""The gate on instruction counts, around a false valgrind and records that are known."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import PACKAGE_ROOT

SCRIPT = PACKAGE_ROOT / "bench/instructions.py"

# Writes a dump for each of `counts`, as callgrind does, and one more at its end; then runs the
# program, its last argument, whose output is the names.
FALSE_VALGRIND = """#!/bin/sh
for argument; do
    case $argument in --callgrind-out-file=*) out=${argument#*=};; esac
done
index=1
for count in $COUNTS; do
    printf 'desc: Trigger: --dump-after=xllm_kernel_counted_region\\ntotals: %s\\n' \\
        "$count" > "$out.$index"
    index=$((index + 1))
done
printf 'desc: Trigger: Program termination\\ntotals: 0\\n' > "$out.$index"
exec "$argument"
"""


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def gate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("instructions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["instructions"] = module  # where its dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


class World:
    """A folder with a program of two calls a level, a false valgrind and a record."""

    def __init__(self, folder: Path) -> None:
        self.record = folder / "record.json"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.path = f"{self.bin}:{os.environ['PATH']}"
        _script(self.bin / "valgrind", FALSE_VALGRIND)
        names = 'echo "op/$XLLM_KERNEL_SIMD_LEVEL/a"\necho "op/$XLLM_KERNEL_SIMD_LEVEL/b"\n'
        self.program = _script(folder / "program", f"#!/bin/sh\n{names}")

    def run(self, verb: str, counts: str, compiler: str = "GNU 12", build: str = "Release"):
        options = ["--record", self.record, "--compiler", compiler, "--build", build]
        options += ["--library", "1.2.3", "--update", "how to update"]
        command = [sys.executable, SCRIPT, verb, *options, self.program]
        env = os.environ | {"PATH": self.path, "COUNTS": counts}
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    assert world.run("record", "1000 500").returncode == 0
    return world


def test_record_holds_counts_of_both_levels_and_what_they_are_of(world: World) -> None:
    assert json.loads(world.record.read_text()) == {
        "compiler": "GNU 12",
        "build": "Release",
        "library": "1.2.3",
        "counts": {
            "op/avx2/a": 1000,
            "op/avx2/b": 500,
            "op/scalar/a": 1000,
            "op/scalar/b": 500,
        },
    }


@pytest.mark.parametrize("counts", ["1000 500", "1020 510", "980 490"])
def test_check_within_two_per_cent_passes(world: World, counts: str) -> None:
    run = world.run("check", counts)
    assert run.returncode == 0, run.stdout
    assert "4 calls within 2 %" in run.stdout


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ("1000 511", "op/avx2/b: 511 instructions, recorded 500 (+2.2 %)"),
        ("979 500", "op/scalar/a: 979 instructions, recorded 1000 (-2.1 %)"),
    ],
)
def test_check_beyond_two_per_cent_either_way_fails_with_the_command(
    world: World, counts: str, sentence: str
) -> None:
    before = world.record.read_text()
    run = world.run("check", counts)
    assert run.returncode == 1
    assert sentence in run.stdout
    assert "2 of 4 calls" in run.stdout
    assert run.stdout.endswith("commit it:\n  how to update\n")
    assert world.record.read_text() == before


def test_check_call_that_came_or_went_fails(world: World) -> None:
    fields = json.loads(world.record.read_text())
    fields["counts"]["op/avx2/c"] = fields["counts"].pop("op/avx2/a")
    world.record.write_text(json.dumps(fields))
    run = world.run("check", "1000 500")
    assert run.returncode == 1
    assert "op/avx2/a: not recorded" in run.stdout
    assert "op/avx2/c: no longer counted" in run.stdout


@pytest.mark.parametrize(
    ("what", "value"), [("compiler", "GNU 13"), ("build", "Release -fsanitize=address")]
)
def test_check_other_compiler_or_build_skips_with_reason(
    world: World, what: str, value: str
) -> None:
    run = world.run("check", "9 9", **{what: value})
    assert run.returncode == 77
    assert f": Skipped\nnot comparable: the record is of {what}" in run.stdout
    assert value in run.stdout


def test_check_without_valgrind_skips_with_reason(world: World) -> None:
    (world.bin / "valgrind").unlink()
    world.path = str(world.bin)
    run = world.run("check", "1000 500")
    assert run.returncode == 77
    assert ": Skipped\nneeds the Debian package valgrind" in run.stdout


@pytest.mark.parametrize("counts", ["1000", "1000 500 7", "1000 0", ""])
def test_check_names_without_a_count_is_an_error(world: World, counts: str) -> None:
    run = world.run("check", counts)
    assert run.returncode == 1
    assert "must print a name for each counted call" in run.stderr


def test_check_program_that_fails_is_an_error(world: World) -> None:
    world.program.write_text("#!/bin/sh\necho cause >&2\nexit 3\n")
    run = world.run("check", "1000 500")
    assert run.returncode == 1
    assert "program failed under valgrind" in run.stderr
    assert "cause" in run.stderr


def test_committed_record_is_as_the_script_writes_it_on_the_leg_that_compares(
    gate: ModuleType, tmp_path: Path
) -> None:
    path = PACKAGE_ROOT / "bench/instructions.json"
    record = gate.Record.read(path)
    record.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()
    # What a bare Debian 12 compiles with; another compiler or build would skip there.
    assert (record.compiler, record.build) == ("GNU 12", "Release")
    assert {name.split("/")[1] for name in record.counts} == set(gate.LEVELS)
