"""Comparisons of simulated runs: unchanged code is never called slower, slower code is.

A simulated machine is a little faster or slower in each run, drifts within it, puts memory
elsewhere in each process, and interrupts now and then.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import benchmark_documents as made
import pytest

from xllm_kernel.benchmark.past.compare import (
    AMBIGUOUS,
    NO_REGRESSION,
    REGRESSION,
    Comparison,
    compare,
)
from xllm_kernel.benchmark.past.documents import parse
from xllm_kernel.benchmark.statistics import Verdict, ratios

ROWS = [(2**n, width) for n in range(8) for width in (512, 2048, 6144)]


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of comparisons: intervals of a hundred draws each will do."""
    monkeypatch.setattr(ratios, "_DRAWS", 100)


def _run(
    seed: int,
    slower: dict[int, float] | None = None,
    *,
    machine: float | None = None,
    wander: float = 0.01,
    layout: float = 0.005,
    count: int = 25,
    rows: int = len(ROWS),
    unstable: bool = False,
    **more: Any,
) -> made.Document:
    """Return a report.

    Args:
        seed: of everything that is drawn.
        slower: a factor by row.
        machine: a factor for all that is timed; drawn where None.
        wander: how far runs, and ends of a run, lie apart, as a standard deviation of logarithms.
        layout: the same of where memory lies, by row and process.
        count: samples a row.
        rows: how many.
        unstable: whether every figure is.
        more: replaces fields of all figures.
    """
    draw = random.Random(seed)
    speed = math.exp(draw.gauss(0, wander)) if machine is None else machine
    drift = draw.gauss(0, wander)
    lines = []
    for number, shape in enumerate(ROWS[:rows]):
        spells = [
            speed * math.exp(drift * at / count + 0.003 * math.sin(at / 4)) for at in range(count)
        ]
        usual = (slower or {}).get(number, 1.0) * (5 + number) * math.exp(draw.gauss(0, layout))
        taken = [
            usual * spell * math.exp(draw.gauss(0, 0.01)) * draw.choice((1,) * 19 + (1.3,))
            for spell in spells
        ]
        roof = made.roofline(made.work("bfloat16", *shape), usual)
        copy = sorted(spells)[count // 2] * (4 + number) * math.exp(draw.gauss(0, 0.005))
        roof |= {"ceilings_us": {"copy": copy, "fma": copy / 3}, "share": copy / usual}
        roof["impossible"] = False
        empty = [0.1 * spell * math.exp(draw.gauss(0, 0.03)) for spell in spells]
        given = made.figures(
            taken,
            roofline=roof,
            empty_callable={"wall_us": made.column(empty)},
            unstable=["other processes used 0.9 of a processor"] if unstable else [],
        )
        given |= more
        lines.append(made.row(shape=shape, regimes={"hot": given}))
    return made.document(lines)


def _compare(old: made.Document, new: made.Document, gate: float = 0.05) -> Comparison:
    return compare(parse(old, "old"), parse(new, "new"), gate)


def _verdicts(comparison: Comparison) -> Counter[Verdict]:
    return Counter(row.verdict for row in comparison.rows)


@pytest.mark.usefixtures("few_draws")
def test_compare_of_unchanged_code_never_exits_1_and_mostly_0_in_100_pairs() -> None:
    codes = Counter(_compare(_run(2 * n), _run(2 * n + 1)).exit_code for n in range(100))
    assert codes[REGRESSION] == 0
    assert codes[NO_REGRESSION] >= 90


@pytest.mark.usefixtures("few_draws")
def test_compare_of_unchanged_code_on_a_restless_machine_never_exits_1_in_100_pairs() -> None:
    restless = {"wander": 0.05, "layout": 0.01}
    codes = Counter(
        _compare(_run(2 * n, **restless), _run(2 * n + 1, **restless)).exit_code
        for n in range(100, 200)
    )
    assert codes[REGRESSION] == 0


@pytest.mark.usefixtures("few_draws")
def test_compare_of_one_row_of_24_slower_by_10_per_cent_finds_that_row() -> None:
    found = 0
    for n in range(60):
        row = n % len(ROWS)
        comparison = _compare(_run(1000 + 2 * n), _run(1001 + 2 * n, {row: 1.1}))
        slower = [r for r in comparison.rows if r.verdict is Verdict.SLOWER]
        width, rows = ROWS[row][1], ROWS[row][0]
        found += [r.identity.case_id for r in slower] == [
            f"affine/bfloat16/{rows}x{width}/seed5309"
        ]
        assert comparison.exit_code == REGRESSION or not slower
    assert found >= 57


@pytest.mark.parametrize(
    ("iterations", "why"), [(77, "nothing that did not change"), (100, "the machine moved too")]
)
def test_an_empty_callable_over_fewer_replays_is_no_yardstick_and_without_one_nothing_is_told(
    iterations: int, why: str
) -> None:
    """Slower code has fewer replays a sample, and each carries more of what a sample costs."""
    slower = dict.fromkeys(range(24), 1.3)
    empty = {"empty_callable": {"wall_us": made.column([0.13] * 40)}}
    old = _run(
        1, roofline=None, iterations=100, empty_callable={"wall_us": made.column([0.1] * 40)}
    )
    new = _run(2, slower, roofline=None, iterations=iterations, **empty)
    compared = _compare(old, new)
    assert compared.exit_code == AMBIGUOUS
    assert all(why in row.why for row in compared.rows)


@pytest.mark.parametrize("share", [1, 3, 12, 23, 24])
def test_compare_of_rows_slower_by_30_per_cent_exits_1_however_many_they_are(share: int) -> None:
    comparison = _compare(_run(1), _run(2, dict.fromkeys(range(share), 1.3)))
    assert comparison.exit_code == REGRESSION
    assert _verdicts(comparison)[Verdict.SLOWER] == share


def test_compare_of_a_single_row_finds_30_per_cent_and_no_change() -> None:
    assert _compare(_run(1, rows=1), _run(2, rows=1)).exit_code == NO_REGRESSION
    assert _compare(_run(1, rows=1), _run(2, {0: 1.3}, rows=1)).exit_code == REGRESSION


def test_compare_on_a_slower_machine_is_ambiguous_and_names_the_yardstick() -> None:
    comparison = _compare(_run(1, machine=1.0), _run(2, machine=1.25))
    assert comparison.exit_code == AMBIGUOUS
    assert all("the machine moved too" in row.why for row in comparison.rows)


def test_compare_of_slower_code_on_a_slower_machine_exits_1() -> None:
    comparison = _compare(_run(1, machine=1.0), _run(2, {3: 1.5}, machine=1.15))
    assert comparison.exit_code == REGRESSION
    assert _verdicts(comparison)[Verdict.SLOWER] == 1


def test_compare_of_slower_code_on_a_quicker_machine_does_not_pass() -> None:
    slower = dict.fromkeys(range(24), 1.3)
    comparison = _compare(_run(1, machine=1.0), _run(2, slower, machine=1 / 1.3))
    assert comparison.exit_code == AMBIGUOUS
    assert all("may hide a slowdown" in row.why for row in comparison.rows)


def test_compare_of_quicker_code_says_so_and_passes() -> None:
    comparison = _compare(_run(1), _run(2, dict.fromkeys(range(24), 0.7)))
    assert comparison.exit_code == NO_REGRESSION
    assert _verdicts(comparison)[Verdict.FASTER] == 24


def test_compare_on_a_quicker_machine_does_not_praise_the_code() -> None:
    comparison = _compare(_run(1, machine=1.3), _run(2, machine=1.0))
    assert _verdicts(comparison)[Verdict.FASTER] == 0


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("new", [False, True])
def test_unstable_figures_are_never_a_regression_and_never_pass_alone(old: bool, new: bool) -> None:
    slow = dict.fromkeys(range(24), 1.5)
    code = _compare(_run(1, unstable=old), _run(2, slow, unstable=new)).exit_code
    assert code == (AMBIGUOUS if old or new else REGRESSION)
    code = _compare(_run(1, unstable=old), _run(2, unstable=new)).exit_code
    assert code == (AMBIGUOUS if old or new else NO_REGRESSION)


def test_unstable_new_row_that_is_not_slower_still_passes_among_stable_ones() -> None:
    new = _run(2)
    new["rows"][0]["timings"]["regimes"]["hot"]["unstable"] = ["throttled"]
    comparison = _compare(_run(1), new)
    assert comparison.exit_code == NO_REGRESSION
    assert [row.why for row in comparison.rows if row.why] == ["NEW unstable: throttled"]


def test_unstable_old_row_does_not_pass() -> None:
    old = _run(1)
    old["rows"][0]["timings"]["regimes"]["hot"]["unstable"] = ["throttled"]
    comparison = _compare(old, _run(2))
    assert comparison.exit_code == AMBIGUOUS
    assert _verdicts(comparison)[Verdict.AMBIGUOUS] == 1


def test_own_noise_of_a_report_widens_its_rows() -> None:
    wide = {"noise_floor": {"middle": 1.0, "low": 0.8, "high": 1.25}}
    slow = dict.fromkeys(range(24), 1.15)
    assert _compare(_run(1), _run(2, slow)).exit_code == REGRESSION
    assert _compare(_run(1, **wide), _run(2, slow)).exit_code == AMBIGUOUS
    assert _compare(_run(1), _run(2, slow, **wide)).exit_code == AMBIGUOUS
    # Of two processes one was slow by itself; the figure is the other's.
    assert _compare(_run(1, **wide), _run(2)).exit_code == NO_REGRESSION
    assert _compare(_run(1, **wide), _run(2, **wide)).exit_code == AMBIGUOUS
    unknown = {"noise_floor": {"middle": 1.0, "low": 0, "high": "inf"}}
    assert _compare(_run(1), _run(2, slow, **unknown)).exit_code == AMBIGUOUS


def test_spell_within_a_run_is_noise_and_no_regression() -> None:
    """Half of each new row was taken while something else slowed it by 40 %."""
    new = _run(2)
    for row in new["rows"]:
        column = row["timings"]["regimes"]["hot"]["wall_us"]
        column["samples"] = [s * (1.4 if at > 11 else 1) for at, s in enumerate(column["samples"])]
    assert _compare(_run(1), new).exit_code == AMBIGUOUS


def test_baseline_that_slowed_alike_is_a_yardstick() -> None:
    def beside(factor: float) -> made.Document:
        taken = [9.0 * factor * (1 + 0.001 * (n % 5)) for n in range(25)]
        base = [10.0 * factor * (1 + 0.001 * (n % 7)) for n in range(25)]
        given = made.figures(taken, against=made.against(taken, base, base, "FASTER"))
        rows = [made.row(shape=shape, regimes={"hot": given}) for shape in ROWS]
        return made.document(rows, baseline=made.BASELINE)

    comparison = _compare(beside(1.0), beside(1.3))
    assert comparison.exit_code == AMBIGUOUS
    assert comparison.rows[0].yardstick.name == f"baseline {made.BASELINE}"


def test_many_rows_need_more_proof_than_one() -> None:
    """One ratio and one noise: alone it is real, among a thousand such it may be chance."""
    from xllm_kernel.benchmark.past.judge import _Scale

    alone, among = (_Scale(0.05, 0.02, 0.001, level) for level in (2.33, 4.26))
    assert alone.slower(0.0)
    assert not among.slower(0.0)


def test_judge_uses_a_level_that_grows_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from xllm_kernel.benchmark.past import judge

    levels = []
    honest = judge._Scale
    monkeypatch.setattr(
        judge, "_Scale", lambda *values: levels.append(values[3]) or honest(*values)
    )
    _compare(_run(1, rows=1), _run(2, rows=1))
    _compare(_run(1), _run(2))
    assert levels[0] == pytest.approx(2.326, abs=1e-3)  # one-sided 1 % of a normal distribution
    assert levels[-1] == pytest.approx(3.341, abs=1e-3)  # 1 % of a 24th


def test_few_samples_are_ambiguous_and_not_slower() -> None:
    assert _compare(_run(1, count=1), _run(2, {0: 2.0}, count=1)).exit_code == AMBIGUOUS


def test_gate_decides_what_matters() -> None:
    old, new = _run(1), _run(2, dict.fromkeys(range(24), 1.3))
    assert _compare(old, new, 0.2).exit_code == REGRESSION
    assert _compare(old, new, 0.5).exit_code == NO_REGRESSION


def test_100_000_samples_a_row_are_judged() -> None:
    document = made.many()
    comparison = _compare(document, document)
    assert {row.ratio.middle for row in comparison.rows} == {1.0}
