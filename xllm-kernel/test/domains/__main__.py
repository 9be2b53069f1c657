"""Print how domains, calls, fakes and the C++ API agree: ``python -m domains --cases 10000``."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import xllm_kernel
from domains import campaign
from domains.subjects import other_voices, subjects

AGREED, DISAGREED, COULD_NOT_RUN = 0, 1, 3


def main() -> int:
    """Judge every implementation of a device and print a table.

    Returns:
        0 where all agree, 1 where not, 3 where there is nothing to ask.
    """
    options = _options()
    warnings.simplefilter("ignore")  # PyTorch's, of rare dtypes
    xllm_kernel.initialize(device=options.device)
    asked, silent = subjects()
    if not asked:
        print(f"no implementation for {options.device} has a domain here")
        return COULD_NOT_RUN
    print(f"{'implementation':38} {'cases':>6} {'accepted':>8} {'refused':>7} {'disagree':>8}")
    failed = False
    for subject in asked:
        began = time.monotonic()
        with other_voices(subject, options.cpp_api) as others:
            tally = campaign.run(subject, options.cases, others)
        _print(tally, time.monotonic() - began)
        failed |= bool(tally.disagreements)
    for name in silent:
        print(f"{name:38} no domain: the vendor's operator checks its arguments")
    return DISAGREED if failed else AGREED


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="domains", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="argument sets each")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpp-api", type=Path, help="the built program `refusals`")
    return parser.parse_args()


def _print(tally: campaign.Tally, seconds: float) -> None:
    counts = (tally.cases, tally.accepted, tally.refused.total(), len(tally.disagreements))
    cases, accepted, refused, disagreements = counts
    print(f"{tally.name:38} {cases:6} {accepted:8} {refused:7} {disagreements:8}")
    print("    refused by " + ", ".join(f"{n} {c}" for n, c in sorted(tally.refused.items())))
    print("    asked " + ", ".join(f"{n} {c}" for n, c in tally.voices.items()))
    print(f"    in {seconds:.0f} s", flush=True)
    if tally.one_sided:
        print(f"    seen by the clauses alone: {', '.join(tally.one_sided)}")
    for disagreement in tally.disagreements:
        print(f"    DISAGREEMENT {disagreement}")


if __name__ == "__main__":
    sys.exit(main())
