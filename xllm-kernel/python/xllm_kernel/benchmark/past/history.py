"""``python -m xllm_kernel.benchmark history --store DIR``: an operator's times over revisions.

Shows what a store holds; compares neighbours by the rules of ``compare``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xllm_kernel.benchmark.past import store
from xllm_kernel.benchmark.past.compare import DEFAULT_GATE, Comparison, compare, share
from xllm_kernel.benchmark.past.documents import DocumentError, Figure, Identity, Past, load
from xllm_kernel.benchmark.past.judge import Judged
from xllm_kernel.benchmark.past.sparkline import sparkline
from xllm_kernel.benchmark.statistics import median
from xllm_kernel.benchmark.statistics.ratios import sign_interval
from xllm_kernel.benchmark.tables import Plain, drawn, fitted, printable, room
from xllm_kernel.numerics import streams
from xllm_kernel.numerics.render import NOTHING, number
from xllm_kernel.platforms.evidence import disclaimer

SHOWN, USAGE, DAMAGED = 0, 2, 3

_FEWEST = 6


@dataclass(frozen=True, slots=True)
class Step:
    """A run in a figure's line.

    Attributes:
        past: the run.
        figure: its figure.
        judged: beside the last run before that it can be compared with; None without one.
        breaks: why it cannot be compared with the run just before.
    """

    past: Past
    figure: Figure
    judged: Judged | None
    breaks: Sequence[str]


class History:
    """Runs in the order of time, and what neighbours in it say of one another."""

    def __init__(self, runs: Sequence[Past], gate: float) -> None:
        """Take runs.

        Args:
            runs: the oldest first.
            gate: the slowdown that matters, as a share.
        """
        self._runs, self._gate = runs, gate
        self._compared: dict[tuple[int, int], Comparison] = {}

    def identities(self) -> list[Identity]:
        """Return everything that any run has a figure of."""
        return list(dict.fromkeys(identity for past in self._runs for identity in past.figures))

    def line(self, identity: Identity) -> Iterator[Step]:
        """Follow one figure through the runs that have it."""
        having = [at for at, past in enumerate(self._runs) if identity in past.figures]
        for place, at in enumerate(having):
            past, judged, breaks = self._runs[at], None, list[str]()
            for before in reversed(having[:place]):
                comparison = self._compare(before, at)
                if not comparison.pairing.reasons:
                    judged = next(row for row in comparison.rows if row.identity == identity)
                    break
                breaks = breaks or list(comparison.pairing.reasons)
            yield Step(past, past.figures[identity], judged, breaks)

    def _compare(self, old: int, new: int) -> Comparison:
        """Compare two runs once, for all their figures."""
        if (old, new) not in self._compared:
            self._compared[old, new] = compare(self._runs[old], self._runs[new], self._gate)
        return self._compared[old, new]


def main(argv: Sequence[str]) -> int:
    """Run the command line that follows the word ``history``; return the exit code."""
    streams.open_all()
    options = _parser().parse_args(argv)
    try:
        found = store.entries(options.store)
    except OSError as error:
        print(f"history: {error}", file=sys.stderr)
        return USAGE
    runs, simulated, damaged = _open(found, options)
    history = History(runs, options.gate)
    chosen = [identity for identity in history.identities() if _asked_for(identity, options)]
    figures = ["\n".join([*_shown(one, list(history.line(one))), ""]) for one in chosen]
    shown = [*figures, *map(printable, simulated)]
    if shown:
        streams.show("\n".join(shown))
    for line in damaged:
        print(f"history: skipped {printable(line)}", file=sys.stderr)
    if damaged:
        return DAMAGED
    if not chosen and not simulated:
        print(
            f"history: '{options.store}' must hold a run that was asked for, it has none; without "
            "--operation, --implementation, --case and --regime all that it has is shown",
            file=sys.stderr,
        )
        return USAGE
    return SHOWN


def _open(
    found: Sequence[store.Entry], options: argparse.Namespace
) -> tuple[list[Past], list[str], list[str]]:
    """Return readable runs, a line for each simulated one, and why others are damaged."""
    runs, simulated, damaged = list[Past](), list[str](), list[str]()
    for entry in found:
        if entry.damaged is not None:
            damaged.append(f"{entry.file}: {entry.damaged}")
            continue
        if options.operation and options.operation not in entry.operations:
            continue
        if options.implementation and options.implementation not in entry.implementations:
            continue
        notice = disclaimer(entry.evidence)
        if notice is not None:
            simulated.append(f"{entry.started}  {', '.join(entry.implementations)}  {notice}")
            continue
        try:
            runs.append(load(options.store / entry.file))
        except DocumentError as error:
            damaged.append(f"{entry.file}: {error}")
    return runs, simulated, damaged


def _asked_for(identity: Identity, options: argparse.Namespace) -> bool:
    asked = (
        (options.operation, identity.operation),
        (options.implementation, identity.implementation),
        (options.case, identity.case_id),
        (options.regime, identity.regime),
    )
    return all(wanted in (None, name) for wanted, name in asked)


def _shown(identity: Identity, steps: Sequence[Step]) -> list[str]:
    """Return a figure's heading, its line as bars, and its table with the breaks in it."""
    count = identity.threads
    threads = "" if count is None else f", {count} thread{'s' * (count != 1)}"
    bars = sparkline(
        [median(step.figure.samples) for step in steps], sys.stdout.encoding or "ascii"
    )
    name = printable(f"{identity.implementation}, {identity.regime}{threads}")
    title = f"{printable(identity.case_id)}  {name}"
    cells = [list(map(printable, _cells(step))) for step in steps]
    columns, cells, notes = fitted(_COLUMNS, cells, room())
    head, *lines = drawn(columns, cells)
    shown = [title, f"  {bars}", head]
    for step, line in zip(steps, lines, strict=True):
        shown += [
            f"  -- not comparable with the run before: {printable(why)}" for why in step.breaks
        ]
        shown.append(line)
        shown += [f"     {printable(why)}" for why in _doubts(step)]
    return [*shown, *(f"  {note}" for note in notes)]


