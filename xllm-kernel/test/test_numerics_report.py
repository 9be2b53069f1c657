"""Reports: their published schema, identity fields, nonfinite numbers, atomic replacement."""

from __future__ import annotations

import io
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import affine
import pytest
from conftest import REPOSITORY_ROOT, need
from numerics_world import COMMANDS, Outcome, World

from xllm_kernel.numerics import arguments
from xllm_kernel.numerics import report as report_module
from xllm_kernel.numerics.render import Progress
from xllm_kernel.numerics.report import json_value, replace_text

SCHEMA = REPOSITORY_ROOT / "docs" / "schema" / "report.schema.json"
BOTH = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _check(document: dict[str, Any]) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    problems = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]
    assert problems == []


def _odd(values: Any, scale: float) -> Any:
    if len(values) == 16:
        return affine.honest(values, math.nan)
    if len(values) == 32:
        raise RuntimeError("bad | cell\nsecond line")
    return affine.honest(values, scale)


@BOTH
@pytest.mark.parametrize(
    "options",
    [
        ("--sizes", "8", "9"),
        ("--sizes", "8", "16", "32", "2000"),
        ("--sizes", "2000"),
        ("--mode", "nothing"),
        ("--device", "npu"),
    ],
)
def test_report_of_any_run_follows_the_published_schema(
    world: World, command: str, options: tuple[str, ...]
) -> None:
    need("jsonschema")
    world.plant(_odd)
    _check(world.run(command, *options, "--revision", "abc").report)


@BOTH
def test_schema_refuses_a_success_without_a_passing_case(world: World, command: str) -> None:
    need("jsonschema")
    import jsonschema

    good = world.run(command).report
    _check(good)
    death = {"rank": 0, "case_id": None, "stage": "end", "ending": "status 66"}
    for path, value in (
        (("coverage", "passed"), 0),
        (("coverage", "failed"), 1),
        (("exit_code",), 1),
        (("rows", 0, "status"), "failed"),
        (("rows", 0, "title"), "x"),
        (("schema_version",), 3),
        (("processes", "deaths"), [death]),
        (("processes", "lost"), [1]),
        (("ranks",), 0),
        (("receipt", "plan_hash"), "1"),
        (("rows", 0, "reproduce"), "python"),
        (("rows", 0, "crashed"), True),
    ):
        bad = json.loads(json.dumps(good))
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
        assert not validator.is_valid(bad), path


@BOTH
def test_metadata_and_results_cannot_overwrite_identity(world: World, command: str) -> None:
    """The suite returns metadata and verdicts that carry the identity fields' names."""
    outcome = world.run(command)
    (row,) = outcome.rows
    assert (row["operation"], row["implementation"]) == ("affine", "cpu.plain.affine")
    assert (row["case_id"], row["status"]) == ("affine/8/scale3.0", "passed")
    assert row["parameters"] == {"size": 8, "scale": 3.0}
    assert row["metadata"]["case_id"] == "stolen"
    assert row["validation"]["function"]["case_id"] == "stolen"


@BOTH
def test_what_was_built_is_in_both_forms(world: World, command: str) -> None:
    outcome = world.run(command)
    assert outcome.report["receipt"]["build"] == ["by hand | at home", "of another revision"]
    section = "## Built as\n\n- by hand \\| at home\n- of another revision\n\n## Candidates"
    assert section in outcome.markdown


