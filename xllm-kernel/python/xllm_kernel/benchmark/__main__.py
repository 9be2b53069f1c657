"""``python -m xllm_kernel.benchmark``: time one implementation on the cases that it passes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from xllm_kernel.benchmark.report import COLUMNS
from xllm_kernel.benchmark.sampling import Sampling
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.numerics import arguments, verify


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    request = arguments.parse("benchmark", sys.argv[1:] if argv is None else argv, _add_options)
    options = request.options
    settings = {
        "warmup": request.warmup,
        "threads": request.threads,
        "iterations": options.iterations,
        "repeats": options.repeats,
        "cache": "hot: the same buffers in every call",
        "garbage_collector": "off while timing",
    }
    stage = Timing(Sampling(iterations=options.iterations, repeats=options.repeats))
    return verify.run(request, COLUMNS, settings, stage)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--iterations",
        type=arguments.positive,
        metavar="N",
        help="replays a sample, exactly (default: as many as a sample of 1 ms takes)",
    )
    parser.add_argument(
        "--repeats",
        type=arguments.positive,
        metavar="N",
        help="samples, exactly (default: 5 to 51, within a quarter of a second)",
    )


if __name__ == "__main__":
    raise SystemExit(main())
