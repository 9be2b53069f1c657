"""Wrong bridges, really compiled and run: the scenario that is there for a mistake catches it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from planted_faults import CONTROL, FAULTS, build
from processes import Command, text_of

# What each trial saw, by fault and the scenario it went through.
Seen = dict[str, "str | None"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, simulator) -> Seen:
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    library = build(tmp_path_factory.mktemp("planted"))
    trials = [
        {"name": name, "scenario": fault.scenario, "environment": dict(fault.environment)}
        for name, fault in FAULTS.items()
    ]
    trials += [{**trial, "name": CONTROL} for trial in trials]
    worker = Path(__file__).with_name("faulty_worker.py")
    done = Command((str(worker), str(library), json.dumps(trials))).run()
    assert done.returncode == 0, text_of(done)
    found = json.loads(done.stdout.splitlines()[-1])
    return {f"{t['name']}/{t['scenario']}": s for t, s in zip(trials, found, strict=True)}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_its_scenario(seen: Seen, name: str) -> None:
    said = seen[f"{name}/{FAULTS[name].scenario}"]
    assert said is not None, f"{FAULTS[name].scenario} passes a bridge with {name}"
    assert re.search(FAULTS[name].seen, said), said


@pytest.mark.parametrize("scenario", sorted({fault.scenario for fault in FAULTS.values()}))
def test_the_bridge_as_it_is_passes(seen: Seen, scenario: str) -> None:
    assert seen[f"{CONTROL}/{scenario}"] is None