@BOTH
def test_caveats_are_said_in_every_form(
    world: World, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = world.run(command)
    assert outcome.report["receipt"]["caveats"] == ["taken | as found"]
    before, _, _ = outcome.markdown.partition("| fact | value |")
    assert "**taken \\| as found**" in before
    assert "  taken | as found\n" in capsys.readouterr().out


def test_nonfinite_numbers_become_strings_and_the_file_is_strict_json(world: World) -> None:
    (row,) = world.run("numerics").rows
    assert row["metadata"]["limit"] == "inf"
    assert row["validation"]["function"]["nonfinite"] == ["nan", "inf", "-inf"]


def test_json_value_turns_anything_into_json() -> None:
    value = {1: (1, 2), "set": {3}, "path": Path("a"), "nan": math.nan, "no": None, "yes": True}
    assert json_value(value) == {
        "1": [1, 2],
        "set": [3],
        "path": "a",
        "nan": "nan",
        "no": None,
        "yes": True,
    }


def test_written_report_can_be_read_by_all_and_differs_by_lines(world: World) -> None:
    world.run("numerics")
    for suffix in (".json", ".md"):
        assert (world._folder / f"numerics{suffix}").stat().st_mode & 0o777 == 0o644
    text = (world._folder / "numerics.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_number_that_json_has_no_word_for_is_refused_and_the_old_report_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world._folder / "r.json"
    argv = ["--implementation", "cpu.plain.affine", "--output", str(path)]
    report = report_module.Report(arguments.parse("numerics", argv), {})
    report.write("page")
    before = path.read_text()
    monkeypatch.setattr(report_module.Report, "as_dict", lambda self: {"limit": math.nan})
    with pytest.raises(ValueError, match="JSON"):
        report.write("another page")
    assert path.read_text() == before
    assert path.with_suffix(".md").read_text() == "page"


def test_durations_of_a_step_add_up_in_its_row_and_over_all(world: World) -> None:
    request = arguments.parse("numerics", ["--implementation", "cpu.plain.affine"])
    report = report_module.Report(request, {})
    rows = [report_module.Row(f"a/{n}", {}) for n in range(3)]
    report.rows += rows
    for row, seconds in ((rows[0], 0.25), (rows[0], 0.5), (rows[2], 1.0)):
        row.add_duration("warmup_s", seconds)
    rows[1].add_duration("capture_s", 4.0)
    assert rows[0].durations == {"warmup_s": 0.75}
    document = report.as_dict()
    assert (document["warmup_s"], document["capture_s"]) == (1.75, 4.0)
    assert document["duration_s"] >= 0
    report.write("nowhere")  # no output was asked for


def test_markdown_is_generic_and_survives_any_reason(world: World) -> None:
    world.plant(_odd)
    outcome = world.run("numerics", "--sizes", "8", "32", "2000")
    lines = outcome.markdown.splitlines()
    assert lines[0] == "# Numerical validation: cpu.plain.affine"
    assert lines[2] == "**ERROR  1 of 3 cases passed, 1 error, 1 n/a**"
    table = [line for line in lines if line.startswith("| affine/")]
    assert len(table) == 3
    assert any("RuntimeError: bad \\| cell second line" in line for line in lines)
    assert "- `cpu.other.affine`: override: overrides['affine'] chose 'cpu.plain.affine'" in lines


def test_terminal_shows_a_table_reasons_and_one_verdict(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.plant(_odd)
    world.run("numerics", "--sizes", "8", "16", "2000")
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert captured.err == ""
    assert lines[0].startswith("Numerical validation: cpu.plain.affine  (cpu eager, torch ")
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["affine/8/scale3.0", "passed"],
        ["affine/16/scale3.0", "failed"],
        ["affine/2000/scale3.0", "n/a"],
    ]
    assert "FAILED  1 of 3 cases passed, 1 failed, 1 n/a" in lines
    assert max(map(len, lines[:6])) <= 120


def test_terminal_shows_no_table_of_cases_that_did_not_begin(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.run("numerics", "--mode", "nothing", "--sizes", "8", "9")
    shown = capsys.readouterr().out
    assert "affine/8" not in shown
    assert "--mode: must be one of eager" in shown


@BOTH
def test_report_exists_before_the_first_case_and_says_not_run(world: World, command: str) -> None:
    seen: list[Outcome] = []
    path = world._folder / f"{command}.json"

    def look(values: Any, scale: float) -> Any:
        seen.append(json.loads(path.read_text()))  # type: ignore[arg-type]
        return affine.honest(values, scale)

    world.plant(look)
    world.run(command)
    first: Any = seen[0]
    assert (first["status"], first["exit_code"], first["coverage"]["not_run"]) == (
        "not_run",
        None,
        1,
    )
    assert first["receipt"]["implementation"] == "cpu.plain.affine"


def test_interrupt_between_cases_keeps_what_was_done(world: World) -> None:
    def stop(values: Any, scale: float) -> Any:
        if len(values) == 16:
            raise KeyboardInterrupt
        return affine.honest(values, scale)

    world.plant(stop)
    outcome = world.run("benchmark", "--sizes", "8", "16", "32")
    assert (outcome.code, outcome.report["reason"]) == (130, "interrupted")
    assert [row["status"] for row in outcome.rows] == ["passed", "not_run", "not_run"]
    assert outcome.rows[0]["timings"] is not None


@pytest.mark.parametrize("at", [1, 2])
def test_interrupt_while_a_report_is_written_waits_and_leaves_no_litter(
    world: World, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    honest, made = report_module.tempfile.mkstemp, []

    def mkstemp(**options: Any) -> Any:
        made.append(honest(**options))
        if len(made) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return made[-1]

    argv = ["--implementation", "cpu.plain.affine", "--output", str(world._folder / "r.json")]
    report = report_module.Report(arguments.parse("numerics", argv), {})
    monkeypatch.setattr(report_module.tempfile, "mkstemp", mkstemp)
    with pytest.raises(KeyboardInterrupt):
        report.write("page")
    assert sorted(p.name for p in world._folder.iterdir()) == ["r.json", "r.md"]


def test_unwritable_output_exits_2_before_anything_runs(
    world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    argv = ["--implementation", "cpu.plain.affine", "--output", str(tmp_path / "file" / "r.json")]
    assert COMMANDS["numerics"](argv) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_replace_text_that_fails_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    with monkeypatch.context() as patch:
        patch.setattr(report_module.os, "fdopen", lambda *a, **k: _FailingFile(a[0]))
        with pytest.raises(OSError, match="disk full"):
            replace_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    replace_text(path, "new")
    assert path.read_text() == "new"


class _FailingFile:
    """Opens, then fails to write as a full disk does."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __enter__(self) -> _FailingFile:
        return self

    def __exit__(self, *arguments: object) -> None:
        os.close(self._handle)

    def write(self, text: str) -> None:
        raise OSError("disk full")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only() -> None:
    silent, shown = io.StringIO(), _Terminal()
    for stream in (silent, shown):
        progress = Progress(2, stream)
        progress.show("a/case")
        progress.clear()
    assert silent.getvalue() == ""
    assert "[1/2] a/case" in shown.getvalue()
    assert shown.getvalue().endswith("\r\x1b[K")
