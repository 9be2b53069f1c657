"""Runs that several ranks share: one report, disjoint cases, and a rank that goes away."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mortal_world import Done, command, environment, read
from test_numerics_processes import _check

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.processes import ranks

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def _torchrun(folder: Path, *options: str) -> Done:
    """Launch two ranks as the documentation says."""
    done = subprocess.run(
        [*TORCHRUN, *command(folder, *options)[1:]],
        capture_output=True,
        text=True,
        env=environment(OMP_NUM_THREADS="1"),
        cwd=folder,
        timeout=240,
        check=False,
    )
    return read(folder, done.returncode, done.stdout, done.stderr)


def _by_hand(
    folder: Path, *options: str, count: int = 2, kind: str = "numerics", **others: dict[int, str]
) -> list[Done]:
    """Launch ranks without a launcher, which would end all when one ends; rank 0's comes first.

    Args:
        folder: for the report.
        *options: of the command.
        count: number of ranks.
        kind: of the command.
        **others: a variable's value by rank.
    """

    def one(rank: int) -> Done:
        variables = {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "localhost"}
        variables |= {"MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": str(folder)}
        variables |= {name: values[rank] for name, values in others.items() if rank in values}
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

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_ranks_of_torchrun_share_the_cases_and_leave_one_report_in_order(tmp_path: Path) -> None:
    deeds = ("a", "b", "c", "d", "e")
    done = _torchrun(tmp_path, "--deeds", *deeds)
    assert done.code == 0, done.err
    assert done.report["ranks"] == 2
    assert list(done.rows) == [*deeds, "repeatable", "thread_invariant"]
    assert [row["rank"] for row in done.report["rows"]] == [0, 1, 0, 1, 0, 0, 1]
    assert [done.states[deed] for deed in deeds] == ["passed"] * 5
    assert done.out.count("Numerical validation") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.json", "r.md"]
    _check(done.report)


def test_rank_that_is_killed_fails_the_run_and_its_cases_are_not_run(tmp_path: Path) -> None:
    """Rank 1's case kills its rank; rank 0 hangs, and the launcher ends it."""
    done = _torchrun(tmp_path, "--deeds", "a", "killrank", "hang", "b")
    assert done.code == 1
    assert (done.report["status"], done.report["exit_code"]) == ("error", 3)
    assert "rank 1 went away" in done.report["reason"]
    assert done.report["processes"]["lost"] == [1]
    assert (done.rows["killrank"]["status"], done.rows["b"]["status"]) == ("not_run", "not_run")
    assert done.rows["killrank"]["reason"] == "rank 1 went away at this case"
    assert done.rows["b"]["reason"] == "rank 1 went away before this case"
    for text in (done.out, done.markdown):
        assert "rank 1 went away before this case" in text
    _check(done.report)


def test_rank_that_goes_away_without_a_launcher_leaves_the_others_their_cases(
    tmp_path: Path,
) -> None:
    zero, _ = _by_hand(tmp_path, "--deeds", "a", "killrank", "c", "d", "e")
    assert zero.code == 3
    assert zero.states == {
        "a": "passed",
        "killrank": "not_run",
        "c": "passed",
        "d": "not_run",
        "e": "passed",
        "repeatable": "not_applicable",
        "thread_invariant": "not_applicable",
    }
    _check(zero.report)


def test_case_that_ends_its_process_leaves_its_rank_alive(tmp_path: Path) -> None:
    zero, one, two = _by_hand(tmp_path, "--deeds", "a", "segv", "exit0", "d", "e", "f", count=3)
    assert (zero.code, one.code, two.code) == (4, 0, 0)
    assert [zero.states[deed] for deed in ("a", "segv", "exit0", "d", "e", "f")] == [
        *("passed", "error", "error"),
        *("passed", "passed", "passed"),
    ]
    deaths = zero.report["processes"]["deaths"]
    assert sorted((d["rank"], d["case_id"]) for d in deaths) == [
        (1, "mortal/segv"),
        (2, "mortal/exit0"),
    ]
    assert zero.report["processes"]["restarts"] == 2
    assert zero.rows["e"]["rank"] == 1
    assert "(rank 1)" in zero.out
    assert (one.out, two.out) == ("", "")
    _check(zero.report)


@pytest.mark.parametrize("deed", ["late66"])
def test_end_of_a_ranks_process_with_another_status_is_seen(tmp_path: Path, deed: str) -> None:
    zero, _ = _by_hand(tmp_path, "--deeds", "a", deed)
    assert zero.code == 4
    (death,) = zero.report["processes"]["deaths"]
    assert (death["rank"], "66" in death["ending"]) == (1, True)


