"""How many planted faults other projects' tolerances let through, on the self-test's own cases.

PYTHONPATH=xllm-kernel/python python tools/evidence/peer_tolerances.py [--into docs/validation.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from peer_rules import RULES
from peer_run import CLASSES, OURS, PeerRun
from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.numerics import arguments

IMPLEMENTATIONS = (
    "cpu.torch.rms_norm",
    "cpu.torch.fused_add_rms_norm_inplace",
    "cpu.simd.rms_norm",
)
BEGIN, END = "<!-- peer tolerances: begin -->", "<!-- peer tolerances: end -->"
COMMAND = "./dev evidence tolerances"

_HEADS = {
    "values": "values",
    "nonfinite": "nonfinite, subnormal",
    "form": "form",
    "memory": "memory, aliasing",
    "conduct": "state, dependence",
}

Result = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; 3 where nothing could be tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--into", type=Path, metavar="FILE", help="replace the table between its marks there")
    add("--one", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)
    options, own = parser.parse_known_args(argv)
    if options.one is not None:
        return _try_one(options.one[0], Path(options.one[1]), own)
    results = [r for r in (_elsewhere(name, own) for name in IMPLEMENTATIONS) if r is not None]
    if not results:
        return 3
    text = markdown(results, _facts(own))
    print(text)
    if options.into is not None:
        replace(options.into, text)
    return 0


def markdown(results: Sequence[Result], facts: str) -> str:
    """Return the tables of what each rule let through.

    Args:
        results: of ``PeerRun.results``, one for each implementation.
        facts: where and when they were made.
    """
    names = [OURS, *(rule.name for rule in RULES)]
    heads = ["rule", *_HEADS.values(), "**all**", "cases"]
    lines = [_row(heads), _row(["---"] + ["---:"] * (len(heads) - 1))]
    for name in names:
        counts = [_count(results, name, kind) for kind in CLASSES]
        lines.append(
            _row([name, *counts, f"**{_count(results, name, None)}**", _judged(results, name)])
        )
    details = [
        _row(["rule", "tolerance, relative + absolute", "faults of values let through"]),
        _row(["---"] * 3),
    ]
    for rule in RULES:
        details.append(_row([rule.name, rule.limits, ", ".join(_values(results, rule.name))]))
    sources = [f"- {rule.name}: {rule.source}" for rule in RULES]
    tried = ", ".join(
        f"`{r['implementation']}` ({len(r['classes'])} faults, {r['cases']} cases)" for r in results
    )
    return "\n".join([facts, "", f"Tried: {tried}.", "", *lines, "", *details, "", *sources])


def replace(path: Path, text: str) -> None:
    """Put a text between the marks in a file."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _count(results: Sequence[Result], name: str, kind: str | None) -> str:
    """Return how many faults of a class were let through, of how many, over implementations."""
    through = total = 0
    for result in results:
        those = {f for f, its in result["classes"].items() if kind in (None, its)}
        total += len(those)
        through += len(those & set(result["let_through"][name]))
    return f"{through} / {total}"


def _judged(results: Sequence[Result], name: str) -> str:
    total = sum(r["cases"] for r in results)
    judged = total if name == OURS else sum(r["judged"][name] for r in results)
    return f"{judged} / {total}"


def _values(results: Sequence[Result], name: str) -> list[str]:
    """Return the faults of values that were let through in some implementation."""
    found = (f for r in results for f in r["let_through"][name] if r["classes"][f] == "values")
    return list(dict.fromkeys(found))


def _facts(own: Sequence[str]) -> str:
    import torch

    day = time.strftime("%Y-%m-%d")
    machine = f"{platform.machine()}, {os.cpu_count()} logical CPUs"
    options = "".join(f" {word}" for word in own)
    return f"{day}, torch {torch.__version__}, CPU ({machine}): `{COMMAND}{options}`."


def _try_one(name: str, path: Path, own: Sequence[str]) -> int:
    """Try one implementation in this process, and write down what was found."""
    try:
        request = arguments.parse("numerics", ["--implementation", name, *own])
        found = PeerRun(request).results()
    except (ConfigurationError, DependencyAbsentError) as error:
        print(f"{name}: not tried: {error}", file=sys.stderr)
        return 3
    path.write_text(json.dumps(found), encoding="utf-8")
    return 0


def _elsewhere(name: str, own: Sequence[str]) -> Result | None:
    """Try one implementation in a child, since a process binds one for life."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        begin = time.monotonic()
        command = [sys.executable, __file__, "--one", name, str(path), *own]
        code = subprocess.run(command, check=False).returncode
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        if code not in (0, 3):
            raise SystemExit(f"{name}: its process ended with {code}")
        if not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if found["honest_failure"] is not None:
        raise SystemExit(f"{name} fails without any fault: {found['honest_failure']}")
    return found


if __name__ == "__main__":
    sys.exit(main())
