"""The command line of a comparison: exit codes, table, JSON and what it loads."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchmark_documents as made
import pytest
from conftest import PACKAGE_ROOT, REPOSITORY_ROOT, need

from xllm_kernel.benchmark.past.compare import compare, main, terminal
from xllm_kernel.benchmark.past.documents import load

SCHEMA = REPOSITORY_ROOT / "docs" / "schema" / "comparison.schema.json"


def _report(path: Path, factor: float = 1.0, **more: Any) -> Path:
    rows = [
        made.row(
            shape=shape,
            threads=more.get("threads", 1),
            regimes={"hot": made.figures(made.samples(number, 10.0 * factor))},
        )
        for number, shape in enumerate(made.SHAPES)
    ]
    document = made.document(rows) | {k: v for k, v in more.items() if k != "threads"}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return _report(tmp_path / "old.json")


def test_compare_exit_codes_are_those_that_are_published(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.json"
    for code, word, fields in (
        (0, "NO REGRESSION", {}),
        (1, "REGRESSION", {"factor": 1.3}),
        (3, "NOT COMPARABLE  threads: 1 in OLD, 2 in NEW", {"threads": 2}),
        (3, "NOT COMPARABLE  mode", {"mode": "compile"}),
        (5, "AMBIGUOUS", {"factor": 1.06}),
    ):
        _report(new, **fields)
        assert main([str(old), str(new)]) == code
        assert capsys.readouterr().out.splitlines()[-1].startswith(word)


@pytest.mark.parametrize("width", [70, 80, 120])
def test_compare_fits_the_width_and_keeps_what_decides(
    old: Path, tmp_path: Path, width: int
) -> None:
    new = _report(tmp_path / "new.json", 1.3)
    head, *rest = terminal(compare(load(old), load(new)), width).partition("\n\n")[2].splitlines()
    rows = rest[: len(made.SHAPES)]
    assert max(len(line) for line in [head, *rows]) <= width
    assert head.split()[0] == "case"
    assert "ratio [low, high]" in head
    assert head.split()[-1] == "verdict"
    assert all("1.300 [1." in row and row.endswith("SLOWER") for row in rows)
    assert len({row.split()[0] for row in rows}) == len(made.SHAPES)
    said = "\n".join(rest)
    assert "  cases: affine/bfloat16/*/seed5309\n" in said
    assert ("  implementation: cpu.simd.affine\n" in said) == (width < 120)
    assert ("want of width: " in said) == (width < 120)


def test_compare_keeps_threads_and_regimes_that_differ(tmp_path: Path) -> None:
    hot, cold = made.figures(made.samples(1, 10.0)), made.figures(made.samples(2, 20.0))
    rows = [made.row(threads=n, regimes={"hot": hot, "cold": cold}) for n in (1, 2)]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(made.document(rows)), encoding="utf-8")
    table = terminal(compare(load(path), load(path)), 60).partition("\n\n")[2].splitlines()[:5]
    words = [line.split() for line in table]
    assert {"regime", "threads"} <= set(words[0])
    names = {tuple(w for w in row if w in ("hot", "cold", "1", "2")) for row in words[1:]}
    assert names == {(regime, n) for regime in ("hot", "cold") for n in ("1", "2")}


def test_compare_shows_what_would_steer_a_terminal(tmp_path: Path, old: Path) -> None:
    document = json.loads(old.read_text())
    document["rows"][0]["case_id"] = "\x1b]0;title\x07"
    document["revision"] = "\x1b[2J"
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    shown = terminal(compare(load(path), load(old)), 100) + terminal(
        compare(load(old), load(path)), 100
    )
    assert not set(shown) & {"\x1b", "\x07"}
    assert "\\x1b]0;title\\x07" in shown


def test_compare_of_a_simulated_report_exits_3_with_the_notice(old: Path, tmp_path, capsys) -> None:
    path = tmp_path / "simulated.json"
    path.write_text(json.dumps(made.simulated()), encoding="utf-8")
    assert main([str(path), str(path)]) == 3
    assert "no evidence of accuracy or performance" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "numerics"}'])
def test_compare_of_what_is_no_report_exits_2_and_names_it(
    content: str, old: Path, tmp_path, capsys
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(content)
    assert main([str(old), str(bad)]) == 2
    assert "bad.json" in capsys.readouterr().err


@pytest.mark.parametrize("gate", ["5", "0", "-1%", "x", "100%", "nan", "%"])
def test_compare_with_a_gate_that_is_no_share_exits_2(gate: str, old: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(old), str(old), f"--gate={gate}"])
    assert ended.value.code == 2
    assert "such as 5% or 0.05" in capsys.readouterr().err


@pytest.mark.parametrize("gate", ["50%", "0.5"])
def test_compare_with_a_wide_gate_passes_30_per_cent(gate: str, old: Path, tmp_path) -> None:
    assert main([str(old), str(_report(tmp_path / "n.json", 1.3)), "--gate", gate]) == 0


def test_compare_prints_the_worst_first(tmp_path: Path, capsys) -> None:
    document = json.loads(_report(tmp_path / "a.json").read_text())
    column = document["rows"][7]["timings"]["regimes"]["hot"]["wall_us"]
    column["samples"] = [1.5 * sample for sample in column["samples"]]
    (tmp_path / "b.json").write_text(json.dumps(document))
    assert main([str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    table = [line for line in capsys.readouterr().out.splitlines() if "affine/" in line]
    assert document["rows"][7]["case_id"] in table[0]
    assert "1.500 [" in table[0]
    assert ["SLOWER" in line for line in table] == [True] + [False] * 11


def test_compare_says_what_the_yardstick_is_and_what_may_settle_ambiguous_rows(
    old: Path, tmp_path: Path, capsys
) -> None:
    assert main([str(old), str(old)]) == 0
    shown = capsys.readouterr().out
    assert "  yardstick: what else both runs timed" in shown
    assert "  AMBIGUOUS: run again" not in shown
    document = json.loads(old.read_text())
    document["rows"][0]["timings"]["regimes"]["hot"]["unstable"] = ["throttled"]
    (tmp_path / "b.json").write_text(json.dumps(document))
    assert main([str(tmp_path / "b.json"), str(old)]) == 5
    assert "  AMBIGUOUS: run again" in capsys.readouterr().out


def test_compare_with_rows_that_were_lost_does_not_pass(old: Path, tmp_path: Path, capsys) -> None:
    document = json.loads(old.read_text())
    document["rows"][0].update(status="failed", reason="wrong by 9 ULP", timings=None)
    (tmp_path / "b.json").write_text(json.dumps(document))
    assert main([str(old), str(tmp_path / "b.json")]) == 5
    shown = capsys.readouterr().out
    assert "wrong by 9 ULP" in shown
    assert "1 rows of OLD have no figures in NEW" in shown


@pytest.mark.parametrize("fields", [{}, {"factor": 1.3}, {"factor": 1.06}, {"threads": 2}])
def test_compare_output_follows_its_schema(fields: dict[str, Any], old: Path, tmp_path) -> None:
    need("jsonschema")
    import jsonschema

    output = tmp_path / "c.json"
    new = _report(tmp_path / "new.json", **fields)
    code = main([str(old), str(new), "--output", str(output)])
    written = json.loads(output.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert list(validator.iter_errors(written)) == []
    assert written["exit_code"] == code
    assert list(validator.iter_errors(written | {"exit_code": 1 if code != 1 else 0}))


@pytest.mark.parametrize(
    ("stdout", "encoding"), [("> /dev/full", "utf-8"), (">&-", "utf-8"), ("", "ascii")]
)
def test_output_that_nobody_can_read_changes_no_exit_code(
    old: Path, tmp_path: Path, stdout: str, encoding: str
) -> None:
    """A crash would exit 1, which says that there is a regression."""
    other = _report(tmp_path / "other.json", revision="gr\xfcn \u2713")
    command = [sys.executable, "-m", "xllm_kernel.benchmark", "compare", str(old), str(other)]
    env = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT / "python"), "PYTHONIOENCODING": encoding}
    line = f"{shlex.join(command)} {stdout}"
    done = subprocess.run(line, shell=True, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_compare_output_that_cannot_be_written_exits_2(old: Path, tmp_path: Path, capsys) -> None:
    assert main([str(old), str(old), "--output", str(tmp_path)]) == 2
    assert "must be a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["compare", "history"])
def test_help_loads_no_framework(command: str, run_python) -> None:
    code = (
        f"import sys; from xllm_kernel.benchmark.past.{command} import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    shown = run_python("-c", code, env={"PYTHONPATH": "xllm-kernel/python"}).stdout
    assert shown.splitlines()[-1] == "0 False"
    assert "Exit codes: 0" in shown
