"""Parts of a run: chosen cases, what follows a failure, the line that runs a case again."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import affine
import pytest
from mortal_world import run as run_mortal
from numerics_world import COMMANDS, World
from test_numerics_cli import NO_FRAMEWORK

from xllm_kernel.numerics import arguments, reproduce
from xllm_kernel.numerics.invariants import rows as guarantee_rows
from xllm_kernel.numerics.processes import wire
from xllm_kernel.numerics.processes.following import FAIL_FAST, KEEP_GOING, Next, following
from xllm_kernel.numerics.report import Row
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.receipts import Receipt
from xllm_kernel.registry import KernelRegistry, KernelSpec, OpContract, PreparedKernel

BOTH = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _ids(*sizes: int) -> list[str]:
    return [f"affine/{size}/scale3.0" for size in sizes]


@BOTH
def test_chosen_cases_run_alone_in_the_suites_order(world: World, command: str) -> None:
    outcome = world.run(command, "--sizes", "8", "9", "10", "--case", *reversed(_ids(8, 10)))
    assert outcome.code == 0
    assert [row["case_id"] for row in outcome.rows] == _ids(8, 10)
    assert outcome.report["coverage"]["total"] == 2


@BOTH
@pytest.mark.parametrize(
    ("case", "shown"),
    [
        ("affine/8/scale3", "the nearest are affine/8/scale3.0, affine/16/scale3.0"),
        ("zzz", "some are affine/8/scale3.0, affine/16/scale3.0"),
    ],
)
def test_unknown_case_is_a_usage_error_that_names_others(
    world: World, command: str, case: str, shown: str
) -> None:
    outcome = world.run(command, "--sizes", "8", "16", "--case", _ids(8)[0], case)
    assert (outcome.code, outcome.report["status"]) == (2, "error")
    assert f"{case!r} must be a case of this command line; {shown}" in outcome.report["reason"]
    assert "--list prints all" in outcome.report["reason"]
    assert "affine.plain" not in sys.modules  # known before anything is bound


@pytest.mark.parametrize(
    "options", [("--operation", "rms_norm"), ("--implementation", "cpu.torch.rms_norm")]
)
def test_list_prints_the_cases_without_framework_or_device(
    run_python: Callable[..., Any], options: tuple[str, str], tmp_path: Path
) -> None:
    shape = ("--rows", "1", "3", "--widths", "64", "--dtypes", "float32")
    output = ("--output", str(tmp_path / "r.json"), "--device", "npu")
    done = run_python(
        "-c", NO_FRAMEWORK, "xllm_kernel.numerics", *options, *shape, *output, "--list"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "rms_norm/float32/1x64/seed5309",
        "rms_norm/float32/3x64/seed5309",
    ]
    assert list(tmp_path.iterdir()) == []


def test_list_of_chosen_cases_is_what_would_run(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--operation", "affine", "--sizes", "8", "9", "--list", "--case"]
    assert COMMANDS["numerics"]([*argv, *_ids(9)]) == 0
    assert capsys.readouterr().out.split() == _ids(9)
    assert COMMANDS["numerics"]([*argv, "affine/9"]) == 2
    assert "'affine/9' must be a case" in capsys.readouterr().err
    assert COMMANDS["numerics"](["--operation", "affine", "--sizes", "8", "8", "--list"]) == 2


@pytest.fixture
def guarantees(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the implementation state two guarantees; returns those that were tried."""
    tried: list[str] = []

    def fill_in(row: Row, request: Any, plan: PreparedKernel) -> bool:
        tried.append(row.case_id)
        row.status = "passed"
        return False

    def rows(request: Any, plan: PreparedKernel, evidence: str | None) -> list[Row]:
        return [Row(f"affine/{name}", {}, evidence) for name in ("repeatable", "batch_invariant")]

    monkeypatch.setattr(guarantee_rows, "rows", rows)
    monkeypatch.setattr(guarantee_rows, "fill_in", fill_in)
    return tried


@pytest.mark.parametrize(
    ("cases", "tried"),
    [
        (("affine/batch_invariant",), ["affine/batch_invariant"]),
        ((*_ids(8), "affine/repeatable"), ["affine/repeatable"]),
        (_ids(8), []),
        ((), ["affine/repeatable", "affine/batch_invariant"]),
    ],
)
def test_guarantees_are_chosen_as_cases_are(
    world: World, guarantees: list[str], cases: tuple[str, ...], tried: list[str]
) -> None:
    outcome = world.run("numerics", *(("--case", *cases) if cases else ()))
    assert outcome.code == 0
    assert guarantees == tried
    chosen = list(cases) or [*_ids(8), *tried]
    assert [row["case_id"] for row in outcome.rows] == chosen


def test_guarantee_that_is_not_stated_is_a_usage_error(world: World, guarantees: list[str]) -> None:
    outcome = world.run("numerics", "--case", "affine/thread_invariant")
    assert outcome.code == 2
    reason = outcome.report["reason"]
    assert "must be a case or a stated guarantee of cpu.plain.affine" in reason
    assert "affine/batch_invariant" in reason