def test_ranks_of_other_builds_run_nothing(tmp_path: Path) -> None:
    zero, one = _by_hand(tmp_path, "--deeds", "a", "b", MORTAL_BUILD={1: "2"})
    assert (zero.code, one.code) == (3, 0)
    assert "all ranks must have one plan, but its hash is" in zero.report["reason"]
    assert zero.states == {"a": "not_run", "b": "not_run"}
    _check(zero.report)


def test_rank_that_cannot_begin_says_why_for_all(tmp_path: Path) -> None:
    zero, one = _by_hand(tmp_path, "--deeds", "a", "b", XLLM_KERNEL_OVERRIDE_MORTAL={1: "none"})
    assert (zero.code, one.code) == (2, 0)
    assert zero.report["reason"].startswith("rank 1: ")
    assert "XLLM_KERNEL_OVERRIDE_MORTAL" in zero.report["reason"]
    assert set(zero.states.values()) == {"not_run"}


@pytest.mark.parametrize(("order", "failing"), [(("hang", "wrong"), 1), (("wrong", "hang"), 0)])
def test_first_failure_stops_all_ranks_where_it_shall(
    tmp_path: Path, order: tuple[str, str], failing: int
) -> None:
    zero, one = _by_hand(tmp_path, "--deeds", *order, "c", "d", "--fail-fast")
    assert (zero.code, one.code) == (1, 0)
    assert zero.rows["wrong"]["rank"] == failing
    assert zero.states == {"wrong": "failed", "hang": "not_run", "c": "not_run", "d": "not_run"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, r"RANK must be less than WORLD_SIZE \(2\), got 2"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK must be a number"),
        ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "must share one machine"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "4"}, "must share one machine"),
    ],
)
def test_place_among_ranks_that_makes_no_sense_is_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=message):
        ranks.place()


def test_place_is_known_by_the_launchers_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranks.place() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ranks.place() is None
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "1")
    place = ranks.place()
    assert place is not None
    assert (place.rank, place.count, place.local_rank) == (1, 2, 1)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    again = ranks.place()
    assert again is not None
    assert again.name != place.name
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert ranks.place() is None


def test_second_run_at_the_same_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": str(os.getpid())}.items():
        monkeypatch.setenv(name, value)
    place = ranks.place()
    assert place is not None
    with ranks.listen(place), pytest.raises(ConfigurationError, match="no other run may have"):
        ranks.listen(place)


def test_link_carries_lines_until_one_end_hangs_up() -> None:
    ours, theirs = (ranks.Link(end) for end in socket.socketpair())
    ours.send({"event": "hello", "rank": 1})
    events = theirs.receive()
    assert events is not None
    assert list(events) == [{"event": "hello", "rank": 1}]
    ours.close()
    assert theirs.receive() is None
    with pytest.raises(OSError, match=r"[Bb]roken pipe"):
        theirs.send({"event": "done"})
    theirs.close()
    assert theirs.fileno() == -1


def test_link_to_another_users_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    honest = os.getuid()
    monkeypatch.setattr(ranks.os, "getuid", lambda: honest + 1)
    with one, other, pytest.raises(PermissionError, match=f"user {honest} called"):
        ranks.Link(one)


def test_rank_without_a_rank_0_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    place = ranks.Place(1, 2, 1, b"\0xllm-kernel-nobody-listens-here")
    with pytest.raises(TimeoutError, match="rank 0 was not there"):
        ranks.call(place, patience_s=0.0)


def test_ranks_of_a_benchmark_that_share_a_device_are_refused(tmp_path: Path) -> None:
    zero, one = _by_hand(tmp_path, "--deeds", "a", "b", "--repeats", "3", kind="benchmark")
    assert (zero.code, zero.report["status"]) == (3, "error")
    assert zero.report["reason"] == (
        "each rank must have a device for itself, but ranks 0 and 1 share the host processor; "
        "launch one rank a device"
    )
    assert {row["status"] for row in zero.report["rows"]} == {"not_run"}
    assert one.code == 0


def test_ranks_of_a_benchmark_with_devices_of_their_own_share_the_cases(tmp_path: Path) -> None:
    devices = {0: "device 0", 1: "device 1"}
    options = ("--deeds", "a", "b", "c", "--iterations", "2", "--repeats", "3")
    zero, _ = _by_hand(tmp_path, *options, kind="benchmark", MORTAL_IDENTITY=devices)
    assert zero.code == 0, zero.err
    assert [row["rank"] for row in zero.report["rows"]] == [0, 1, 0]
    repeats = [row["timings"]["regimes"]["hot"]["repeats"] for row in zero.report["rows"]]
    assert repeats == [3, 3, 3]
