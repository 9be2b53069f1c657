"""``python -m peers OPERATION``: time other libraries beside ours, in turns, and report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from peers import page
from peers.operation import Dimensions, Form, Operation
from peers.operations import operations
from peers.peer import LIBRARIES, OURS, Peer, discover
from peers.suite import PeerSuite
from xllm_kernel.benchmark import report as pages
from xllm_kernel.benchmark.ceilings.probe import Probe
from xllm_kernel.benchmark.command import find_probe, shown
from xllm_kernel.benchmark.ensemble import Ensemble
from xllm_kernel.benchmark.leading import BASELINE, Contender, Leader
from xllm_kernel.benchmark.statistics.plateau import Rule
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import HOT
from xllm_kernel.numerics import arguments, verify
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes.crew import Crew
from xllm_kernel.numerics.processes.following import KEEP_GOING
from xllm_kernel.numerics.report import Report, replace_text

Shape = tuple[int, int]

SHAPES: tuple[Shape, ...] = ((1, 512), (1, 6144), (16, 6144), (128, 6144))
# Fresh outputs this large come from the system: what a call takes is then its page faults.
LARGE: tuple[Shape, ...] = ((4096, 6144), (65536, 512))
DTYPES = ("bfloat16", "float16")
THREADS = (1, 2)
_BUDGET_S = 0.1
# Of a dozen contenders; a round of the largest cases takes seconds.
_FEWEST = 7


def main(argv: Sequence[str], folder: Path = LIBRARIES) -> int:
    """Run the command line.

    Args:
        argv: its arguments.
        folder: of the libraries' files.

    Returns:
        0 where our own implementation was right in every case, whatever became of the others.
    """
    known = operations()
    options = _parser(known).parse_args(argv)
    operation = known[options.operation]
    found = discover(folder)
    peers = list(found.values())
    ours = found[OURS].name
    request = _request(PeerSuite(operation, peers, _sizes(operation, options)), ours, options, argv)
    probe, ceilings = find_probe()
    shown_as = _Pages(operation, ours)
    command = verify.Command(
        pages=shown_as,
        settings={
            "regimes": [HOT],
            "threads": list(options.threads),
            "budget_s": options.budget,
            "garbage_collector": "off while timing",
        },
        make_crew=_crews(peers, ours, probe),
        exclusive=True,
        facts={"baseline": ours, "ceilings": ceilings},
    )
    verify.run(request, command)
    return int(not shown_as.ours_passed)


def _request(
    suite: PeerSuite, ours: str, options: argparse.Namespace, argv: Sequence[str]
) -> Request:
    """Return what the run as a whole is asked for; each contender's differs in name and threads."""
    return Request(
        kind="benchmark",
        suite=suite,
        device="cpu",
        mode="eager",
        implementation=ours,
        warmup=None,
        threads=None,
        revision=None,
        output=options.output or Path(f"build/peers/{suite.operation}.json"),
        options=options,
        arguments=tuple(argv),
        cases=tuple(options.case),
        on_failure=KEEP_GOING,
        program=("./dev", "bench"),
    )


def _sizes(operation: Operation, options: argparse.Namespace) -> dict[str, list[Dimensions]]:
    return {
        form.name: [
            Dimensions(dtype, *shape)
            for dtype in options.dtypes
            for shape in options.shapes or _shapes_of(form)
        ]
        for form in operation.forms
        if form.name in options.forms
    }


def _shapes_of(form: Form) -> tuple[Shape, ...]:
    return SHAPES + LARGE if form.callers_memory else SHAPES


def _crews(peers: Sequence[Peer], ours: str, probe: Probe | None) -> Callable[[Request, int], Crew]:
    """Return what makes the crew: a process for each library and number of threads, ours twice."""

    def make(request: Request, rank: int) -> Crew:
        contenders = [
            one
            for threads in request.options.threads
            for one in Contender(ours, threads, BASELINE).twice
        ]
        contenders += [
            Contender(peer.name, threads)
            for peer in peers
            if peer.name != ours
            for threads in request.options.threads
        ]
        asked = {c: replace(request, implementation=c.name, threads=c.threads) for c in contenders}
        leader = Leader(Rule(None, request.options.budget, fewest=_FEWEST), probe)
        optional = frozenset(peer.name for peer in peers if peer.name != ours)
        return Ensemble(asked, Timing((HOT,)), leader, optional, rank)

    return make


@dataclass(slots=True)
class _Pages:
    """The benchmark's pages, with what is of this comparison alone at their end.

    Attributes:
        operation: the operator.
        ours: name of our implementation.
        ours_passed: whether the run is whole and every case of ours passed; known in the end.
    """

    operation: Operation
    ours: str
    ours_passed: bool = field(default=False, init=False)

    def write(self, report: Report) -> None:
        if report.request.output is None:
            return
        document = report.as_dict()
        path = report.request.output.resolve()
        pages.write_all(document, path)
        beside = path.with_suffix(".md")
        text = beside.read_text(encoding="utf-8") + page.markdown(document, self.operation)
        replace_text(beside, text)

    def terminal(self, report: Report) -> str:
        document = report.as_dict()
        mine = [row["status"] for row in document["rows"] if row["implementation"] == self.ours]
        whole = not document["coverage"]["not_run"]
        self.ours_passed = whole and set(mine) == {"passed"}
        said = [shown(document), page.terminal(document, self.operation)]
        return "\n".join([*said, f"  report: {report.request.output}"])


def _parser(known: Mapping[str, Operation]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, allow_abbrev=False)
    verbs = parser.add_subparsers(dest="operation", required=True, metavar="OPERATION")
    for operation in known.values():
        chosen = verbs.add_parser(operation.name, help=operation.note, allow_abbrev=False)
        _add_options(chosen, operation)
    return parser


def _add_options(parser: argparse.ArgumentParser, operation: Operation) -> None:
    forms = [form.name for form in operation.forms]
    add = parser.add_argument
    add("--forms", nargs="+", choices=forms, default=forms, help="default: all")
    add(
        "--shapes",
        type=_shape,
        nargs="+",
        metavar="ROWSxWIDTH",
        help=f"default: {_listed(SHAPES)}; {_listed(LARGE)} too where memory is the caller's",
    )
    add("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, help="default: both")
    add(
        "--threads",
        type=arguments.positive,
        nargs="+",
        default=THREADS,
        metavar="N",
        help="inside an operator; each number of them is a contender (default: 1 2)",
    )
    add(
        "--budget",
        type=arguments.seconds,
        default=_BUDGET_S,
        metavar="SECONDS",
        help="time for the samples of a contender and case, twice that where the machine is busy "
        "(default: %(default)g)",
    )
    add("--case", nargs="+", default=[], metavar="ID", help="run these cases alone")
    add(
        "--output",
        type=_json,
        metavar="FILE.json",
        help="report; Markdown and HTML lie beside it (default: build/peers/OPERATION.json)",
    )


def _shape(text: str) -> Shape:
    rows, _, width = text.partition("x")
    if not (rows.isdigit() and width.isdigit() and int(rows) and int(width)):
        raise argparse.ArgumentTypeError(f"a shape is ROWSxWIDTH as 16x6144, got {text!r}")
    return int(rows), int(width)


def _json(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".json":
        raise argparse.ArgumentTypeError(f"must end in .json, got {text!r}")
    return path


def _listed(shapes: Sequence[Shape]) -> str:
    return " ".join(f"{rows}x{width}" for rows, width in shapes)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
