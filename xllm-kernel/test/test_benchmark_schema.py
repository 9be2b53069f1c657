"""The published schema: takes every kind of benchmark report, and refuses what none may say."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import benchmark_documents as documents
import pytest
from conftest import REPOSITORY_ROOT, need

SCHEMA = REPOSITORY_ROOT / "docs" / "schema" / "report.schema.json"


def _problems(document: dict[str, Any]) -> list[str]:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(document)]


@pytest.mark.parametrize("name", [name for name in documents.ALL if name != "many"])
def test_schema_takes_every_kind_of_benchmark_report(name: str) -> None:
    need("jsonschema")
    assert _problems(documents.ALL[name]()) == []


def _hot(document: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = document["rows"][0]["timings"]["regimes"]["hot"]
    return figures


def _mixed(document: dict[str, Any]) -> None:
    regimes = document["rows"][0]["timings"]["regimes"]
    regimes["warm"] = regimes.pop("hot")


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another version": lambda d: d.update(schema_version=1),
    "an unknown field": lambda d: d.update(title="x"),
    "no baseline field": lambda d: d.pop("baseline"),
    "no ceilings": lambda d: d.pop("ceilings"),
    "a level and a reason for none": lambda d: d["ceilings"].update(absent="not built"),
    "missing without a reason": lambda d: d["missing"].append({"name": "x", "reason": ""}),
    "no thread count": lambda d: d["rows"][0].pop("threads"),
    "no work": lambda d: d["rows"][0].pop("work"),
    "zero threads": lambda d: d["rows"][0].update(threads=0),
    "negative traffic": lambda d: d["rows"][0]["work"].update(read_bytes=-1),
    "other arithmetic": lambda d: d["rows"][0]["work"].update(arithmetic="guess"),
    "another regime": _mixed,
    "no regime": lambda d: d["rows"][0]["timings"]["regimes"].clear(),
    "figures beside the regimes": lambda d: d["rows"][0]["timings"].update(wall_us=1.0),
    "no samples": lambda d: _hot(d)["wall_us"]["samples"].clear(),
    "no empty callable": lambda d: _hot(d).pop("empty_callable"),
    "an unknown figure": lambda d: _hot(d).update(mean=1.0),
    "a time without a unit": lambda d: _hot(d).update(wall=_hot(d)["wall_us"]),
    "another reason to stop": lambda d: _hot(d).update(stopped="tired"),
    "a reason that says nothing": lambda d: _hot(d).update(unstable=[""]),
    "none dropped for a reason": lambda d: _hot(d).update(dropped={"x": 0}),
    "another verdict": lambda d: _hot(d)["against"].update(verdict="UNSTABLE"),
    "a ratio without an interval": lambda d: _hot(d)["against"]["ratio"].pop("low"),
    "a comparison without a baseline": lambda d: d.update(baseline=None),
    "a share that is negative": lambda d: _hot(d)["roofline"].update(share=-0.1),
    "no word on impossible figures": lambda d: _hot(d)["roofline"].pop("impossible"),
    "figures of a failed row": lambda d: d["rows"][0].update(
        status="failed", stage="timing", reason="x", reproduce="x"
    ),
    "figures of a simulated row": lambda d: d["rows"][0].update(evidence="simulated"),
}


@pytest.mark.parametrize("name", WRONG)
def test_schema_refuses_a_report_that_is_wrong_in_one_place(name: str) -> None:
    need("jsonschema")
    document = documents.pair()
    WRONG[name](document)
    assert _problems(document) != []


def test_schema_refuses_figures_of_a_simulated_run() -> None:
    need("jsonschema")
    figures = documents.figures([1.0, 2.0])
    for path, value in (("timings", {"regimes": {"graph": figures}}), ("simulated_timings", None)):
        document = documents.simulated()
        document["rows"][0][path] = value
        assert _problems(document) != [], path
    document = documents.simulated()
    document["rows"][0]["simulated_timings"]["wall_us"] = figures["wall_us"]
    assert _problems(document) != []


def test_schema_refuses_a_numerics_report_with_a_benchmarks_fields() -> None:
    need("jsonschema")
    good = documents.document([documents.row()], kind="numerics")
    for name in ("baseline", "ceilings", "missing"):
        del good[name]
    for name in ("threads", "work", "timings"):
        del good["rows"][0][name]
    assert _problems(good) == []
    wrong = {"baseline": None, "ceilings": {"level": None, "absent": None}, "missing": []}
    for name, value in wrong.items():
        assert _problems(good | {name: value}) != [], name
    for name, value in {"threads": 1, "work": None, "timings": None}.items():
        bad = copy.deepcopy(good)
        bad["rows"][0][name] = value
        assert _problems(bad) != [], name
