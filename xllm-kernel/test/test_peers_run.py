"""The comparison run whole, on libraries of files that a test wrote, and what its pages add."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY_ROOT, need
from side_modules import BENCH, load_bench

import xllm_kernel

need("torch")

main = load_bench("peers.__main__")
page = load_bench("peers.page")
operations = load_bench("peers.operations").operations()

OURS = """
from dataclasses import replace
from peers.libraries.torch_eager import PEER as EAGER
PEER = replace(EAGER, name="mine")
"""
RIGHT = OURS.replace("mine", "right")
WRONG = """
from peers.peer import Call, Library, Peer, standing
def bind(api, a):
    return Call(lambda: (a["output"].copy_(a["input"]), None)[1], standing(a["output"]))
PEER = Peer("wrong", lambda: Library(None, ("1.0",)), {("rms_norm", "out"): bind})
"""
MISSING = """
from peers.peer import Peer, version
PEER = Peer("missing", lambda: version("no-such-thing"), {})
"""
BROKEN = """
from peers.peer import Peer

PEER = Peer(undefined)
"""
RUN = """
import sys
from pathlib import Path
from peers.__main__ import main
raise SystemExit(main(sys.argv[2:], Path(sys.argv[1])))
"""
PATHS = {"PYTHONPATH": os.pathsep.join([str(BENCH), str(Path(xllm_kernel.__file__).parents[1])])}
QUICK = ("--forms", "out", "--shapes", "3x64", "--dtypes", "bfloat16", "--budget", "0.01")


def run(run_python: Callable[..., Any], folder: Path, *options: str, **files: str) -> Any:
    libraries = folder / "libraries"
    libraries.mkdir()
    for stem, text in files.items():
        (libraries / f"{stem}.py").write_text(text, encoding="utf-8")
    output = folder / "rms_norm.json"
    line = ["-c", RUN, str(libraries), "rms_norm", *QUICK, *options, "--output", str(output)]
    done = run_python(*line, env=PATHS)
    assert output.exists(), done.stderr
    return done, json.loads(output.read_text(encoding="utf-8")), output


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import subprocess
    import sys

    def run_python(*arguments: str, env: dict[str, str]) -> Any:
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **env},
            timeout=240,
            check=False,
        )

    files = {"ours": OURS, "right": RIGHT, "wrong": WRONG, "gone": MISSING, "broken": BROKEN}
    return run(run_python, tmp_path_factory.mktemp("peers"), **files)


def rows_of(document: dict, name: str) -> list[dict]:
    return [row for row in document["rows"] if row["implementation"] == name]


def test_a_library_that_a_file_adds_is_timed_and_compared_with_ours(whole: Any) -> None:
    done, document, _ = whole
    assert done.returncode == 0, done.stderr
    assert document["baseline"] == "mine"
    assert [row["threads"] for row in rows_of(document, "right")] == [1, 2]
    for row in rows_of(document, "right"):
        figures = row["timings"]["regimes"]["hot"]
        assert figures["wall_us"]["samples"]
        against = figures["against"]  # None where the machine left too few rounds alone
        assert against is None or against["baseline"] == "mine"
        assert against is None or against["threads"] == row["threads"]
        phases = ("function", "captured", "after_timing", "fresh_data")
        assert [row["validation"][phase]["status"] for phase in phases] == ["passed"] * 4
        assert row["validation"]["function"]["max_error_steps"] <= 2.0


def test_a_wrong_library_gets_no_figures_and_the_others_go_on(whole: Any) -> None:
    _, document, _ = whole
    for row in rows_of(document, "wrong"):
        assert (row["status"], row["timings"]) == ("failed", None)
        assert row["reason"].startswith("wrong: ")
    assert all(row["status"] == "passed" for row in rows_of(document, "mine"))


def test_a_missing_library_is_listed_with_the_reason(whole: Any) -> None:
    done, document, output = whole
    assert {(one["name"], one["reason"]) for one in document["missing"]} == {
        ("missing", "not installed: no-such-thing; pip says why it failed"),
        ("broken", "broken.py, line 4: NameError: name 'undefined' is not defined"),
    }
    assert not rows_of(document, "missing")
    assert "not installed: no-such-thing" in output.with_suffix(".md").read_text(encoding="utf-8")
    assert "not installed: no-such-thing" in done.stdout


def test_the_pages_say_forms_versions_and_the_gain_of_two_threads(whole: Any) -> None:
    done, document, output = whole
    text = output.with_suffix(".md").read_text(encoding="utf-8")
    assert "- wrong: 1.0" in text
    assert "one output of the caller's" in text
    for shown in (text, done.stdout):
        assert "| out/bfloat16/3x64 |" in shown
    assert document["command"][:3] == ["./dev", "bench", "rms_norm"]
    assert output.with_suffix(".html").exists()


def test_the_report_is_as_the_published_schema_says(whole: Any) -> None:
    need("jsonschema")
    import jsonschema

    schema = json.loads((REPOSITORY_ROOT / "docs/schema/report.schema.json").read_text())
    problems = jsonschema.Draft202012Validator(schema).iter_errors(whole[1])
    assert not [f"{problem.json_path}: {problem.message}" for problem in problems]


def test_an_output_that_is_no_json_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("rms_norm", "--output", "report.md")
    assert "must end in .json, got 'report.md'" in capsys.readouterr().err


def test_a_failing_row_names_the_command_that_runs_it_again(whole: Any) -> None:
    _, document, _ = whole
    (first, _) = rows_of(document, "wrong")
    assert "./dev bench rms_norm" in first["reproduce"]
    assert first["reproduce"].endswith("--case out/bfloat16/3x64")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PEER = (", "it.py, line 1: SyntaxError: '(' was never closed"),
        ("PEER = 5", "it.py: ImportError: "),
        ("\nimport no_such", "it.py, line 2: ModuleNotFoundError: No module named 'no_such'"),
    ],
)
def test_a_file_that_defines_no_library_is_one_that_does_not_load(
    text: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "it.py").write_text(text, encoding="utf-8")
    (peer,) = main.discover(tmp_path).values()
    assert peer.name == "it"
    with pytest.raises(load_bench("peers.peer").PeerError) as caught:
        peer.load()
    assert why in str(caught.value)


@pytest.mark.parametrize("ours", [BROKEN, MISSING, WRONG.replace('"wrong"', '"mine"')])
def test_without_ours_the_command_fails(
    run_python: Callable[..., Any], tmp_path: Path, ours: str
) -> None:
    options = ("--threads", "1")
    done, document, _ = run(run_python, tmp_path, *options, ours=ours, right=RIGHT)
    assert done.returncode == 1
    assert document["status"] != "passed"


def figures(rounds: list[int], samples: list[float], **ceilings: float) -> dict:
    roofline = {"ceilings_us": ceilings} if ceilings else None
    timings = {"rounds": rounds, "wall_us": {"samples": samples}, "roofline": roofline}
    timings["unstable"] = []
    return {"regimes": {"hot": timings}}


def document(*rows: tuple[str, int, str, dict | None]) -> dict:
    return {
        "baseline": "mine",
        "rows": [
            {"implementation": name, "threads": threads, "case_id": case, "timings": timings}
            for name, threads, case, timings in rows
        ],
    }


def test_the_gain_of_two_threads_pairs_rounds_that_both_have() -> None:
    one = figures([0, 1, 2, 4], [10.0, 20.0, 30.0, 99.0], copy=6.0, fma=1.0)
    two = figures([0, 1, 2, 3], [5.0, 10.0, 15.0, 1.0], copy=4.0, fma=1.0)
    told = page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", two), ("x", 1, "a", one)))
    assert told == [("case", "mine", "best copy"), ("a", "2.00 [2.00, 2.00]", "1.50")]


@pytest.mark.parametrize("change", [{"unstable": ["x"]}, {"roofline": {"impossible": True}}])
def test_no_gain_of_figures_from_which_nothing_is_concluded(change: dict) -> None:
    one, two = figures([0, 1, 2], [2.0] * 3), figures([0, 1, 2], [1.0] * 3)
    (_, cells) = page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", two)))
    assert cells[1] == "2.00 [2.00, 2.00]"
    two["regimes"]["hot"] |= change
    (_, cells) = page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", two)))
    assert cells[1] == "-"


def test_the_best_copy_is_the_quickest_of_each_number_of_threads() -> None:
    one = figures([0, 1, 2], [1.0] * 3, **{"copy": 6.0, "streaming copy": 8.0})
    two = figures([0, 1, 2], [1.0] * 3, **{"copy": 5.0, "streaming copy": 3.0})
    (_, cells) = page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", two)))
    assert cells == ("a", "1.00 [1.00, 1.00]", "2.00")


def test_too_few_common_rounds_or_no_ceilings_give_a_dash() -> None:
    one, two = figures([0, 1, 2], [1.0] * 3), figures([2, 3, 4], [1.0] * 3)
    (_, cells) = page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", two)))
    assert cells == ("a", "-", "-")


def test_without_both_numbers_of_threads_there_is_no_table_of_gains() -> None:
    one = figures([0, 1, 2], [1.0] * 3)
    assert page.gains(document(("mine", 1, "a", one), ("mine", 2, "a", None))) == []


def options(*words: str) -> Any:
    return main._parser(operations).parse_args(words)


@pytest.mark.parametrize("name", sorted(operations))
def test_large_shapes_go_to_the_callers_memory_alone(name: str) -> None:
    sizes = main._sizes(operations[name], options(name))
    assert list(sizes) == [form.name for form in operations[name].forms]
    for form, found in sizes.items():
        largest = max(one.rows * one.width for one in found)
        assert (largest > 1 << 20) is operations[name].form(form).callers_memory
        assert len(found) == 2 * (6 if largest > 1 << 20 else 4)


def test_shapes_that_are_asked_for_go_to_every_form() -> None:
    chosen = options("rms_norm", "--shapes", "7x9", "--dtypes", "float16", "--forms", "allocating")
    (found,) = main._sizes(operations["rms_norm"], chosen)["allocating"]
    assert (found.dtype, found.rows, found.width) == ("float16", 7, 9)


@pytest.mark.parametrize("shape", ["7", "0x9", "7x", "axb", "7x9x2"])
def test_a_shape_that_is_none_is_refused(shape: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("rms_norm", "--shapes", shape)
    assert f"ROWSxWIDTH as 16x6144, got '{shape}'" in capsys.readouterr().err


def test_listing_libraries_and_operators_loads_no_framework(
    run_python: Callable[..., Any],
) -> None:
    code = (
        "import sys, peers.__main__ as m; m.discover(); m.operations(); "
        "print('torch' in sys.modules)"
    )
    done = run_python("-c", code, env=PATHS)
    assert done.stdout.strip() == "False", done.stderr
