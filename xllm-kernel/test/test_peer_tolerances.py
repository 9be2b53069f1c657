"""Other projects' rules refuse and accept where their sources do, and counts are what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from side_modules import load_evidence

from xllm_kernel.numerics import arguments, catalog, compare
from xllm_kernel.numerics.faults import faults
from xllm_kernel.numerics.storage import ArgumentGuard
from xllm_kernel.numerics.tolerance import Earned

peer_rules = load_evidence("peer_rules")
peer_run = load_evidence("peer_run")
peer_tolerances = load_evidence("peer_tolerances")

RULES = {rule.name: rule for rule in peer_rules.RULES}
(
    DEFAULTS,
    LAYERNORM,
    IR,
    FLASHINFER,
    BENCH,
    RATIO,
    AITER,
    GEMS,
    SCALED,
    LIGER,
    BACKEND,
    KERNEL,
    DNN,
) = RULES
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "validation.md"


def accepted(result: Any, expected: torch.Tensor, **facts: bool) -> set[str]:
    """Return the names of the rules that accept a result."""
    calls = [peer_rules.Seen([(result, expected)], **facts)] * 2
    return {name for name, rule in RULES.items() if rule.accepts(calls)}


def off_by(error: float, at: float, dtype: torch.dtype) -> set[str]:
    expected = torch.full((4, 16), at, dtype=dtype)
    return accepted(expected + error, expected)


def test_one_wrong_element_among_4096_passes_ratios_and_fails_ours() -> None:
    reference = torch.randn(8, 512, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    result = reference.float()
    result[3, 7] += 100.0
    assert accepted(result, reference.float()) == {RATIO, AITER}
    expected = compare.Expected(reference, torch.float32, result.device, Earned(1.5, 0.5, 0.3, 1))
    verdict = compare.judge(lambda: result, expected, ArgumentGuard({}))
    assert (verdict["status"], verdict["check"]) == ("failed", "values")


def test_six_in_a_hundred_wrong_elements_fail_every_rule() -> None:
    expected = torch.ones(100)
    result = expected.clone()
    result[:5] = 9.0
    assert accepted(result, expected) == {RATIO, AITER}
    result[5] = 9.0
    assert accepted(result, expected) == set()


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        (DEFAULTS, 1e-5),
        (LAYERNORM, 1e-2),
        (IR, 1e-5),
        (FLASHINFER, 1e-3),
        (BENCH, 1e-2),
        (RATIO, 1e-2),
        (AITER, 1e-2),
        (GEMS, 1e-4),
        (SCALED, 16e-4),
        (LIGER, 1e-4),
        (BACKEND, 1e-2),
        (KERNEL, 1e-4),
        (DNN, 5e-7),
    ],
)
def test_rule_float32_around_zero_goes_by_its_absolute_tolerance(name: str, limit: float) -> None:
    assert name in off_by(0.97 * limit, 0.0, torch.float32)
    assert name not in off_by(1.03 * limit, 0.0, torch.float32)


@pytest.mark.parametrize(
    ("dtype", "error", "names"),
    [
        # At 256, bfloat16 has steps of 2 and float16 of 0.25.
        (torch.bfloat16, 2.0, {*RULES} - {FLASHINFER}),
        (torch.bfloat16, 4.0, {DEFAULTS, IR, GEMS, SCALED, LIGER, DNN}),
        (torch.bfloat16, 6.0, {DNN}),
        (torch.bfloat16, 10.0, set()),
        (torch.float16, 0.25, {*RULES} - {LIGER}),
        (torch.float16, 0.5, {*RULES} - {LIGER, DEFAULTS, FLASHINFER, GEMS, SCALED}),
        (torch.float16, 2.5, {LAYERNORM, BENCH, RATIO, AITER, BACKEND, KERNEL}),
        (torch.float16, 3.0, set()),
    ],
)
def test_rules_16_bit_go_by_their_relative_tolerance(
    dtype: torch.dtype, error: float, names: set[str]
) -> None:
    assert off_by(error, 256.0, dtype) - {FLASHINFER if dtype is torch.bfloat16 else ""} == names


def test_rules_form_is_refused_by_those_that_look_at_it() -> None:
    good = torch.randn(4, 16, generator=torch.Generator().manual_seed(2)).bfloat16()
    assert accepted(good.clone(), good) == {*RULES}
    assert accepted(good.float(), good) == {LIGER}
    assert accepted(good[None], good) == {AITER}
    assert accepted([good], good) == {BENCH, RATIO}
    assert accepted(good[:-1], good) == set()
    assert accepted(None, good) == set()
    assert accepted(good.to("meta"), good) == set()
    assert accepted(good, good, relaid=True) == {*RULES} - {DNN}


def test_rules_memory_is_seen_by_opcheck_and_by_a_canary_alone() -> None:
    good = torch.ones(4, 16)
    assert accepted(good, good, inputs_changed=True) == {*RULES} - {LAYERNORM, IR}
    assert accepted(good, good, aliased=True) == {*RULES} - {LAYERNORM, IR}
    assert accepted(good, good, behind_changed=True) == {*RULES} - {DNN}


def test_rules_a_nan_where_it_belongs_is_accepted_by_few() -> None:
    expected = torch.ones(4, 16).half()
    expected[0, 0] = float("nan")
    assert accepted(expected.clone(), expected) == {RATIO, AITER, LIGER, BACKEND, DNN} - {
        RATIO,
        LIGER,
    }


def test_rule_of_the_ir_wants_a_second_call_to_agree_exactly() -> None:
    one = torch.ones(4, 16)
    calls = [peer_rules.Seen([(value, one)]) for value in (one, one + 1e-6)]
    assert RULES[DEFAULTS].accepts(calls)
    assert not RULES[IR].accepts(calls)


def test_rule_dtypes_that_a_test_has_no_tolerance_for_are_not_covered() -> None:
    def covered(dtype: torch.dtype) -> set[str]:
        one = torch.ones(2, dtype=dtype)
        calls = [peer_rules.Seen([(one, one)])]
        return {name for name, rule in RULES.items() if rule.covers(calls)}

    assert covered(torch.float32) == {*RULES}
    assert covered(torch.float16) == {*RULES} - {LIGER}
    assert covered(torch.bfloat16) == {*RULES} - {FLASHINFER}


# ---- faults before the rules ----------------------------------------------------------------


def test_faults_of_nonfinite_values_exist_by_their_names() -> None:
    known = {fault.name for suite in catalog.suites().values() for fault in faults(suite)}
    assert known >= peer_run._NONFINITE


def test_peer_run_plants_faults_and_lets_through_what_each_rule_does_not_see(
    fresh: object,
) -> None:
    only = ("negated", "truncated", "last_input_written", "written_past_the_end", "stale", "leaves")
    sizes = ("--rows", "3", "--widths", "65", "--dtypes", "bfloat16")
    request = arguments.parse("numerics", ["--implementation", "cpu.torch.rms_norm", *sizes])
    found = peer_run.PeerRun(request, only).results()
    through = {name: set(names) for name, names in found["let_through"].items()}
    assert found["honest_failure"] is None
    assert found["judged"] == {name: int(name != FLASHINFER) for name in RULES}
    assert through[peer_run.OURS] == set()
    value, memory = {"truncated"}, {"last_input_written", "written_past_the_end"}
    assert through[DEFAULTS] == {*value, *memory, "stale"}
    assert through[LAYERNORM] == {*value, "written_past_the_end", "stale"}
    assert through[KERNEL] == {*value, *memory}
    assert through[DNN] == {*value, "last_input_written", "stale"}
    assert found["classes"] == {
        **dict.fromkeys(("negated", "truncated"), "values"),
        **dict.fromkeys(("last_input_written", "written_past_the_end"), "memory"),
        **dict.fromkeys(("stale", "leaves"), "conduct"),
    }


# ---- the table ------------------------------------------------------------------------------


def test_markdown_counts_are_let_through_of_planted_over_implementations() -> None:
    one = {
        "implementation": "cpu.one",
        "cases": 5,
        "judged": dict.fromkeys(RULES, 4),
        "classes": {"a": "values", "b": "values", "c": "memory"},
        "let_through": {**{name: ["a", "c"] for name in RULES}, peer_run.OURS: []},
    }
    two = {**one, "let_through": {**{name: ["b"] for name in RULES}, peer_run.OURS: ["c"]}}
    lines = peer_tolerances.markdown([one, two], "facts").splitlines()
    assert "| xllm-kernel | 0 / 4 | 0 / 0 | 0 / 0 | 1 / 2 | 0 / 0 | **1 / 6** | 10 / 10 |" in lines
    assert f"| {AITER} | 2 / 4 | 0 / 0 | 0 / 0 | 1 / 2 | 0 / 0 | **3 / 6** | 8 / 10 |" in lines
    assert f"| {AITER} | {RULES[AITER].limits} | a, b |" in lines


def test_document_has_the_table_of_these_rules(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split(peer_tolerances.BEGIN)[1].split(peer_tolerances.END)[0]
    for rule in peer_rules.RULES:
        assert f"| {rule.name} | {rule.limits} | " in table
        assert f"- {rule.name}: {rule.source}" in table
    copy = tmp_path / "copy.md"
    copy.write_text(text, encoding="utf-8")
    peer_tolerances.replace(copy, table.strip("\n"))
    assert copy.read_text(encoding="utf-8") == text
