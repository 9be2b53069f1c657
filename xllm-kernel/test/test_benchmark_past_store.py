"""The store of past runs: nothing is overwritten or lost; its history shows runs and breaks."""

from __future__ import annotations

import copy
import fcntl
import json
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import benchmark_documents as made
import pytest

from xllm_kernel.benchmark.past import history, store
from xllm_kernel.benchmark.past.documents import DocumentError, load
from xllm_kernel.benchmark.past.history import main
from xllm_kernel.benchmark.past.sparkline import sparkline


def _run(day: int, factor: float = 1.0, **more: Any) -> made.Document:
    rows = [
        made.row(
            shape=shape,
            regimes={
                "hot": made.figures(
                    made.samples(number, 10.0 * factor),
                    roofline=made.roofline(made.work("bfloat16", *shape), 10.0),
                )
            },
        )
        for number, shape in enumerate(made.SHAPES[:3])
    ]
    facts = {"started": f"2026-01-{day:02d}T03:04:05+00:00", "revision": f"rev{day}"}
    return made.document(rows) | facts | more


def _index(folder: Path) -> list[str]:
    document = json.loads((folder / store.INDEX).read_text(encoding="utf-8"))
    return [run["file"] for run in document["runs"]]


def test_add_names_a_file_for_start_operation_implementation_and_revision(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    path = store.add(_run(2), folder)
    assert path == folder / "20260102T030405Z-affine-cpu.simd.affine-rev2.json"
    assert load(path).document == _run(2)
    assert _index(folder) == [path.name]


def test_add_never_overwrites(tmp_path: Path) -> None:
    paths = [store.add(_run(2, factor), tmp_path) for factor in (1.0, 2.0, 3.0)]
    assert len(set(paths)) == 3
    assert [load(path).document for path in paths] == [_run(2, f) for f in (1.0, 2.0, 3.0)]


@pytest.mark.parametrize("name", ["../../etc/x", "a/b c", "é", "n" * 500])
def test_add_of_hostile_names_stays_in_the_folder(name: str, tmp_path: Path) -> None:
    path = store.add(_run(2, revision=name, implementation=name, operation=name), tmp_path / "s")
    assert path.parent == tmp_path / "s"
    assert path.is_file()
    assert len(store.entries(tmp_path / "s")) == 1


def test_add_of_no_benchmark_report_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="kind 'benchmark'"):
        store.add({"kind": "numerics"}, tmp_path / "s")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("damage", [None, "", "{", "[]", '{"schema_version": 1, "runs": [{}]}'])
def test_index_that_is_missing_or_damaged_is_made_again(damage: str | None, tmp_path: Path) -> None:
    store.add(_run(1), tmp_path)
    store.add(_run(2), tmp_path)
    good = (tmp_path / store.INDEX).read_text()
    (tmp_path / store.INDEX).unlink()
    if damage is not None:
        (tmp_path / store.INDEX).write_text(damage)
    assert len(store.entries(tmp_path)) == 2
    assert (tmp_path / store.INDEX).read_text() == good


def test_index_follows_files_that_come_go_and_change(tmp_path: Path) -> None:
    first, second = (store.add(_run(day), tmp_path) for day in (1, 2))
    first.unlink()
    (tmp_path / "copied.json").write_text(json.dumps(_run(7)))
    second.write_text("{")
    found = store.entries(tmp_path)
    assert [entry.file for entry in found] == ["copied.json", second.name]
    assert "must hold JSON, whole" in str(found[1].damaged)
    assert sorted(_index(tmp_path)) == sorted(entry.file for entry in found)


def test_entries_of_a_known_folder_read_no_run_again(tmp_path: Path, monkeypatch) -> None:
    store.add(_run(1), tmp_path)
    monkeypatch.setattr(store, "load", lambda path: pytest.fail(f"read {path}"))
    assert len(store.entries(tmp_path)) == 1


def _add_many(folder: Path, times: int) -> None:
    for _ in range(times):
        store.add(_run(3), folder)


def test_two_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_add_many, args=(tmp_path, 10)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(list(tmp_path.glob("2026*.json"))) == 20
    assert len(_index(tmp_path)) == 20


