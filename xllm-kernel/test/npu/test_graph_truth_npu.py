"""Graphs of a device that are wrong in ways only later replays show, with its memory and its order.

What the steps find whatever a device is like is in test_graph_truth.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from processes import Command, text_of

from xllm_kernel.numerics.graph_truth import STEPS

GONE = "after the inputs' Python objects were gone: "
# By fault: how the case ends, what is said of it, and what the simulator reports besides.
FOUND = {
    "input frozen": ("failed", "replay 2 after the inputs changed: call 1 of 64: ", []),
    "outputs shared": ("failed", "replay 3 with two graphs alive: ", []),
    "buffer read after it was freed": ("failed", GONE + r"call 1 of 64: .* got nan", []),
    "buffer written after it was freed": (
        "failed",
        GONE + "a replay wrote to memory that others",
        [],
    ),
    "buffer dies with an object": ("error", GONE + "RuntimeError: ", ["use-after-free"]),
    "stream of its own": ("failed", "with two graphs alive: .* got nan", ["race"]),
}


@pytest.fixture(scope="module")
def seen(simulator) -> dict[str, Any]:
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    done = Command((str(Path(__file__).with_name("graph_truth_worker.py")),)).run()
    assert done.returncode == 0, text_of(done)
    return json.loads(done.stdout.splitlines()[-1])


def test_honest_graph_passes_every_step(seen: dict[str, Any]) -> None:
    row = seen["none"]
    assert (row["status"], row["reason"], row["reports"]) == ("passed", None, [])
    assert row["metadata"]["graph_truth_left_out"] == {}
    assert {row["validation"][f"graph_{step}"] for step in STEPS} == {"passed"}


@pytest.mark.parametrize("fault", FOUND)
def test_fault_found_by_its_step_alone(seen: dict[str, Any], fault: str) -> None:
    row = seen[fault]
    status, said, reports = FOUND[fault]
    stage = "graph truth" if status == "failed" else "replay"
    assert (row["status"], row["stage"], row["reports"]) == (status, stage, reports)
    assert re.search(said, row["reason"]), row["reason"]
    # Without further replays it would have passed.
    earlier = {name for name in row["validation"] if not name.startswith("graph_")}
    assert earlier == {"function", "other_data", "captured"}
    assert {row["validation"][name] for name in earlier} == {"passed"}
