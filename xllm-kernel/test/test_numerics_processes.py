"""Cases that end their process: what the report says, and that the run goes on."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY_ROOT, need
from mortal_world import Done, command, environment, read, run

SCHEMA = REPOSITORY_ROOT / "docs" / "schema" / "report.schema.json"

# What ends its process, in which step, and what the reason must say.
DEATHS = {
    "segv": ("validate function", "was killed by SIGSEGV"),
    "abort@2": ("warmup", "was killed by SIGABRT"),
    "kill": ("validate function", "was killed by SIGKILL, as the system does when memory runs out"),
    "term": ("validate function", "was killed by SIGTERM"),
    "exit0": ("validate function", "exited with status 0"),
    "exit7@3": ("replay", "exited with status 7"),
    "orphan": ("validate function", "exited with status 7"),
    "garble": ("validate function", "was killed: something else than results came"),
}


def _check(document: dict[str, Any]) -> None:
    need("jsonschema")
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    problems = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]
    assert problems == []


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One run in which one case after the other ends its process."""
    deeds = ("honest", *DEATHS, "raise", "sysexit", "wrong", "honest_")
    return run(tmp_path_factory.mktemp("deaths"), "--deeds", *deeds)


@pytest.mark.parametrize("deed", DEATHS)
def test_case_that_ends_its_process_is_an_error_that_says_how(deaths: Done, deed: str) -> None:
    stage, reason = DEATHS[deed]
    row = deaths.rows[deed]
    assert (row["status"], row["crashed"], row["stage"]) == ("error", True, stage)
    assert f"its process {reason}" in row["reason"]
    assert row["timings"] is None if "timings" in row else True


def test_cases_beside_the_deadly_ones_keep_their_own_verdicts(deaths: Done) -> None:
    others = {name: row for name, row in deaths.rows.items() if name not in DEATHS}
    assert {name: row["status"] for name, row in others.items()} == {
        "honest": "passed",
        "raise": "error",
        "sysexit": "error",
        "wrong": "failed",
        "honest_": "passed",
        "repeatable": "not_applicable",
        "thread_invariant": "not_applicable",
    }
    assert others["raise"]["crashed"]
    assert others["raise"]["stderr"] is None
    assert not others["wrong"]["crashed"]


def test_run_with_deaths_exits_4_and_says_how_often_it_started_again(deaths: Done) -> None:
    report = deaths.report
    assert (deaths.code, report["exit_code"], report["status"]) == (4, 4, "error")
    processes = report["processes"]
    assert (processes["isolated"], processes["restarts"]) == (True, len(DEATHS))
    assert [d["case_id"] for d in processes["deaths"]] == [f"mortal/{deed}" for deed in DEATHS]
    for text in (deaths.out, deaths.markdown):
        assert f"processes started again to go on: {len(DEATHS)}" in text
        assert "at mortal/segv, step 'validate function': its process was killed by SIGSEGV" in text
    _check(report)


def test_what_a_dead_process_wrote_is_kept_and_shown(deaths: Done) -> None:
    assert "Segmentation fault" in deaths.rows["segv"]["stderr"]
    assert "in _segv" in deaths.rows["segv"]["stderr"]  # the Python frame that it was in
    assert "Segmentation fault" in deaths.err
    assert "Segmentation fault" not in deaths.rows["abort@2"]["stderr"]


def test_what_a_dead_process_left_behind_is_ended_too(deaths: Done) -> None:
    left, pid = deaths.rows["orphan"]["stderr"].split()
    assert left == "left"
    assert not _runs(int(pid))


@pytest.mark.parametrize(("deed", "said"), [("segv", "SIGSEGV"), ("exit0", "status 0")])
def test_death_while_the_implementation_is_loaded_is_no_success(
    tmp_path: Path, deed: str, said: str
) -> None:
    done = run(tmp_path, "--deeds", "a", "b", MORTAL_LOAD=deed)
    assert (done.code, done.report["status"]) == (4, "error")
    assert said in done.report["reason"]
    assert "before its first case" in done.report["reason"]
    assert done.states == {"a": "not_run", "b": "not_run"}
    assert done.report["processes"]["restarts"] == 0
    _check(done.report)


def test_end_with_another_status_after_the_last_case_is_no_success(tmp_path: Path) -> None:
    done = run(tmp_path, "--deeds", "late66")
    assert done.states["late66"] == "passed"
    assert (done.code, done.report["status"]) == (4, "error")
    assert "exited with status 66" in done.report["reason"]
    assert "exited with status 66" in done.out
    _check(done.report)


@pytest.mark.parametrize(
    ("options", "states", "restarts"),
    [
        ((), ["passed", "error", "not_run", "not_run", "not_run"], 0),
        (("--keep-going",), ["passed", "error", "passed", "error", "passed"], 2),
        (("--fail-fast",), ["passed", "error", "not_run", "not_run", "not_run"], 0),
    ],
)
def test_device_that_does_not_recover_ends_the_run_unless_it_shall_keep_going(
    tmp_path: Path, options: tuple[str, ...], states: list[str], restarts: int
) -> None:
    deeds = ("a", "segv", "b", "raise", "c")
    done = run(tmp_path, "--deeds", *deeds, *options, MORTAL_DEVICE="1")
    assert done.code == 4
    assert [done.states[deed] for deed in deeds] == states
    assert done.report["processes"]["restarts"] == restarts
    if not options:
        (alone,) = run(tmp_path, "--deeds", "raise", "b", MORTAL_DEVICE="1").report["rows"][1:]
        assert alone["status"] == "not_run"


