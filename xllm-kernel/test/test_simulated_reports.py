"""A simulated run says so everywhere, and shows no figure that somebody could rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import affine
import pytest
from conftest import REPOSITORY_ROOT, need
from numerics_world import COMMANDS, World

from xllm_kernel.numerics.report import Row
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.platforms.evidence import disclaimer

SCHEMA = REPOSITORY_ROOT / "docs" / "schema" / "report.schema.json"
FACTS = {"simulated": True, "simulator": "0.1", "simulator_seed": "1"}
BOTH = pytest.mark.parametrize("command", COMMANDS)
NOTICE = "no evidence of accuracy or performance"


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose device is simulated."""
    honest = CpuPlatform.environment
    monkeypatch.setattr(CpuPlatform, "evidence", "simulated")
    monkeypatch.setattr(CpuPlatform, "environment", lambda self: honest(self) | FACTS)
    return World(tmp_path, monkeypatch)


def _errors(document: dict[str, Any]) -> list[str]:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]


@BOTH
def test_simulated_run_passes_and_says_so_in_front_in_every_row_and_in_its_facts(
    world: World, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = world.run(command, "--sizes", "8", "16", "2000")
    report = outcome.report
    assert (outcome.code, report["status"]) == (0, "passed")
    assert report["evidence"] == "simulated"
    assert NOTICE in report["notice"]
    assert report["environment"]["simulated"] is True
    assert [row["evidence"] for row in outcome.rows] == ["simulated"] * 3
    for text in (outcome.markdown, capsys.readouterr().out):
        others = ("support", "captured")  # reasons and verdicts
        lines = [line for line in text.splitlines() if "affine/" in line]
        table = [line for line in lines if not any(word in line for word in others)]
        assert len(table) == 3
        assert all("simulated" in line for line in table)
        assert "PASSED (simulated)  2 of 3 cases passed" in text
        assert NOTICE in text


def test_simulated_guarantee_rows_say_so_too(world: World, monkeypatch) -> None:
    from xllm_kernel.numerics.invariants import rows as guarantee_rows

    monkeypatch.setattr(
        guarantee_rows, "rows", lambda request, plan, evidence: [Row("g", {}, evidence)]
    )
    monkeypatch.setattr(guarantee_rows, "fill_in", lambda row, request, plan: False)
    assert world.run("numerics").rows[-1]["evidence"] == "simulated"


@BOTH
def test_report_on_a_device_of_its_own_has_no_notice(
    world: World, command: str, monkeypatch
) -> None:
    monkeypatch.setattr(CpuPlatform, "evidence", "cpu")
    outcome = world.run(command)
    assert outcome.report["notice"] is None
    assert [row["evidence"] for row in outcome.rows] == ["cpu"]
    assert "simulated" not in outcome.markdown.lower().replace("simulated | true", "")


def test_simulated_times_are_bare_samples_under_a_name_that_says_so(world: World) -> None:
    outcome = world.run("benchmark", "--iterations", "3", "--repeats", "7")
    (row,) = outcome.rows
    assert row["timings"] is None
    times = row["simulated_timings"]
    assert NOTICE in times["notice"]
    hot = times["regimes"]["hot"]
    assert (hot["calls_a_replay"], hot["iterations"], hot["repeats"]) == (1, 3, 7)
    assert len(hot["wall_us"]) == 7
    assert "median" not in json.dumps(outcome.report)


def test_simulated_times_are_shown_to_nobody(world: World, capsys) -> None:
    """Whatever column a benchmark has, a figure of a simulated row is not in it."""
    outcome = world.run("benchmark", "--sizes", "8", "9")
    for text in (outcome.markdown, capsys.readouterr().out):
        lines = [line for line in text.splitlines() if "affine/" in line and "captured" not in line]
        words = [line.replace("|", " ").split()[2:] for line in lines]  # after case and threads
        assert words == [["passed", *["simulated"] * 2]] * 2


def test_simulated_row_without_times_does_not_claim_any(world: World) -> None:
    world.plant(lambda v, s: affine.honest(v, s * 1.01))
    (row,) = world.run("benchmark").rows
    assert row["status"] == "failed"
    assert row["timings"] is None
    assert "simulated_timings" not in row


@BOTH
def test_simulated_run_that_fails_before_its_first_case_still_says_so(
    world: World, command: str, monkeypatch
) -> None:
    monkeypatch.setattr(
        affine.suite.Suite, "prepare", lambda *arguments: (_ for _ in ()).throw(OSError("broken"))
    )
    outcome = world.run(command)
    assert outcome.code == 3
    assert outcome.report["environment"]["simulated"] is True
    assert [row["evidence"] for row in outcome.rows] == ["simulated"]


@BOTH
def test_schema_holds_simulated_reports_to_it(world: World, command: str) -> None:
    need("jsonschema")
    good = world.run(command).report
    assert _errors(good) == []
    changes: list[tuple[tuple[Any, ...], Any]] = [
        (("notice",), None),
        (("environment", "simulated"), False),
        (("environment", "simulator"), None),
        (("rows", 0, "evidence"), "device"),
        (("evidence",), "device"),
    ]
    if command == "benchmark":
        samples = good["rows"][0]["simulated_timings"]
        changes.append((("rows", 0, "timings"), samples))
        place = ("rows", 0, "simulated_timings", "regimes", "hot")
        changes += [((*place, "wall_us"), {"median": 1.0}), ((*place, "roofline"), None)]
    for path, value in changes:
        bad = json.loads(json.dumps(good))
        place = bad
        for key in path[:-1]:
            place = place[key]
        if value is None and path[-1] == "simulator":
            del place[path[-1]]
        else:
            place[path[-1]] = value
        assert _errors(bad), path


@pytest.mark.parametrize("evidence", [None, "cpu", "device"])
def test_disclaimer_is_for_stand_ins_alone(evidence: str | None) -> None:
    assert disclaimer(evidence) is None
    assert disclaimer("simulated")
