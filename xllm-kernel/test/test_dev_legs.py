"""Legs of `./dev test`: two at once, whole outputs, failures that stop nobody, and interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY_ROOT

sys.path.insert(0, str(REPOSITORY_ROOT / "tools"))

from devtool import legs, shell
from devtool.legs import Leg, run_legs
from devtool.shell import DevError
from devtool.suites import Suite

TOOLS = REPOSITORY_ROOT / "tools"
PATIENCE_S = 60

INTERRUPTED = """
import signal, subprocess, sys
from pathlib import Path
from devtool import shell, verbs
from devtool.legs import Leg, run_legs
folder = Path(sys.argv[1])
shell.BUILD = folder
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, verbs.interrupt)

def leg(name):
    program = f"echo $$ > {folder}/{name}.new; mv {folder}/{name}.new {folder}/{name}; sleep 300"
    return Leg(name, lambda: [shell.run(["sh", "-c", program])])

try:
    run_legs([leg("one"), leg("two"), leg("three")])
except shell.Interrupted as interruption:
    sys.exit(128 + interruption.args[0])
"""


@pytest.fixture(autouse=True)
def _logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "BUILD", tmp_path)


def _passing(name: str, passed: int = 1) -> Suite:
    return Suite(name, passed, 0, Counter())


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def _meeting(folder: Path, mine: str, other: str) -> Callable[[], list[Suite]]:
    """Return what ends only once the other runs too."""

    def run() -> list[Suite]:
        (folder / mine).touch()
        _wait_for((folder / other).exists)
        return [_passing(mine)]

    return run


def test_two_legs_run_at_once_and_counts_come_in_order(tmp_path: Path) -> None:
    suites = run_legs(
        [
            Leg("one", _meeting(tmp_path, "one", "two")),
            Leg("two", _meeting(tmp_path, "two", "one")),
            Leg("three", lambda: [_passing("three a"), _passing("three b", 5)]),
        ]
    )
    assert [suite.name for suite in suites] == ["one", "two", "three a", "three b"]
    assert suites[-1] == _passing("three b", 5)


def test_no_more_than_two_run_at_once(tmp_path: Path) -> None:
    def run(name: str) -> list[Suite]:
        (tmp_path / f"{name}.runs").touch()
        end, seen = time.monotonic() + 0.3, 0
        while time.monotonic() < end:  # long enough for one more to begin, if it may
            seen = max(seen, len(list(tmp_path.glob("*.runs"))))
            time.sleep(0.01)
        (tmp_path / f"{name}.runs").unlink()
        return [_passing(name, seen)]

    suites = run_legs([Leg(str(n), lambda n=n: run(str(n))) for n in range(3)])  # type: ignore[misc]
    assert max(suite.passed for suite in suites) <= legs.AT_ONCE


def test_leg_begins_after_those_it_waits_for(tmp_path: Path) -> None:
    def first() -> list[Suite]:
        time.sleep(0.05)
        (tmp_path / "made").touch()
        raise DevError("made, and failed")

    def second() -> list[Suite]:
        return [_passing("second", int((tmp_path / "made").exists()))]

    suites = run_legs([Leg("second", second, after=("first",)), Leg("first", first)])
    assert [(suite.passed, suite.failed) for suite in suites] == [(1, 0), (0, 1)]


def test_legs_that_wait_for_one_another_are_an_error() -> None:
    with pytest.raises(DevError, match=r"wait for one another: \['a', 'b'\]"):
        run_legs([Leg("a", list, after=("b",)), Leg("b", list, after=("a",))])


def test_output_of_a_leg_and_its_children_is_printed_whole(tmp_path: Path, capsys) -> None:
    def run(mine: str, other: str) -> list[Suite]:
        for line in range(3):
            print(f"{mine} {line}")
            subprocess.run(["sh", "-c", f"echo {mine} {line} of a child"], check=True)
            if line == 1:
                _meeting(tmp_path, mine, other)()
        return [_passing(mine)]

    run_legs([Leg("one", lambda: run("one", "two")), Leg("two", lambda: run("two", "one"))])
    printed = capsys.readouterr().out
    for name in ("one", "two"):
        lines = [f"{name} {line}{end}" for line in range(3) for end in ("", " of a child")]
        assert f"===== {name} =====\n" + "\n".join(lines) + f"\n===== {name}: " in printed


def _broken() -> list[Suite]:
    raise KeyError("a fault of the tool")


def _refused() -> list[Suite]:
    raise DevError("failed: Build the tests")


def _killed() -> list[Suite]:
    os.kill(os.getpid(), signal.SIGKILL)
    return [_passing("never")]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (_broken, ["Traceback", "KeyError: 'a fault of the tool'", "exit status 1"]),
        (_refused, ["failed: Build the tests", "exit status 1"]),
        (_killed, ["exit status -9"]),
    ],
)
def test_leg_that_ends_without_counts_is_a_failure_and_others_report(run, words, capsys) -> None:
    suites = run_legs([Leg("bad", run), Leg("good", lambda: [_passing("good")])])
    assert [(s.name, s.passed, s.failed) for s in suites] == [("bad", 0, 1), ("good", 1, 0)]
    printed = capsys.readouterr().out
    assert all(word in printed for word in [*words, "bad: ended without counts"])


def test_heartbeat_shows_what_runs_and_its_last_line(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(legs, "HEARTBEAT_S", 0.01)
    # What keeps time is called once a heartbeat, after the leg has printed.
    shown = legs.tail

    def tail(log: Path, lines: int) -> str:
        text = shown(log, lines)
        if text:
            (tmp_path / "seen").touch()
        return text

    def run() -> list[Suite]:
        print("at work")
        _wait_for((tmp_path / "seen").exists)
        return [_passing("slow")]

    monkeypatch.setattr(legs, "tail", tail)
    run_legs([Leg("slow", run)])
    assert " s  slow: at work\n" in capsys.readouterr().out


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_nothing_is_left_running(tmp_path: Path, sent: signal.Signals) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(command, env=env, start_new_session=True) as process:
        try:
            files = [tmp_path / name for name in ("one", "two")]
            _wait_for(lambda: all(file.exists() for file in files))
            os.killpg(process.pid, sent)  # as a terminal does
            assert process.wait(PATIENCE_S) == 128 + sent
        finally:
            process.kill()
    assert not (tmp_path / "three").exists()
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)
