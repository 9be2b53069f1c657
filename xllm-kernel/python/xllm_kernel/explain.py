"""``python -m xllm_kernel explain``: which implementation a worker would get here, and why.

Initialises this process as a worker would, environment overrides included, and prints receipts.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence

from xllm_kernel import catalog
from xllm_kernel.errors import ConfigurationError, DependencyAbsentError, KernelError
from xllm_kernel.platforms import get_platform
from xllm_kernel.platforms.evidence import disclaimer
from xllm_kernel.receipts import Receipt, receipts
from xllm_kernel.runtime import initialize

EXIT_USAGE = 2
EXIT_COULD_NOT_RUN = 3
EXIT_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when the receipts were printed, 1 when an installed backend or artefact is broken, 2 for
        wrong usage or configuration, 3 when a dependency or the device is absent.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.operation is not None and options.operation not in catalog.operations():
            known = ", ".join(sorted(catalog.operations()))
            raise ConfigurationError(
                f"explain: unknown operation '{options.operation}'; known operations are {known}"
            )
        platform = get_platform(options.device)
        with _output_to_stderr():
            platform.require()
            initialize(device=options.device, execution_mode=options.mode)
        shown = receipts()
        if options.operation is not None:
            shown = {options.operation: _only(shown, options.operation, options.device)}
    except KernelError as error:
        return _report_error(error, options.json)
    evidence = platform.evidence
    if options.json:
        answer = {name: {"evidence": evidence, **r.as_dict()} for name, r in shown.items()}
        print(json.dumps(answer, indent=2))
        return 0
    notice = disclaimer(evidence)
    paragraphs = [] if notice is None else [notice]
    print("\n\n".join(paragraphs + [_describe(receipt) for receipt in shown.values()]))
    return 0


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Keep standard output for the answer: vendors' modules print while they are loaded.

    Their libraries print from C, past Python's own stream.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m xllm_kernel",
        description=__doc__,
        epilog="Validate an implementation: python -m xllm_kernel.numerics --help. Time one, or "
        "compare such runs: python -m xllm_kernel.benchmark --help.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    explain = verbs.add_parser(
        "explain", help="print each operation's choice and every candidate passed over"
    )
    explain.add_argument("operation", nargs="?", help="only this operation")
    explain.add_argument("--device", default="cpu", help="device type (default: cpu)")
    explain.add_argument("--mode", default="eager", help="execution mode (default: eager)")
    explain.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _only(shown: dict[str, Receipt], operation: str, device: str) -> Receipt:
    receipt = shown.get(operation)
    if receipt is None:
        devices = ", ".join(catalog.operations()[operation].devices)
        raise ConfigurationError(
            f"explain: {operation} has no backend for device '{device}'; it has backends for "
            f"{devices}"
        )
    return receipt


def _report_error(error: KernelError, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"error": type(error).__name__, "message": str(error)}, indent=2))
    else:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    if isinstance(error, DependencyAbsentError):
        return EXIT_COULD_NOT_RUN
    return EXIT_USAGE if isinstance(error, ConfigurationError) else EXIT_FAILED


def _describe(receipt: Receipt) -> str:
    modes = ", ".join(receipt.execution_modes)
    lines = [
        f"{receipt.operation} (contract version {receipt.contract_version}) on {receipt.device}",
        f"  chosen      {receipt.implementation}  (priority {receipt.priority}, modes: {modes})",
        f"  calls       {receipt.entry}",
        f"  built as    {_indented('; '.join(receipt.build) or 'nothing of ours was built')}",
        *(f"  caveat      {_indented(caveat)}" for caveat in receipt.caveats),
        f"  accepts     {_indented(receipt.input_domain)}",
        f"  guarantees  {_indented('; '.join(receipt.guarantees) or 'its contract alone')}",
        f"  plan hash   {receipt.plan_hash}",
    ]
    for number, other in enumerate(receipt.excluded):
        heading = "passed over" if number == 0 else ""
        lines.append(f"  {heading:<12}{other.name}  {other.code}: {_indented(other.reason)}")
    return "\n".join(lines)


def _indented(sentences: str) -> str:
    """Put each sentence on a line of its own, under the first."""
    return sentences.replace("; ", "\n" + " " * 14)
