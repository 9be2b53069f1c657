"""The comparer, the guard and the reporter under attack: each planted defect changes a verdict.

A scene is a result, right or wrong, with the check that must fail it. A defect that no scene
notices means that the check it disables could be deleted without a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import affine
import pytest
import torch
from numerics_world import World

from xllm_kernel.numerics import compare, storage, ulp
from xllm_kernel.numerics.compare import Expected, judge
from xllm_kernel.numerics.report import Report, json_value
from xllm_kernel.numerics.storage import ArgumentGuard
from xllm_kernel.numerics.tolerance import Earned, ErrorSummary

EARNED = Earned(factor=1.5, worst=0.5, rms=0.29, draws=1)
PASSED = "passed"


def _good() -> torch.Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(11))


def _want(reference: torch.Tensor | None = None, **changes: Any) -> Expected:
    exact = _good().double() if reference is None else reference
    want = Expected(exact, torch.float32, torch.device("cpu"), EARNED, strides=(8, 1))
    return replace(want, **changes)


def _with(row: int, column: int, value: float) -> torch.Tensor:
    changed = _good()
    changed[row, column] = value
    return changed


def _ulps_off(count: int) -> torch.Tensor:
    changed = _good()
    changed.view(torch.int32)[3, 5] += count
    return changed


def _everywhere_off(ulps: float) -> torch.Tensor:
    """Return exact values from which every element of the good result is so far off."""
    exact = _good().double()
    return exact + ulps * ulp.spacing(exact.abs(), ulp.format_of(torch.float32))


def _judge(result: object, want: object = None, guard: ArgumentGuard | None = None, **more) -> str:
    expected = _want() if want is None else want
    function = result if callable(result) else lambda: result
    verdict = judge(function, expected, guard or ArgumentGuard({}), **more)
    return verdict["check"] or verdict["status"]


def _spoil(place: str, changes: tuple[str, ...] = (), value: float = 2.0) -> str:
    """Judge a good result of a call that wrote to an argument."""
    whole = torch.ones(4, 6)
    arguments = {"x": whole[:, :4], "out": torch.zeros(4)}
    guard = ArgumentGuard(arguments, mutates=("out",), changes=changes)

    def call() -> torch.Tensor:
        if place == "element":
            whole[3, 3] = value
        elif place == "gap":
            whole[1, 5] = value
        elif place == "out":
            arguments["out"].fill_(value)
        elif place == "size":
            arguments["x"].untyped_storage().resize_(8)
        return _good()

    ones = Expected(torch.ones(4).double(), torch.float32, torch.device("cpu"), EARNED)
    return _judge(call, guard=guard, written={"out": ones} if place == "out" else None)


def _share(second: bool) -> str:
    """Judge an output that lies in an argument's storage, or in another output's."""
    buffer = torch.zeros(20, 8)
    first, other = buffer[:6].copy_(_good()), buffer[8:14].copy_(_good())
    if second:
        return _judge((first, other), (_want(), _want()))
    return _judge(other, guard=ArgumentGuard({"x": first}))


INFINITE = _want(reference=_with(2, 2, math.inf).double())
UNDEFINED = torch.ones(6, 8, dtype=torch.bool)
UNDEFINED[3, 5] = False

SCENES: dict[str, tuple[Callable[[], str], set[str]]] = {
    "good": (lambda: _judge(_good()), {PASSED}),
    "good pair": (lambda: _judge((_good(), _good()), (_want(), _want())), {PASSED}),
    "other keys": (lambda: _judge({"a": _good()}, {"b": _want()}), {"structure"}),
    "subclass": (lambda: _judge(torch.nn.Parameter(_good())), {"structure"}),
    "one row for all": (lambda: _judge(_good()[:1]), {"shape"}),
    "half precision": (lambda: _judge(_good().half()), {"dtype"}),
    "transposed": (lambda: _judge(_good().t().contiguous().t()), {"layout"}),
    "NaN": (lambda: _judge(_with(0, 0, math.nan)), {"nonfinite"}),
    "infinity kept": (lambda: _judge(_with(2, 2, math.inf), INFINITE), {PASSED}),
    "infinity dropped": (lambda: _judge(_with(2, 2, 3e38), INFINITE), {"nonfinite"}),
    "2 ULP in one element": (lambda: _judge(_ulps_off(2)), {"values"}),
    "0.6 ULP everywhere": (lambda: _judge(_good(), _want(_everywhere_off(0.6))), {"values"}),
    "0.4 ULP everywhere": (lambda: _judge(_good(), _want(_everywhere_off(0.4))), {PASSED}),
    "swapped": (
        lambda: _judge((_good(), -_good()), (_want(-_good().double()), _want())),
        {"values"},
    ),
    "undefined element": (lambda: _judge(_ulps_off(99), _want(checked=UNDEFINED)), {PASSED}),
    "nothing defined": (lambda: _judge(_good(), _want(checked=UNDEFINED & False)), {"values"}),
    "useless baseline": (
        lambda: _judge(_good(), _want(earned=replace(EARNED, worst=65.0))),
        {"values"},
    ),
    "input written": (lambda: _spoil("element"), {"mutation"}),
    "gap written": (lambda: _spoil("gap"), {"mutation", "memory"}),
    "input resized": (lambda: _spoil("size"), {"mutation"}),
    "argument written": (lambda: _spoil("out", ("out",), 1.0), {PASSED}),
    "argument written wrongly": (lambda: _spoil("out", ("out",), 2.0), {"values"}),
    "argument not written": (lambda: _spoil("nowhere", ("out",)), {"mutation"}),
    "output in an input": (lambda: _share(second=False), {"aliasing"}),
    "output in an output": (lambda: _share(second=True), {"aliasing"}),
}


def _noticed_by() -> set[str]:
    """Return the scenes whose verdict is not what it must be."""
    noticed = set()
    for name, (scene, allowed) in SCENES.items():
        try:
            seen = scene()
        except Exception as error:  # noqa: BLE001 (a defect may break what comes after it)
            seen = type(error).__name__
        if seen not in allowed:
            noticed.add(name)
    return noticed


def test_every_scene_has_its_verdict() -> None:
    assert _noticed_by() == set()


Plant = Callable[[pytest.MonkeyPatch], None]


def _unlooked(check: str) -> Plant:
    """Leave out one of the checks that look at each tensor."""
    kept = tuple((n, look) for n, look in compare._CHECKS_BY_TENSOR if n != check)
    assert len(kept) < len(compare._CHECKS_BY_TENSOR)
    return lambda patch: patch.setattr(compare, "_CHECKS_BY_TENSOR", kept)


def _instead(owner: object, name: str, make: Callable[[Any], object]) -> Plant:
    """Put something else in a function's place, made of the function itself."""
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def _summarize_badly(original: Callable[..., ErrorSummary]) -> Callable[..., ErrorSummary]:
    def summarize(*arguments: Any) -> ErrorSummary:
        summary = original(*arguments)
        summary.worst = summary.rms
        return summary

    return summarize