_COLUMNS = (
    Plain("started", words=True),
    Plain("revision", words=True),
    Plain("median us [low, high]"),
    Plain("of ceiling", 1),
    Plain("ratio"),
    Plain("verdict", words=True),
)


def _cells(step: Step) -> tuple[str, ...]:
    samples = step.figure.samples
    low, high = sign_interval(sorted(samples)) if len(samples) >= _FEWEST else (None, None)
    roofline: Mapping[str, float] = step.figure.figures.get("roofline") or {}
    reached = f"{100 * roofline['share']:.0f} %" if "share" in roofline else NOTHING
    judged = step.judged
    return (
        step.past.document["started"][: len("2026-01-02T03:04:05")],
        (step.past.document.get("revision") or NOTHING)[:12],
        f"{number(median(samples))} [{number(low)}, {number(high)}]",
        reached,
        NOTHING if judged is None else number(judged.ratio.middle),
        NOTHING if judged is None else judged.verdict.value,
    )


def _doubts(step: Step) -> list[str]:
    """Return what stands in the way of a verdict."""
    if step.judged is not None:
        return [step.judged.why] if step.judged.why else []
    return [f"unstable: {', '.join(step.figure.unstable)}"] if step.figure.unstable else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m xllm_kernel.benchmark history",
        description="Show the runs of a store in order of time, each beside the one before.",
        epilog="Exit codes: 0 shown, 2 usage or nothing to show, 3 files were skipped as damaged.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--store", type=Path, required=True, metavar="DIR", help="folder of past runs")
    add("--operation", metavar="NAME", help="show this operation alone")
    add("--implementation", metavar="NAME", help="show this implementation alone")
    add("--case", metavar="ID", help="show this case alone")
    add("--regime", metavar="NAME", help="show this regime alone: hot, cold, enqueue or graph")
    add(
        "--gate",
        type=share,
        default=DEFAULT_GATE,
        metavar="SHARE",
        help="slowdown that matters, such as 5%% or 0.05 (default: 5%%)",
    )
    return parser
