"""``python -m xllm_kernel.numerics --self-test``: which planted faults do the suites notice?

Each implementation is tried in a process of its own, since a process binds one for life. A fault is
killed by the first of the suite's cases, or by the guarantee, that fails because of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.numerics import arguments, catalog
from xllm_kernel.numerics.planted import report
from xllm_kernel.numerics.report import json_value, replace_text
from xllm_kernel.numerics.suite import OperationSuite

FLAG = "--self-test"
_OF_RUNS = ("--list", "--case", "--fail-fast", "--keep-going")


def main(argv: Sequence[str]) -> int:
    """Run the command line, without the flag itself, and return its exit code.

    0: every applicable fault was killed, 1: one survived or a good callable failed, 2: usage,
    3: nothing could be tried.
    """
    suites = catalog.suites()
    options, own = _parser(suites).parse_known_args(argv)
    refused = [word for word in own if word in _OF_RUNS]
    if refused:
        _parser(suites).error(f"{refused[0]} is an option of a run; faults are tried on every case")
    chosen = [s for s in suites.values() if options.operation in (None, s.operation)]
    if options.implementation is not None:
        chosen = [s for s in chosen if options.implementation in s.implementations]
    if not chosen:
        _parser(suites).error(f"{options.implementation} implements no such operation")
    if options.implementation is not None:
        results = [_here(chosen[0], options, own)]
    else:
        results = [
            _elsewhere(suite, name, options, own)
            for suite in chosen
            for name in suite.implementations
            if name.startswith(f"{options.device}.")
        ]
    document = report.document(results, [FLAG, *argv])
    if options.output is not None:
        replace_text(options.output, json.dumps(json_value(document), indent=2) + "\n")
    print(report.text(document))
    return int(document["exit_code"])


def _parser(suites: Mapping[str, OperationSuite]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m xllm_kernel.numerics {FLAG}",
        description=__doc__,
        epilog="Options of an operation's suite are understood too, where all suites have them.",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--operation", choices=sorted(suites), help="only this operation's suite")
    add("--implementation", metavar="NAME", help="only this implementation, in this process")
    add("--device", default="cpu", help="device type (default: %(default)s)")
    add("--mode", default="eager", help="execution mode (default: %(default)s)")
    add("--faults", nargs="+", metavar="NAME", help="only these faults")
    add("--output", type=Path, metavar="PATH", help="JSON report")
    return parser


def _here(suite: OperationSuite, options: argparse.Namespace, own: Sequence[str]) -> dict[str, Any]:
    """Try one implementation in this process."""
    argv = ["--implementation", options.implementation, "--device", options.device]
    request = arguments.parse("numerics", [*argv, "--mode", options.mode, *own])
    found: dict[str, Any] = {
        "operation": suite.operation,
        "implementation": options.implementation,
        "device": options.device,
        "mode": options.mode,
    }
    from xllm_kernel.numerics.planted.run import FaultRun

    try:
        return {**found, **FaultRun(request, options.faults and tuple(options.faults)).results()}
    except (DependencyAbsentError, ConfigurationError) as error:
        return {**found, "absent": str(error)}


def _elsewhere(
    suite: OperationSuite, name: str, options: argparse.Namespace, own: Sequence[str]
) -> dict[str, Any]:
    """Try one implementation in a child, and return what it found out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        argv = ["--operation", suite.operation, "--implementation", name, "--output", str(path)]
        argv += ["--device", options.device, "--mode", options.mode, *own]
        argv += ["--faults", *options.faults] if options.faults else []
        print(f"{name} ...", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "xllm_kernel.numerics", FLAG, *argv],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if not path.is_file():
            return {
                "operation": suite.operation,
                "implementation": name,
                "broken": f"its process ended with {done.returncode} and no report",
            }
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["suites"][0]
        return results