def _remember_no_copy(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: ArgumentGuard, arguments: Any, *rest: Any, **more: Any) -> None:  # noqa: N807
        original(self, arguments, *rest, **more)
        self._before = {name: storage.storage_bytes(t) for name, t in arguments.items()}

    return __init__


DEFECTS: dict[str, tuple[Plant, str]] = {
    "shapes not compared": (_unlooked("shape"), "one row for all"),
    "dtypes not compared": (_unlooked("dtype"), "half precision"),
    "strides not compared": (_unlooked("layout"), "transposed"),
    "nonfinite not compared": (_unlooked("nonfinite"), "infinity dropped"),
    "structure not compared": (
        _instead(compare, "_structure", lambda _: lambda *_: None),
        "subclass",
    ),
    "mean in place of the worst": (
        _instead(compare, "summarize", _summarize_badly),
        "2 ULP in one element",
    ),
    "first rows compared alone": (
        _instead(compare, "summarize", lambda f: lambda a, r, s, c=None: f(a[:3], r[:3], s)),
        "2 ULP in one element",
    ),
    "undefined elements compared": (
        _instead(compare, "summarize", lambda f: lambda a, r, s, c=None: f(a, r, s)),
        "undefined element",
    ),
    "worst element not limited": (
        _instead(Earned, "limit", lambda _: property(lambda self: math.inf)),
        "2 ULP in one element",
    ),
    "mean not limited": (
        _instead(Earned, "rms_limit", lambda _: property(lambda self: math.inf)),
        "0.6 ULP everywhere",
    ),
    "mean limited too much": (
        _instead(Earned, "rms_limit", lambda _: property(lambda self: 0.3)),
        "0.4 ULP everywhere",
    ),
    "any baseline trusted": (
        _instead(Earned, "trustworthy", lambda _: property(lambda self: True)),
        "useless baseline",
    ),
    "ULP four times as wide": (
        _instead(ulp, "spacing", lambda f: lambda *a: 4 * f(*a)),
        "2 ULP in one element",
    ),
    "outputs compared by any order": (
        _instead(
            compare, "summarize", lambda f: lambda a, r, *m: f(a, r.sign() * a.sign() * r, *m)
        ),
        "swapped",
    ),
    "written arguments not compared": (
        _instead(compare, "_compare", lambda f: lambda r, e, s, o: f(r, e, [], o)),
        "argument written wrongly",
    ),
    "elements digested, not storage": (
        _instead(
            storage,
            "storage_bytes",
            lambda _: lambda t: t.detach().contiguous().reshape(-1).view(torch.uint8),
        ),
        "gap written",
    ),
    "first bytes digested alone": (
        _instead(storage, "storage_bytes", lambda f: lambda t: f(t)[:16]),
        "input written",
    ),
    "arguments remembered by reference": (
        _instead(ArgumentGuard, "__init__", _remember_no_copy),
        "input written",
    ),
    "mutation not looked at": (
        _instead(ArgumentGuard, "mutation", lambda _: lambda self: None),
        "argument not written",
    ),
    "overlap by first address": (
        _instead(storage, "overlap", lambda _: lambda a, b: a.data_ptr() == b.data_ptr()),
        "output in an input",
    ),
    "outputs not held against each other": (
        _instead(
            ArgumentGuard,
            "alias",
            lambda f: (
                lambda self, outputs: next(filter(None, (f(self, [o]) for o in outputs)), None)
            ),
        ),
        "output in an output",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_planted_defect_changes_the_verdict_of_a_scene(
    monkeypatch: pytest.MonkeyPatch, defect: str
) -> None:
    plant, scene = DEFECTS[defect]
    plant(monkeypatch)
    assert scene in _noticed_by()


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _run_with_one_failure(world: World) -> bool:
    """Run two cases, one of them wrong; say whether the report tells so in every place."""
    world.plant(lambda values, scale: affine.honest(values, scale + (len(values) == 16)))
    outcome = world.run("numerics", "--sizes", "8", "16")
    states = [row["status"] for row in outcome.rows]
    coverage = outcome.report["coverage"]
    counted = {state: states.count(state) for state in coverage if state != "total"}
    return (
        outcome.code == 1
        and outcome.report["status"] == "failed"
        and coverage == {"total": len(states), **counted}
        and coverage["failed"] == 1
    )


def test_report_of_a_failure_tells_so_in_every_place(world: World) -> None:
    assert _run_with_one_failure(world)


def _count_failed_as_passed(original: Callable[[Report], dict[str, int]]) -> object:
    def coverage(self: Report) -> dict[str, int]:
        counts = original(self)
        return {**counts, "failed": 0, "passed": counts["passed"] + counts["failed"]}

    return coverage


@pytest.mark.parametrize(
    "plant",
    [
        _instead(Report, "coverage", _count_failed_as_passed),
        _instead(Report, "finish", lambda f: lambda self, *_: f(self, "passed", 0, None)),
    ],
    ids=["failed counted as passed", "every run passes"],
)
def test_planted_defect_of_the_reporter_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, plant: Plant
) -> None:
    plant(monkeypatch)
    assert not _run_with_one_failure(world)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_report_says_in_words_what_is_no_number(value: float) -> None:
    assert json_value({"worst": [value]}) == {"worst": [str(value)]}