def test_add_waits_for_whoever_is_adding(tmp_path: Path) -> None:
    adding = threading.Thread(target=_add_many, args=(tmp_path, 1))
    with (tmp_path / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        adding.start()
        adding.join(0.5)
        assert adding.is_alive()
        assert not (tmp_path / store.INDEX).exists()
    adding.join()
    assert len(_index(tmp_path)) == 1


def test_killed_process_leaves_whole_runs_and_no_lock(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    worker = spawn.Process(target=_add_many, args=(tmp_path, 10_000))
    worker.start()
    while len(list(tmp_path.glob("2026*.json"))) < 3:
        time.sleep(0.01)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    store.add(_run(9), tmp_path)
    found = store.entries(tmp_path)
    assert all(entry.damaged is None for entry in found)
    assert len(found) == len(list(tmp_path.glob("2026*.json"))) >= 4


def test_history_shows_runs_in_time_order_with_ratios_and_shares(tmp_path: Path, capsys) -> None:
    for day, factor in ((3, 1.4), (1, 1.0), (2, 1.0)):
        store.add(_run(day, factor), tmp_path)
    assert main(["--store", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    blocks = shown.strip().split("\n\n")
    assert len(blocks) == 3
    lines = [line.split() for line in blocks[0].splitlines() if "  rev" in line and "T03" in line]
    assert [line[1] for line in lines] == ["rev1", "rev2", "rev3"]
    assert [line[-1] for line in lines] == ["-", "SAME", "SLOWER"]
    assert [line[-2] for line in lines] == ["-", "1.000", "1.400"]
    assert all("%" in line for line in lines)


def test_history_fits_80_columns_and_says_what_stands_in_the_way_of_a_verdict(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "room", lambda: 80)
    troubled = _run(2)
    for row in troubled["rows"]:
        row["timings"]["regimes"]["hot"]["unstable"] = ["throttled"]
    for run in (troubled, _run(3)):
        store.add(run, tmp_path)
    assert main(["--store", str(tmp_path)]) == 0
    (block, *_) = capsys.readouterr().out.split("\n\n")
    _, _, head, first, doubt, second, why, gone = block.splitlines()
    assert max(map(len, (head, first, second))) <= 80
    assert head.split()[0] == "started"
    assert head.split()[-1] == "verdict"
    assert (first.split()[1], doubt.strip()) == ("rev2", "unstable: throttled")
    assert (second.split()[1], second.split()[-1]) == ("rev3", "AMBIGUOUS")
    assert "throttled" in why
    assert gone == "  not shown for want of width: of ceiling"


def test_history_breaks_where_runs_are_not_comparable(tmp_path: Path, capsys) -> None:
    other = copy.deepcopy(_run(2)["environment"]) | {"device_name": "Sieve 2"}
    store.add(_run(1), tmp_path)
    store.add(_run(2, environment=other), tmp_path)
    store.add(_run(3), tmp_path)
    case = _run(1)["rows"][0]["case_id"]
    assert main(["--store", str(tmp_path), "--case", case]) == 0
    lines = capsys.readouterr().out.splitlines()
    breaks = [line for line in lines if "not comparable" in line]
    assert [line.partition("processor: ")[2] for line in breaks] == [
        "Abacus 9000 in OLD, Sieve 2 in NEW",
        "Sieve 2 in OLD, Abacus 9000 in NEW",
    ]
    (second,), (third,) = ([x for x in lines if f"rev{n}" in x] for n in (2, 3))
    assert "SAME" not in second
    assert "1.000" in third  # beside the first run, the last before it on that machine


def test_history_lists_simulated_runs_without_figures(tmp_path: Path, capsys) -> None:
    store.add(made.simulated(), tmp_path)
    assert main(["--store", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "no evidence of accuracy or performance" in shown
    assert "90" not in shown.replace("20260", "")


def test_history_names_damaged_files_skips_them_and_exits_3(tmp_path: Path, capsys) -> None:
    store.add(_run(1), tmp_path)
    (tmp_path / "broken.json").write_text("{")
    assert main(["--store", str(tmp_path)]) == 3
    said = capsys.readouterr()
    assert "skipped broken.json: " in said.err
    assert "rev1" in said.out


@pytest.mark.parametrize("field", [{"revision": 7}, {"evidence": ["cpu"]}, {"receipt": "x"}])
def test_history_skips_a_report_whose_facts_are_none(
    field: dict[str, Any], tmp_path: Path, capsys
) -> None:
    store.add(_run(1), tmp_path)
    (tmp_path / "odd.json").write_text(json.dumps(_run(2) | field))
    assert main(["--store", str(tmp_path)]) == 3
    assert "skipped odd.json: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--operation", "other"],
        ["--implementation", "other"],
        ["--case", "other"],
        ["--regime", "cold"],
    ],
)
def test_history_of_what_no_run_has_exits_2(options: list[str], tmp_path: Path, capsys) -> None:
    store.add(_run(1), tmp_path)
    assert main(["--store", str(tmp_path), *options]) == 2
    assert "must hold a run that was asked for" in capsys.readouterr().err


def test_history_of_no_folder_exits_2(tmp_path: Path, capsys) -> None:
    assert main(["--store", str(tmp_path / "absent")]) == 2
    assert "must be a folder of runs" in capsys.readouterr().err


def test_sparkline_draws_size_and_gaps_on_any_terminal() -> None:
    assert sparkline([1.0, None, 2.0], "utf-8") == "▁ █"
    assert sparkline([1.0, None, 2.0], "ascii") == "1 8"
    assert sparkline([5.0, 5.01], "ascii") == "11"
    assert sparkline([], "ascii") == ""
