"""``python -m peers OPERATION``: measure, print the table, write JSON and Markdown."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from peers import libraries, report, run
from peers.blocks import Rule
from peers.catalog import OPERATIONS
from peers.ceilings import Ceilings, of_library, of_torch
from peers.operation import Case, Operation
from xllm_kernel.numerics.report import json_value, replace_text
from xllm_kernel.platforms import get_platform

SHAPES = ((1, 512), (1, 6144), (16, 6144), (128, 6144), (4096, 6144), (65536, 512))
DTYPES = ("bfloat16", "float16")

SCHEMA_VERSION = 1
_SEED = 5309


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 1 where our own implementation is left out anywhere."""
    arguments = sys.argv[1:] if argv is None else argv
    for_dev, given = _parser_for_dev().parse_known_args(arguments)
    options = _parser().parse_args(given)
    operation = OPERATIONS[options.operation]
    ceilings = of_library(for_dev.ceilings) if for_dev.ceilings else of_torch
    document = _measure(operation, options.shapes, options.dtypes, ceilings)
    document["command"] = f"./dev peers {shlex.join(given)}"
    page = report.markdown(document)
    print(page, end="")
    output = options.output or Path(f"build/peers/{operation.name}.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    replace_text(output, json.dumps(json_value(document), indent=1, allow_nan=False) + "\n")
    replace_text(output.with_suffix(".md"), page)
    print(f"report: {output}, and beside it {output.with_suffix('.md').name}")
    left_out = [libraries.OURS in row["left_out"] for row in document["rows"]]
    return int(any(left_out) or libraries.OURS in document["missing"])


def _measure(
    operation: Operation,
    shapes: Sequence[tuple[int, int]],
    dtypes: Sequence[str],
    ceilings: Ceilings,
) -> dict[str, Any]:
    """Measure all cases and return the report as a document."""
    rule, begin = Rule(), time.monotonic()
    loaded, missing = run.load(libraries.LOADERS)
    cases = [Case(dtype, rows, width) for dtype in dtypes for rows, width in shapes]
    rows: list[report.Row] = []
    total = len(cases) * len(operation.forms)
    groups = run.groups(operation, cases, loaded, ceilings, rule, _SEED)
    for number, group in enumerate(groups, 1):
        rows += report.rows(group, libraries.OURS, rule)
        case = group.case
        place = f"{case.dtype} {case.rows}x{case.width} {group.form.name}"
        print(f"[{number}/{total}] {place}, {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "peers",
        "operation": operation.name,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "duration_s": time.monotonic() - begin,
        "environment": get_platform("cpu").environment(),
        "versions": {name: library.version for name, library in loaded.items()},
        "ours": libraries.OURS,
        "missing": missing,
        "note": operation.note,
        "forms": {form.name: form.meaning for form in operation.forms},
        "rule": {name: getattr(rule, name) for name in rule.__slots__},
        "rows": rows,
    }


def _parser_for_dev() -> argparse.ArgumentParser:
    """Return the parser of what ``./dev`` adds to a person's arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    # Our probe, libxllm_kernel_ceilings.so; without it torch's own copy is the ceiling.
    parser.add_argument("--ceilings", type=Path)
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev peers", description=__doc__)
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument(
        "--shapes",
        type=_shapes,
        default=SHAPES,
        metavar="ROWSxWIDTH,...",
        help="default: %(default)s",
    )
    parser.add_argument(
        "--dtypes", type=_dtypes, default=DTYPES, metavar="NAME,...", help="default: %(default)s"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="JSON to write, Markdown beside it (default: build/peers/OPERATION.json)",
    )
    return parser


def _shapes(text: str) -> list[tuple[int, int]]:
    shapes = []
    for part in text.split(","):
        rows, _, width = part.partition("x")
        if not (rows.isdigit() and width.isdigit() and int(rows) and int(width)):
            raise argparse.ArgumentTypeError(f"a shape is ROWSxWIDTH as 16x6144, got {part!r}")
        shapes.append((int(rows), int(width)))
    return shapes


def _dtypes(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in DTYPES]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"a dtype is one of {', '.join(DTYPES)}, got {unknown[0]!r}"
        )
    return names


if __name__ == "__main__":
    raise SystemExit(main())
