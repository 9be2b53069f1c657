"""How often the benchmark's verdicts are right on this machine: for equal code, for slower code.

PYTHONPATH=xllm-kernel/python python tools/evidence/benchmark_verdicts.py [--runs 100] [--tries 20]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import slowed

from xllm_kernel.benchmark import report as pages
from xllm_kernel.benchmark.command import find_probe
from xllm_kernel.benchmark.ensemble import Ensemble
from xllm_kernel.benchmark.leading import BASELINE, CANDIDATE, Contender, Leader
from xllm_kernel.benchmark.past import compare
from xllm_kernel.benchmark.statistics.plateau import Rule
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import HOT
from xllm_kernel.numerics import verify
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes.crew import Crew
from xllm_kernel.numerics.processes.worker import EXIT_INTERRUPTED
from xllm_kernel.numerics.report import Report, replace_text

WANTED = 95
"""Of a hundred verdicts, at least so many must be right."""

# Each run takes both candidates and the baseline through all cases.
_ROLES = ((slowed.SAME, CANDIDATE), (slowed.TENTH, CANDIDATE), (slowed.SAME, BASELINE))
_RIGHT = {slowed.SAME: "SAME", slowed.TENTH: "SLOWER"}
_SLOWED_BUILD = "0.3"


_FACTS = {"baseline": None, "ceilings": {"level": None, "absent": "not shown"}}


class _Quiet:
    """Writes the report and shows nothing."""

    def write(self, report: Report) -> None:
        assert report.request.output is not None
        pages.write_all(report.as_dict(), report.request.output)

    def terminal(self, report: Report) -> str:
        return f"{report.status}: {report.reason or report.request.output}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where verdicts are wrong too often."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--runs", type=int, default=100, help="runs beside a baseline (default: %(default)s)")
    add("--tries", type=int, default=20, help="comparisons of two runs (default: %(default)s)")
    add("--budget", type=float, default=1.0, help="seconds a contender and case (%(default)s)")
    add("--folder", type=Path, default=Path("build/evidence/benchmark"))
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    verdicts = _verdicts(options.runs, options.budget, options.folder)
    codes = _comparisons(options.tries, options.budget, options.folder)
    document = {
        "runs": options.runs,
        "tries": options.tries,
        "budget_s": options.budget,
        "seconds": time.monotonic() - began,
        "verdicts": {case: dict(counts) for case, counts in verdicts.items()},
        "compare": codes,
    }
    text = json.dumps(document, indent=1) + "\n"
    replace_text(options.folder / "evidence.json", text)
    print(_markdown(document))
    return int(not _right(document))


def _verdicts(runs: int, budget_s: float, folder: Path) -> dict[str, Counter[str]]:
    """Count verdicts by case and implementation over runs in processes of their own."""
    found: dict[str, Counter[str]] = {}
    for number in range(runs):
        path = folder / "run.json"
        document = _run(path, _ROLES, budget_s)
        for row in document["rows"]:
            case = f"{row['case_id']} {row['implementation']}"
            found.setdefault(case, Counter())[_verdict(row)] += 1
        print(f"[{number + 1}/{runs}] {_short(found)}", file=sys.stderr)
    return found


def _verdict(row: dict[str, Any]) -> str:
    if row["timings"] is None:
        return str(row["status"])
    figures = row["timings"]["regimes"][HOT]
    against = figures["against"]
    word = "no verdict" if against is None else str(against["verdict"])
    return f"{word} (unstable)" if figures["unstable"] else word


def _comparisons(tries: int, budget_s: float, folder: Path) -> dict[str, Any]:
    """Compare each run with the next, the last with a slowed build and with other threads."""
    paths = [folder / f"compared-{number}.json" for number in range(tries + 1)]
    for number, path in enumerate(paths):
        _run(path, [(slowed.SAME, CANDIDATE)], budget_s)
        print(f"[{number + 1}/{len(paths)}] for compare", file=sys.stderr)
    unchanged = Counter(str(_compared(old, new)) for old, new in pairwise(paths))
    build, threads = folder / "slowed.json", folder / "threads.json"
    os.environ[slowed.SLOWED_BY] = _SLOWED_BUILD
    _run(build, [(slowed.SAME, CANDIDATE)], budget_s)
    del os.environ[slowed.SLOWED_BY]
    _run(threads, [(slowed.SAME, CANDIDATE)], budget_s, threads=2)
    return {
        "unchanged": dict(unchanged),
        "slowed by 30 %": _compared(paths[-1], build),
        "other threads": _compared(paths[-1], threads),
    }


def _compared(old: Path, new: Path) -> int:
    """Return the exit code of a comparison, whose table is kept beside the reports."""
    return compare.main([str(old), str(new), "--output", str(new.with_suffix(".compared.json"))])


def _run(
    path: Path, contenders: Sequence[tuple[str, str]], budget_s: float, threads: int = 1
) -> dict[str, Any]:
    """Time contenders in processes of their own and return the report."""
    request = Request(
        kind="benchmark",
        suite=slowed.Suite(),
        device="cpu",
        mode="eager",
        implementation=contenders[0][0],
        warmup=None,
        threads=threads,
        revision=None,
        output=path,
        options=argparse.Namespace(),
        arguments=(),
    )

    def make(asked: Request, rank: int) -> Crew:
        requests = {
            one: replace(asked, implementation=name)
            for name, role in contenders
            for one in Contender(name, threads, role).twice
        }
        return Ensemble(
            requests, Timing((HOT,)), Leader(Rule(None, budget_s), find_probe()[0]), rank=rank
        )

    code = verify.run(request, verify.Command(_Quiet(), {}, make, facts=_FACTS))
    if code == EXIT_INTERRUPTED:
        raise SystemExit(code)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _short(found: dict[str, Counter[str]]) -> str:
    return "; ".join(f"{case}: {dict(counts)}" for case, counts in found.items())


def _right(document: dict[str, Any]) -> bool:
    runs = document["runs"]
    verdicts = all(
        counts.get(_RIGHT[case.split()[1]], 0) * 100 >= WANTED * runs
        for case, counts in document["verdicts"].items()
    )
    codes = document["compare"]
    return (
        verdicts
        and "1" not in codes["unchanged"]
        and (codes["slowed by 30 %"], codes["other threads"]) == (1, 3)
    )


def _markdown(document: dict[str, Any]) -> str:
    lines = ["| case | more work | verdicts |", "| --- | --- | --- |"]
    for case, counts in document["verdicts"].items():
        name, implementation = case.split()
        more = "none" if implementation == slowed.SAME else "10 %"
        shown = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        lines.append(f"| {name} | {more} | {shown} |")
    codes = document["compare"]
    unchanged = ", ".join(f"{n} x {code}" for code, n in sorted(codes["unchanged"].items()))
    lines += [
        "",
        f"`compare` of runs of one build: exit codes {unchanged}; with a build slowed by 30 %: "
        f"{codes['slowed by 30 %']}; with another number of threads: {codes['other threads']}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
