"""Facts of a run as names and texts: how it was run, on what, and how far from the reference.

Chooses and words them; tables are made elsewhere.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from xllm_kernel.benchmark.report.lines import Document


def run_facts(document: Document) -> dict[str, str]:
    """Return how the run was made."""
    ceilings = document.get("ceilings") or {}
    facts = {
        "operation": document["operation"],
        "implementation": document["implementation"],
        "baseline": document.get("baseline"),
        "device, mode": f"{document['device']}, {document['mode']}",
        "evidence": document["evidence"] or "none",
        "revision": document["revision"] or "not given",
        "started": document["started"],
        "took": f"{document['duration_s']:.1f} s",
        "command": shlex.join(document["command"]),
        "ceilings": ceilings.get("level") or ceilings.get("absent"),
        "ranks": document["ranks"],
        **document["settings"],
    }
    return {name: _worded(value) for name, value in facts.items() if value is not None}


def environment(document: Document) -> dict[str, str]:
    """Return on what the run ran."""
    return {name: _worded(value) for name, value in document["environment"].items()}


def other_builds(document: Document) -> dict[str, list[str]]:
    """Return what each other implementation of a run was built as; none where nothing is known."""
    receipts = document.get("other_receipts") or {}
    builds = {
        name: [*map(str, receipt.get("build", ()))] for name, receipt in receipts.items() if receipt
    }
    return {name: built for name, built in builds.items() if built}


def worst_error(row: Mapping[str, Any]) -> str | None:
    """Return the largest error of any phase over its limit; None where none is recorded."""
    errors = [
        (float(output["max_error_ulp"]), float(output["limit_ulp"]))
        for verdict in row["validation"].values()
        for output in verdict.get("outputs", ())
    ]
    if not errors:
        return None
    # A NaN compares with nothing: it is the worst there is.
    error, limit = max(errors, key=lambda pair: float("inf") if pair[0] != pair[0] else pair[0])
    return f"{error:.3f} of {limit:.3f} ULP"


def _worded(value: object) -> str:
    """Show a value of JSON; nothing else is in a document."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
