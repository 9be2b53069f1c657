"""The comparison's report: figures from known blocks, none where too few count, every reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import need
from side_modules import load_bench

need("torch")

blocks = load_bench("peers.blocks")
operation = load_bench("peers.operation")
report = load_bench("peers.report")
run = load_bench("peers.run")

RULE = blocks.Rule(wanted=4, enough=3, budget_s=1.0, window_s=0.1)


def taken(us: float, kept: int = 4, dropped: int = 0) -> list[Any]:
    good = [blocks.Block(us, 10)] * kept
    return good + [blocks.Block(99.0 * us, 10, blocks.OTHERS)] * dropped


def group(**changed: list[Any]) -> Any:
    """One case on which everybody's time is known; on two threads all take half."""
    times = {
        "ours": taken(2.0),
        "theirs": taken(5.0, dropped=3),
        "copy": taken(1.5),
        "streaming copy": taken(1.25),
        "update": taken(1.0),
    } | changed
    halves = {
        (name, 2): [blocks.Block(block.us / 2, block.calls, block.dropped) for block in all_]
        for name, all_ in times.items()
    }
    contenders = {
        (name, threads): run.Contender(len, ceiling=name not in ("ours", "theirs"), error=0.5)
        for threads in (1, 2)
        for name in times
    }
    form = operation.Form(name="out", meaning="into a buffer", mutates=False, calls={})
    return run.Group(
        case=operation.Case("bfloat16", 16, 512),
        form=form,
        contenders=contenders,
        blocks={(name, 1): all_ for name, all_ in times.items()} | halves,
        left_out={("absent", 1): "wrong: all of it", ("absent", 2): "wrong: all of it"},
        bytes_moved=32768,
    )


def document(*groups: Any) -> dict[str, Any]:
    return {
        "operation": "some_op",
        "started": "2026-01-02T03:04:05+00:00",
        "command": "./dev peers some_op",
        "environment": {"device_name": "Some Processor", "affinity": 2},
        "versions": {"ours": "1", "theirs": "2", "absent": "3"},
        "ours": "ours",
        "missing": {"nowhere": "not installed: nowhere"},
        "note": "A note.",
        "forms": {"out": "into a buffer"},
        "rows": [row for one in groups for row in report.rows(one, "ours", RULE)],
    }


def cells(page: str) -> list[list[str]]:
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_rows_hold_medians_ratios_shares_and_gains_of_the_blocks_that_count() -> None:
    one, two = report.rows(group(), "ours", RULE)
    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["best_copy"] == {"name": "streaming copy", "us": 1.25}
    assert one["update"] == {"name": "update", "us": 1.0}
    theirs = one["contenders"]["theirs"]
    assert theirs["us"] == 5.0
    assert theirs["over_ours"] == {"middle": 2.5, "low": 2.5, "high": 2.5}
    assert theirs["share_of_best_copy"] == 0.25
    assert theirs["share_of_update"] == 0.2
    assert (theirs["kept"], theirs["taken"]) == (4, 7)
    assert theirs["dropped"] == {blocks.OTHERS: 3}
    assert [block["us"] for block in theirs["blocks"]] == [5.0] * 4 + [495.0] * 3
    assert two["contenders"]["ours"]["us"] == 1.0
    assert two["contenders"]["ours"]["gain_over_one_thread"]["middle"] == 2.0
    json.dumps([one, two], allow_nan=False)


@pytest.mark.parametrize("ours", [[], taken(2.0, kept=2), taken(2.0, kept=0, dropped=9)])
def test_too_few_blocks_of_ours_give_no_figure_and_no_ratio(ours: list[Any]) -> None:
    one, _ = report.rows(group(ours=ours), "ours", RULE)
    assert one["contenders"]["ours"]["us"] is None
    assert one["contenders"]["ours"]["share_of_best_copy"] is None
    assert one["contenders"]["theirs"]["us"] == 5.0
    assert one["contenders"]["theirs"]["over_ours"] is None


def test_no_copy_that_counts_gives_no_share() -> None:
    one, two = report.rows(
        group(**{"copy": [], "streaming copy": taken(1.0, kept=2)}), "ours", RULE
    )
    assert one["best_copy"] is two["best_copy"] is None
    assert one["contenders"]["ours"]["share_of_best_copy"] is None


def test_ours_left_out_still_shows_the_others() -> None:
    whole = group()
    for threads in (1, 2):
        del whole.contenders["ours", threads], whole.blocks["ours", threads]
    one, _ = report.rows(whole, "ours", RULE)
    assert one["contenders"]["theirs"]["us"] == 5.0
    assert one["contenders"]["theirs"]["over_ours"] is None


def test_the_table_has_a_row_for_each_number_of_threads() -> None:
    titles, one, two = cells(report.markdown(document(group())))
    assert titles[:4] == ["dtype", "shape", "threads", "ours us"]
    assert one == [
        *("bfloat16", "16x512", "1", "2.000", "62 % (update 50 %)", "-"),
        "5.000 = 2.50 x [2.50, 2.50]",
        "-",
    ]
    assert two[2:6] == ["2", "1.000", "62 % (update 50 %)", "2.00 (2.00)"]


def test_the_table_says_where_blocks_were_too_few() -> None:
    page = report.markdown(document(group(theirs=taken(5.0, kept=1, dropped=8))))
    _, one, _ = cells(page)
    assert one[6] == "too few: 1 of 9"
    assert f"16 since {blocks.OTHERS}" in page
    assert "50 blocks, of which dropped: 16 since" in page


def test_the_page_names_machine_date_command_and_everybody_left_out() -> None:
    page = report.markdown(document(group()))
    head = "2026-01-02T03:04:05+00:00, Some Processor, 2 processors; `./dev peers some_op`."
    assert page.startswith(head)
    assert "- left out: nowhere, everywhere: not installed: nowhere" in page
    assert page.count("- left out: absent, out bfloat16: wrong: all of it") == 1
