"""Command-line options that every operation shares, and the suite's own behind them.

Parsing needs neither a framework nor a device.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import catalog
from xllm_kernel.numerics.processes import following
from xllm_kernel.numerics.suite import OperationSuite

_MOST = 2**31 - 1  # what C libraries take for a number of threads

AddOptions = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True, slots=True)
class Request:
    """What a run was asked to do.

    Attributes:
        kind: ``numerics`` or ``benchmark``.
        suite: the operation's suite.
        device: device type.
        mode: execution mode.
        implementation: full name of the implementation.
        warmup: calls before the result counts; None leaves it to the runner.
        threads: intra-operator threads; None leaves them as they are.
        revision: source revision to record, or None.
        output: path of the JSON report, or None for none.
        options: all parsed options; the suite and the command read their own.
        arguments: the command line's, as given.
        cases: identifiers of the cases and guarantees to run; empty for all.
        on_failure: ``following.FAIL_FAST``, ``following.KEEP_GOING``, or None for neither.
        listing: whether to print the cases' identifiers instead of running them.
        program: the words before the arguments, where it is no module of this package.
    """

    kind: str
    suite: OperationSuite
    device: str
    mode: str
    implementation: str
    warmup: int | None
    threads: int | None
    revision: str | None
    output: Path | None
    options: argparse.Namespace
    arguments: tuple[str, ...]
    cases: tuple[str, ...] = ()
    on_failure: str | None = None
    listing: bool = False
    program: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The command line."""
        return self.command_of(self.arguments)

    def command_of(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return the command line with other arguments."""
        return (*(self.program or ("python", "-m", f"xllm_kernel.{self.kind}")), *arguments)


def positive(text: str) -> int:
    """Parse an integer >= 1, for ``argparse``."""
    return _integer(text, 1)


def not_negative(text: str) -> int:
    """Parse an integer >= 0, for ``argparse``."""
    return _integer(text, 0)


def seconds(text: str) -> float:
    """Parse a number of seconds above 0, for ``argparse``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return value


def parse(kind: str, argv: Sequence[str], add_options: AddOptions | None = None) -> Request:
    """Parse a command line.

    Args:
        kind: name of the command's module below the package.
        argv: arguments without the program's name.
        add_options: adds the command's own options.

    Raises:
        SystemExit: with 0 after ``--help``, with 2 for a command line that makes no sense.
    """
    suites = catalog.suites()
    first = _parser(kind, add_help=False)
    _add_choice(first, suites)
    chosen, _ = first.parse_known_args(argv)
    parser = _parser(kind, add_help=True)
    _add_choice(parser, suites)
    _add_common(parser)
    if add_options is not None:
        add_options(parser)
    try:
        suite = _find_suite(suites, chosen.operation, chosen.implementation)
    except ConfigurationError as error:
        parser.error(str(error))
    if suite is None:
        parser.epilog = "Options of an operation's suite: --operation NAME --help."
    else:
        suite.add_arguments(parser)
    if suite is None:
        parser.parse_known_args(argv)  # --help; a suite's options are not known yet
        parser.error(
            "--implementation is required, or --operation to see which there are; operations: "
            f"{', '.join(sorted(suites))}"
        )
    args = parser.parse_args(argv)
    if args.implementation is None and not args.list:
        known = ", ".join(suite.implementations)
        parser.error(f"--implementation is required for {suite.operation}; one of {known}")
    if args.output is not None and args.output.suffix != ".json":
        parser.error(
            f"--output: must end in .json, got '{args.output}'; the Markdown report is written "
            "beside it"
        )
    return Request(
        kind=kind,
        suite=suite,
        device=args.device,
        mode=args.mode,
        implementation=args.implementation or "",
        warmup=args.warmup,
        threads=args.threads,
        revision=args.revision,
        output=args.output,
        options=args,
        arguments=tuple(argv),
        cases=tuple(args.case),
        on_failure=args.on_failure,
        listing=args.list,
    )


def _integer(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= _MOST:
        raise argparse.ArgumentTypeError(
            f"must be an integer >= {least} and at most {_MOST}, got {text!r}"
        )
    return value


def _parser(kind: str, add_help: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m xllm_kernel.{kind}", add_help=add_help, allow_abbrev=False
    )
    # A suite may offer a command what another has no use for.
    parser.set_defaults(kind=kind)
    return parser


def _add_choice(parser: argparse.ArgumentParser, suites: Mapping[str, OperationSuite]) -> None:
    parser.add_argument(
        "--operation",
        metavar="NAME",
        help=f"operation (default: the implementation's); one of {', '.join(sorted(suites))}",
    )
    parser.add_argument(
        "--implementation", metavar="NAME", help="full name of the implementation to run"
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", default="cpu", help="device type (default: %(default)s)")
    add("--mode", default="eager", help="execution mode (default: %(default)s)")
    add("--warmup", type=not_negative, metavar="N", help="calls before the result counts")
    add("--threads", type=positive, metavar="N", help="threads inside an operator")
    add("--revision", metavar="TEXT", help="source revision to record in the report")
    add(
        "--output",
        type=Path,
        metavar="PATH",
        help="JSON report; a Markdown one is written beside it",
    )
    _add_parts(parser.add_argument_group("parts of a run"))


def _add_parts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--case",
        nargs="+",
        default=[],
        metavar="ID",
        help="run these cases alone, or guarantees as OPERATION/NAME",
    )
    group.add_argument(
        "--list", action="store_true", help="print the identifiers of the cases and run none"
    )
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--fail-fast",
        dest="on_failure",
        action="store_const",
        const=following.FAIL_FAST,
        help="stop after the first case that does not pass",
    )
    either.add_argument(
        "--keep-going",
        dest="on_failure",
        action="store_const",
        const=following.KEEP_GOING,
        help="go on, in a new process, where an error may have spoiled device or graphs too",
    )


def _find_suite(
    suites: Mapping[str, OperationSuite], operation: str | None, implementation: str | None
) -> OperationSuite | None:
    if operation is not None and operation not in suites:
        raise ConfigurationError(
            f"--operation: unknown operation {operation!r}; one of {', '.join(sorted(suites))}"
        )
    if implementation is None:
        return suites[operation] if operation is not None else None
    owner = next((s for s in suites.values() if implementation in s.implementations), None)
    if owner is None:
        known = ", ".join(name for s in suites.values() for name in s.implementations)
        raise ConfigurationError(
            f"--implementation: unknown implementation {implementation!r}; one of {known}"
        )
    if operation is not None and owner.operation != operation:
        raise ConfigurationError(
            f"--implementation: {implementation!r} implements {owner.operation}, not {operation}"
        )
    return owner