def test_benchmark_has_no_guarantees_to_choose(world: World, guarantees: list[str]) -> None:
    outcome = world.run("benchmark", "--case", "affine/repeatable")
    assert outcome.code == 2
    assert guarantees == []


def test_guarantees_of_a_run_whose_cases_failed_are_not_tried(
    world: World, guarantees: list[str]
) -> None:
    world.plant(lambda v, s: affine.honest(v, s * 1.01))
    assert world.run("numerics", "--case", *_ids(8), "affine/repeatable").code == 1
    assert guarantees == []


def _faulty(values: Any, scale: float) -> Any:
    if len(values) == 9:
        raise ValueError("out of order")
    return affine.honest(values, scale * 1.01 if len(values) == 8 else scale)


@BOTH
@pytest.mark.parametrize(
    ("options", "sizes", "states"),
    [
        ((), (8, 9, 10), ["failed", "error", "passed"]),
        (("--fail-fast",), (10, 8, 9), ["passed", "failed", "not_run"]),
        (("--fail-fast",), (9, 8, 10), ["error", "not_run", "not_run"]),
        (("--fail-fast",), (2000, 10, 8), ["not_applicable", "passed", "failed"]),
        (("--keep-going",), (8, 9, 10), ["failed", "error", "passed"]),
    ],
)
def test_failure_ends_the_run_only_where_it_shall(
    world: World, command: str, options: tuple[str, ...], sizes: tuple[int, ...], states: list[str]
) -> None:
    world.plant(_faulty)
    outcome = world.run(command, "--sizes", *map(str, sizes), *options)
    assert [row["status"] for row in outcome.rows] == states
    assert outcome.code == (4 if "error" in states else 1)


@pytest.mark.parametrize(("options", "second"), [((), "not_run"), (("--keep-going",), "passed")])
def test_failed_capture_ends_the_run_unless_it_shall_keep_going(
    world: World, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], second: str
) -> None:
    honest, calls = CpuPlatform.capture, []

    def capture(self: CpuPlatform, *arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("no graph")
        return honest(self, *arguments, **options)

    monkeypatch.setattr(CpuPlatform, "capture", capture)
    outcome = world.run("numerics", "--sizes", "8", "9", *options)
    assert outcome.code == 4
    assert [row["status"] for row in outcome.rows] == ["error", second]


def test_fail_fast_and_keep_going_exclude_each_other(world: World) -> None:
    with pytest.raises(SystemExit) as raised:
        world.run("numerics", "--fail-fast", "--keep-going")
    assert raised.value.code == 2


@pytest.mark.parametrize(
    ("on_failure", "status", "stage", "died", "recovers", "wanted"),
    [
        (None, "passed", None, False, True, Next.GO_ON),
        (None, "not_applicable", "support", False, False, Next.GO_ON),
        (None, "failed", "validate function", False, False, Next.GO_ON),
        (None, "error", "validate function", False, True, Next.GO_ON),
        (None, "error", "validate function", False, False, Next.STOP),
        (None, "error", "capture", False, True, Next.STOP),
        (None, "error", "replay", False, True, Next.STOP),
        (None, "error", "replay", True, True, Next.GO_ON),
        (None, "error", "replay", True, False, Next.STOP),
        (FAIL_FAST, "passed", None, False, True, Next.GO_ON),
        (FAIL_FAST, "failed", "validate function", False, True, Next.STOP),
        (FAIL_FAST, "error", "replay", True, True, Next.STOP),
        (KEEP_GOING, "failed", "validate function", False, True, Next.GO_ON),
        (KEEP_GOING, "error", "capture", False, True, Next.AFRESH),
        (KEEP_GOING, "error", "validate function", False, False, Next.AFRESH),
    ],
)
def test_what_follows_a_row(
    on_failure: str | None, status: str, stage: str | None, died: bool, recovers: bool, wanted: Next
) -> None:
    assert following(on_failure, status, stage, died, recovers) is wanted


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("--rows 1 16 --output a.json --seed 3", "--rows 1 16 --seed 3"),
        ("--output=a.json --rows 1 16", "--rows 1 16"),
        ("--case a b --rows 1", "--rows 1"),
        ("--case=a --rows 1", "--rows 1"),
        ("--fail-fast --rows 1 --keep-going --list", "--rows 1"),
        ("--revision x --eps -1 --implementation c", "--eps -1 --implementation c"),
        ("--rows 1 --case a b", "--rows 1"),
        ("--output a.json stray --list other --rows 1", "stray other --rows 1"),
    ],
)
def test_options_that_say_nothing_of_a_case_are_left_out(arguments: str, kept: str) -> None:
    assert reproduce.of_the_case(arguments.split()) == kept.split()


