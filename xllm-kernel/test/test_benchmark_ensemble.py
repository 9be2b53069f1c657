"""Several implementations in turns, in processes of their own that may die at any step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY_ROOT
from mortal_world import Done, run

AGAINST = ("--baseline", "cpu.other.mortal", "--iterations", "3", "--repeats", "6")
PLAIN, OTHER = "cpu.plain.mortal", "cpu.other.mortal"


def _run(folder: Path, *deeds: str, options: tuple[str, ...] = AGAINST) -> Done:
    return run(folder, "--deeds", *deeds, *options, kind="benchmark")


def _rows(done: Done) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (row["case_id"].removeprefix("mortal/"), row["implementation"]): row
        for row in done.report["rows"]
    }


def _hot(row: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = row["timings"]["regimes"]["hot"]
    return figures


def test_two_implementations_share_the_rounds_of_a_case(tmp_path: Path) -> None:
    done = _run(tmp_path, "honest", "honest_")
    assert (done.code, done.err) == (0, "")
    rows = done.report["rows"]
    assert [(r["case_id"], r["implementation"]) for r in rows] == [
        (f"mortal/{deed}", name) for deed in ("honest", "honest_") for name in (PLAIN, OTHER)
    ]
    for row in rows:
        figures = _hot(row)
        assert figures["rounds"] == list(range(6))
        assert figures["repeats"] == len(figures["wall_us"]["samples"]) == 6
    found = _hot(rows[0])["against"]
    assert (found["baseline"], _hot(rows[1])["against"]) == (OTHER, None)
    assert found["ratio"]["low"] <= found["ratio"]["middle"] <= found["ratio"]["high"]
    assert found["noise_floor"].keys() == _hot(rows[1])["noise_floor"].keys()
    assert done.report["baseline"] == OTHER
    assert list(done.report["other_receipts"]) == [OTHER]


def test_the_report_keeps_to_its_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    done = _run(tmp_path, "honest", "segv@20/other", "nothing")
    schema = json.loads((REPOSITORY_ROOT / "docs/schema/report.schema.json").read_text())
    problems = jsonschema.Draft202012Validator(schema).iter_errors(done.report)
    assert [f"{list(e.absolute_path)}: {e.message}" for e in problems] == []


def test_an_implementation_beside_itself_has_one_row_a_case(tmp_path: Path) -> None:
    options = ("--baseline", PLAIN, "--iterations", "3", "--repeats", "6")
    done = _run(tmp_path, "honest", options=options)
    (row,) = done.report["rows"]
    assert done.code == 0
    assert _hot(row)["against"]["baseline"] == PLAIN


@pytest.mark.parametrize(
    ("deed", "dead", "alive"),
    [
        ("segv@12/other", OTHER, PLAIN),
        ("segv@12/plain", PLAIN, OTHER),
        ("exit7@2/plain", PLAIN, OTHER),
    ],
)
def test_a_contender_that_dies_leaves_the_others_their_rounds(
    tmp_path: Path, deed: str, dead: str, alive: str
) -> None:
    done = _run(tmp_path, deed, "honest")
    rows = _rows(done)
    assert done.code == 4
    assert rows[deed, dead]["status"] == "error"
    assert rows[deed, dead]["timings"] is None
    assert rows[deed, alive]["status"] == "passed"
    assert _hot(rows[deed, alive])["repeats"] == 6
    assert _hot(rows[deed, alive])["against"] is None
    # The next case has a new process in the dead one's place.
    assert rows["honest", dead]["status"] == rows["honest", alive]["status"] == "passed"
    assert _hot(rows["honest", PLAIN])["against"] is not None


def test_a_baseline_that_is_wrong_takes_its_ratios_along(tmp_path: Path) -> None:
    # Validated, warm, captured, six samples of three with one before, after timing: wrong.
    done = _run(tmp_path, "wrong@28/other")
    rows = _rows(done)
    assert rows["wrong@28/other", OTHER]["status"] == "failed"
    assert rows["wrong@28/other", OTHER]["timings"] is None
    assert _hot(rows["wrong@28/other", PLAIN])["against"] is None
    assert _hot(rows["wrong@28/other", PLAIN])["repeats"] == 6


def test_a_baseline_that_is_wrong_leaves_earlier_cases_their_ratios(tmp_path: Path) -> None:
    rows = _rows(_run(tmp_path, "honest", "wrong/other"))
    assert rows["wrong/other", OTHER]["status"] == "failed"
    assert _hot(rows["honest", PLAIN])["against"] is not None


def test_a_second_process_of_the_baseline_that_dies_is_no_success(tmp_path: Path) -> None:
    options = ("--baseline", PLAIN, "--iterations", "3", "--repeats", "6")
    done = _run(tmp_path, "fourth@12", options=options)
    assert (done.code, done.report["status"]) == (4, "error")
    assert "beside mortal/fourth@12, its process was killed by SIGKILL" in done.report["reason"]
    (row,) = done.report["rows"]
    assert row["status"] == "passed"
    assert _hot(row)["against"] is None


@pytest.mark.parametrize("options", [(), AGAINST[:2]], ids=["alone", "beside a baseline"])
def test_an_implementation_whose_second_process_dies_has_no_figures(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = _run(tmp_path, "second@12", "honest", options=(*options, *AGAINST[2:]))
    assert done.code == 4
    row, honest = (_rows(done)[deed, PLAIN] for deed in ("second@12", "honest"))
    assert (row["status"], row["timings"]) == ("error", None)
    assert row["reason"].startswith("in a second process: ")
    assert "SIGKILL" in row["reason"]
    assert honest["status"] == "passed"


def test_every_process_of_a_run_ends_with_it(tmp_path: Path) -> None:
    done = _run(tmp_path, "whoami")
    numbers = {int(line.split()[2]) for line in done.err.splitlines() if line.startswith("I am")}
    assert done.code == 0
    assert len(numbers) == 4  # the implementation and the baseline, both twice
    assert not [n for n in numbers if Path(f"/proc/{n}").exists()]
    assert done.report["processes"]["deaths"] == []


def test_a_baseline_in_a_process_that_loaded_the_framework_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch  # noqa: F401 (as a notebook has)

    from xllm_kernel.benchmark.__main__ import main

    name = "cpu.torch.rms_norm"
    assert main(["--implementation", name, "--baseline", name]) == 2
    assert "needs a process of its own" in capsys.readouterr().out
