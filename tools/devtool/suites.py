"""Test runs and their counts, read from JUnit files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from devtool.shell import BUILD

if TYPE_CHECKING:
    from pathlib import Path


class Suite(NamedTuple):
    """The counts of one test run."""

    name: str
    passed: int
    failed: int
    skips: Counter[str]


def skip_reason(case: ET.Element) -> str:
    """Return why a test was skipped: what GoogleTest printed, or pytest's message."""
    printed = re.search(r": Skipped\n(.+)", case.findtext("system-out") or "")
    module = re.search(r"Skipped: (.+)[\"']\)", case.findtext("skipped") or "")
    found, skipped = printed or module, case.find("skipped")
    if found:
        return found[1].strip()
    return "disabled" if skipped is None else skipped.get("message", "")


def read_suite(name: str, status: int, report: Path) -> Suite:
    """Read a run's counts from its JUnit file."""
    passed, failed, skips = 0, 0, Counter[str]()
    for case in ET.parse(report).iter("testcase") if report.is_file() else ():
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skipped is None and case.get("status") != "disabled":
            passed += 1
        else:
            skips[skip_reason(case)] += 1
    # A run that died before it could count, or found no test, is a failure too.
    return Suite(name, passed, max(failed, int(status != 0)), skips)


def report_path(name: str) -> Path:
    """Return where a run leaves its JUnit file, free of an older one."""
    path = BUILD / "test" / (re.sub(r"\W+", "-", name.lower()) + ".xml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def summarise(*suites: Suite) -> int:
    """Print the counts and the reason of every skip; return the exit status."""
    width = max(len(suite.name) for suite in suites)
    print("\nResults")
    for name, passed, failed, skips in suites:
        print(f"  {name:{width}} {passed} passed, {failed} failed, {sum(skips.values())} skipped")
        for reason, count in sorted(skips.items()):
            print(f"  {'':{width}}   skipped {count} x: {reason}")
    passed, failed = sum(suite.passed for suite in suites), sum(suite.failed for suite in suites)
    skipped = sum(sum(suite.skips.values()) for suite in suites)
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0)