def test_line_that_runs_a_case_has_our_variables_in_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("XLLM_KERNEL_Z", "a b"), ("XLLM_KERNEL_A", "1"), ("OTHER", "2")):
        monkeypatch.setenv(name, value)
    request = arguments.parse("numerics", ["--implementation", "cpu.plain.affine"])
    start = "XLLM_KERNEL_A=1 XLLM_KERNEL_Z='a b' python -m xllm_kernel.numerics "
    line = reproduce.line(request, "it's")
    assert line == start + "--implementation cpu.plain.affine --case 'it'\"'\"'s'"


@BOTH
def test_failing_rows_alone_have_a_line_that_runs_them(world: World, command: str) -> None:
    world.plant(_faulty)
    outcome = world.run(command, "--sizes", "8", "9", "10", "2000", "--revision", "x")
    lines = [row["reproduce"] for row in outcome.rows]
    assert lines[2:] == [None, None]
    quick = "--iterations 2 --repeats 3 " if command == "benchmark" else ""
    for line, size in zip(lines, (8, 9), strict=False):
        assert line == (
            f"python -m xllm_kernel.{command} --implementation cpu.plain.affine "
            f"--sizes 8 9 10 2000 {quick}--case affine/{size}/scale3.0"
        )


def test_row_goes_over_the_wire_whole_but_for_objects() -> None:
    row = Row("a", {}, status="failed", metadata={"path": Path("p"), "limit": math.inf})
    row.validation["function"] = {"ratio": math.nan, "shape": (1, 2)}
    event = wire.decode(wire.encode({"event": "row", "results": row.results()}))
    taken = Row("a", {})
    taken.take(event["results"])
    assert (taken.status, taken.metadata) == ("failed", {"path": "p", "limit": math.inf})
    assert math.isnan(taken.validation["function"]["ratio"])
    assert taken.validation["function"]["shape"] == [1, 2]


def test_lines_are_put_together_and_others_refused() -> None:
    lines = wire.Lines()
    data = wire.encode({"event": "a", "text": "\n\u2028\ud800"}) + wire.encode({"event": "b"})
    got = [event for i in range(len(data)) for event in lines.feed(data[i : i + 1])]
    assert [event["event"] for event in got] == ["a", "b"]
    assert got[0]["text"] == "\n\u2028\ud800"
    for bad in (b"x\n", b"[]\n", b"{}\n", b"\xff\n", b'{"event": 1}\n'):
        with pytest.raises(wire.GarbledError):
            list(wire.Lines().feed(bad))


def test_run_in_this_process_says_that_it_was_not_isolated(world: World) -> None:
    processes = world.run("numerics").report["processes"]
    assert processes == {"isolated": False, "restarts": 0, "deaths": [], "lost": []}


SPEC = KernelSpec(
    name="cpu.a.op",
    contract=OpContract("op"),
    device="cpu",
    execution_modes=("eager",),
    input_domain="all",
    solution="a",
    build=("library sha256 1",),
)
PLAN = PreparedKernel(SPEC, print, 1, ())


@pytest.mark.parametrize(
    "changed",
    [
        replace(PLAN, spec=replace(SPEC, name="cpu.b.op")),
        replace(PLAN, spec=replace(SPEC, build=("library sha256 2",))),
        replace(PLAN, spec=replace(SPEC, caveats=("taken as found",))),
        replace(PLAN, spec=replace(SPEC, guarantees=("repeatable",))),
        replace(PLAN, spec=replace(SPEC, input_domain="some")),
        replace(PLAN, spec=replace(SPEC, contract=OpContract("op", version=2))),
        replace(PLAN, spec=replace(SPEC, contract=OpContract("op", conventions=("tie: even",)))),
        replace(PLAN, function=len),
    ],
)
def test_plan_hash_tells_another_choice(changed: PreparedKernel) -> None:
    assert Receipt.of(changed).plan_hash != Receipt.of(PLAN).plan_hash


def test_plan_hash_tells_another_version_of_package_or_framework(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    receipts = sys.modules[Receipt.__module__]  # the package's function has its name
    before = Receipt.of(PLAN).plan_hash
    for module, name in ((receipts, "__version__"), (torch, "__version__")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, "0.0.other")
            assert Receipt.of(PLAN).plan_hash != before


def test_plan_hash_is_that_of_the_choice_alone() -> None:
    same = replace(PLAN, generation=2, excluded=(("cpu.b.op", "priority: lower"),))
    assert Receipt.of(same).plan_hash == Receipt.of(PLAN).plan_hash


def test_plan_hash_is_equal_in_other_processes_unless_the_build_differs(tmp_path: Path) -> None:
    builds = ("1", "1", "2")
    hashes = [run_mortal(tmp_path, MORTAL_BUILD=n).report["receipt"]["plan_hash"] for n in builds]
    assert hashes[0] == hashes[1] != hashes[2]


def test_registry_is_left_alone_by_a_listing(world: World) -> None:
    COMMANDS["numerics"](["--operation", "affine", "--list"])
    assert KernelRegistry.get().published is None
