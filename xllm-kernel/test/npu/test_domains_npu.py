"""Domains of the device's implementations: clauses, calls and fakes agree about 500 sets each."""

from __future__ import annotations

import pytest

pytest.importorskip("hypothesis", reason="needs the optional package 'hypothesis'")

from domains import campaign
from domains.subjects import subjects
from domains.voices import Subject

CASES = 500
# Boundaries that nobody but the clauses and, where named, fakes can be asked about.
CLAUSES_ALONE = {
    "weight.format outside",  # torch_npu makes a tensor of one dimension in a plain format only
}
NO_CALL = {
    ("input.elements", campaign.INSIDE),  # the result would take 8 GiB
    ("input.reach", campaign.INSIDE),  # so would the input
    ("input.reach", campaign.OUTSIDE),
    ("weight.format", campaign.OUTSIDE),
}


@pytest.fixture(scope="module")
def tally(device) -> campaign.Tally:
    return campaign.run(_xlite(), CASES)


def _xlite() -> Subject:
    (found,) = (one for one in subjects()[0] if one.name == "npu.xlite.rms_norm")
    return found


@pytest.mark.filterwarnings("ignore")
def test_all_voices_agree(tally: campaign.Tally) -> None:
    assert not tally.disagreements, "\n".join(tally.disagreements)
    assert tally.cases == CASES
    assert tally.accepted >= CASES / 6


def test_every_clause_is_met_on_both_sides_but_where_a_reason_stands(
    tally: campaign.Tally,
) -> None:
    assert set(tally.one_sided) == CLAUSES_ALONE
    assert set(tally.clauses) <= set(tally.refused)
    assert {side for side, voices in tally.sides.items() if "call" not in voices} == NO_CALL


def test_the_vendors_operator_has_no_domain_to_ask(device) -> None:
    assert subjects()[1] == ["npu.xllm_native.rms_norm"]
