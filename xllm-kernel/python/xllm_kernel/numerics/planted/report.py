"""What a self-test found: a mutation score by suite and implementation, and who survived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xllm_kernel.platforms.evidence import disclaimer

Result = Mapping[str, Any]


def document(results: Sequence[Result], command: Sequence[str]) -> dict[str, Any]:
    """Return the JSON report of all implementations that were tried, or could not be."""
    tried = [r for r in results if "faults" in r]
    good = all(r["honest_failure"] is None and r["killed"] == r["applicable"] for r in tried)
    good &= not any("broken" in r for r in results)
    status, code = ("passed", 0) if good else ("failed", 1)
    if not tried and good:
        status, code = "not_run", 3
    return {
        "schema_version": 1,
        "kind": "self-test",
        "status": status,
        "exit_code": code,
        "command": ["python", "-m", "xllm_kernel.numerics", *command],
        "killed": sum(r["killed"] for r in tried),
        "applicable": sum(r["applicable"] for r in tried),
        "suites": list(results),
    }


def text(report: Mapping[str, Any]) -> str:
    """Return the report for a terminal."""
    lines = ["Planted faults, killed / applicable", ""]
    width = max((len(r["implementation"]) for r in report["suites"]), default=0)
    for result in report["suites"]:
        lines.append(f"  {result['implementation']:{width}}  {_score(result)}")
    for result in report["suites"]:
        lines += _details(result)
    killed, applicable = report["killed"], report["applicable"]
    share = f", {100.0 * killed / applicable:.1f} %" if applicable else ""
    lines += ["", f"{report['status'].upper()}  {killed} of {applicable} killed{share}"]
    notices = {disclaimer(r.get("evidence")) for r in report["suites"]} - {None}
    lines += [f"  {notice}" for notice in sorted(map(str, notices))]
    return "\n".join(lines)


def _score(result: Result) -> str:
    if "absent" in result:
        return f"not tried: {result['absent']}"
    if "broken" in result:
        return f"BROKEN: {result['broken']}"
    if result["honest_failure"] is not None:
        return f"FAILED without any fault: {result['honest_failure']}"
    where = f"{result['device']} {result['mode']}, {result['evidence']}"
    return f"{result['killed']} / {result['applicable']} in {result['cases']} cases ({where})"


def _details(result: Result) -> list[str]:
    faults = result.get("faults", ())
    if not faults:
        return []
    killers = Counter(f["check"] for f in faults if f["status"] == "killed")
    by = ", ".join(f"{check} {count}" for check, count in killers.most_common())
    lines = ["", f"  {result['implementation']}", f"    killed by  {by}"]
    lines += [
        f"    SURVIVED  {f['fault']}: {f['text']} ({f['reason'].splitlines()[0]})"
        for f in faults
        if f["status"] == "survived"
    ]
    reasons: dict[str, list[str]] = {}
    for fault in faults:
        if fault["status"] == "not_applicable":
            reasons.setdefault(fault["reason"], []).append(fault["fault"])
    lines += [f"    not applicable, {why}: {', '.join(names)}" for why, names in reasons.items()]
    return lines