def test_what_cases_print_reaches_standard_error_and_no_result(tmp_path: Path) -> None:
    done = run(tmp_path, "--deeds", "print", "honest")
    assert done.code == 0, done.err
    assert set(done.states.values()) == {"passed", "not_applicable"}
    for printed in ('"results": {"status": "passed"}', "from below", "to standard error"):
        assert printed in done.err
        assert printed not in done.out
    assert done.out.startswith("Numerical validation")


def test_case_that_comes_back_twice_goes_on_in_the_process_that_began_it(tmp_path: Path) -> None:
    done = run(tmp_path, "--deeds", "whoami", "fork", "whoami_")
    assert done.code == 0, done.err
    assert len({line for line in done.err.splitlines() if line.startswith("I am")}) == 1


def test_death_while_a_case_is_timed_leaves_no_figures(tmp_path: Path) -> None:
    options = ("--deeds", "a", "segv@6", "--iterations", "2", "--repeats", "3")
    done = run(tmp_path, *options, kind="benchmark")
    assert done.code == 4
    assert done.rows["segv@6"]["stage"] == "timing"
    assert done.rows["segv@6"]["timings"] is None
    assert done.rows["a"]["timings"]["regimes"]["hot"]["repeats"] == 3
    _check(done.report)


def test_deaths_are_seen_on_kernels_that_wake_nobody_for_them(tmp_path: Path) -> None:
    done = run(tmp_path, "--deeds", "a", "orphan", "b", "late66", MORTAL_OLD_KERNEL="1")
    assert done.code == 4
    assert [done.states[deed] for deed in ("a", "orphan", "b")] == ["passed", "error", "passed"]
    assert len(done.report["processes"]["deaths"]) == 2


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A run amid its second case, which never returns, and the process that it is in."""
    words, printed = command(tmp_path, "--deeds", "honest", "hang", "b"), tmp_path / "printed"
    with (
        printed.open("wb") as stream,
        subprocess.Popen(words, env=environment(), cwd=tmp_path, stderr=stream) as process,
    ):
        try:
            _wait_for(lambda: b"hangs" in printed.read_bytes())
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            yield process, int(children.read_text().split()[0])
        finally:
            process.kill()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_takes_its_child_along_and_keeps_what_was_done(
    tmp_path: Path, hanging: tuple[subprocess.Popen[bytes], int], sent: signal.Signals
) -> None:
    process, child = hanging
    process.send_signal(sent)
    assert process.wait(60) == 130
    assert not _runs(child)
    done = read(tmp_path, 130)
    assert (done.report["status"], done.report["reason"]) == ("error", "interrupted")
    assert done.states == {"honest": "passed", "hang": "not_run", "b": "not_run"}
    _check(done.report)


def test_killed_run_takes_its_child_along(
    tmp_path: Path, hanging: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, child = hanging
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    _wait_for(lambda: not _runs(child))
    assert read(tmp_path, 0).states["honest"] == "passed"


def test_interrupt_that_reaches_a_case_alone_interrupts_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, "--deeds", "honest", "interrupt", "b")
    assert (done.code, done.report["reason"]) == (130, "interrupted")
    assert done.states == {"honest": "passed", "interrupt": "not_run", "b": "not_run"}


@pytest.mark.parametrize("deed", ["segv", "wrong it's $HOME", "raise"])
def test_printed_line_reproduces_the_failure(tmp_path: Path, deed: str) -> None:
    first = run(tmp_path, "--deeds", "a", deed, XLLM_KERNEL_OVERRIDE_MORTAL="plain")
    line = first.rows[deed]["reproduce"]
    assert line in first.out
    assert line in first.markdown
    assert line.startswith("XLLM_KERNEL_OVERRIDE_MORTAL=plain python -m xllm_kernel.numerics ")
    assert "--output" not in line
    again = subprocess.run(
        line, shell=True, capture_output=True, text=True, env=environment(), check=False, timeout=60
    )
    assert again.returncode == first.code, again.stderr
    assert (
        f"mortal/{deed}: {first.rows[deed]['stage']}: {first.rows[deed]['reason']}" in again.stdout
    )
    assert "0 of 1 cases passed" in again.stdout
    assert first.rows["a"]["reproduce"] is None


def _runs(pid: int) -> bool:
    """Say whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_process_without_a_framework_of_its_own_judges_in_the_child_alone(tmp_path: Path) -> None:
    """The process that owns the report loads nothing that could take it along."""
    code = (
        "import sys; from xllm_kernel.numerics.__main__ import main; code = main();"
        "heavy = [m for m in ('mortal.plain', 'torch') if m in sys.modules];"
        "sys.exit(code or (9 if heavy else 0))"
    )
    words = command(tmp_path, "--deeds", "a")
    done = subprocess.run(
        [words[0], "-c", code, *words[3:]], env=environment(), cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0
    assert os.path.exists(tmp_path / "r.json")  # noqa: PTH110 (nothing of the run is imported here)


def _run_through_a_shell(folder: Path, redirection: str) -> Done:
    line = shlex.join(command(folder, "--deeds", "honest"))
    done = subprocess.run(
        ["bash", "-c", f"{line} {redirection}"],
        env=environment(),
        cwd=folder,
        timeout=120,
        check=False,
        stderr=subprocess.DEVNULL,
    )
    return read(folder, done.returncode)


@pytest.mark.parametrize(
    "redirection", [">/dev/full", ">&-", "2>&-", "<&- >&- 2>&-", "| true; exit ${PIPESTATUS[0]}"]
)
def test_verdict_stands_where_nobody_can_read_what_is_printed(
    tmp_path: Path, redirection: str
) -> None:
    done = _run_through_a_shell(tmp_path, redirection)
    assert (done.code, done.report["status"], done.report["exit_code"]) == (0, "passed", 0)
