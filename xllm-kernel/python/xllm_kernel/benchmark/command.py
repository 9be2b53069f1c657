"""A run of the benchmark: its options, who takes part, and where its report goes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xllm_kernel.benchmark import report as pages
from xllm_kernel.benchmark.ceilings.probe import CeilingsAbsentError, Probe
from xllm_kernel.benchmark.ensemble import Alone, Ensemble
from xllm_kernel.benchmark.leading import BASELINE, Contender, Leader
from xllm_kernel.benchmark.past import store
from xllm_kernel.benchmark.past.documents import DocumentError
from xllm_kernel.benchmark.statistics.plateau import Rule
from xllm_kernel.benchmark.tables import room
from xllm_kernel.benchmark.timing import Timing
from xllm_kernel.benchmark.units import REGIMES, check_regimes, default_regime
from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics import arguments, streams, verify
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes.crew import Crew, can_isolate
from xllm_kernel.numerics.processes.worker import EXIT_COULD_NOT_RUN, EXIT_USAGE
from xllm_kernel.numerics.report import Report


def main(argv: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    request = arguments.parse("benchmark", argv, _add_options)
    options = request.options
    try:
        regimes = tuple(options.regimes or (default_regime(request.mode),))
        check_regimes(regimes, request.mode)
        _check_baseline(options.baseline, request)
        if options.cpus is not None:
            _pin(options.cpus)
        if options.store is not None:
            _check_store(options.store)
        run = Run(regimes, options.baseline, options.iterations, options.repeats, options.budget)
        return run.carry_out(request, options.store)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Run:
    """What a run measures, and how much of it.

    Attributes:
        regimes: their names.
        baseline: implementation that takes part in turns; None for none.
        iterations: replays a sample, exactly, or None.
        repeats: samples, exactly, or None.
        budget_s: seconds of sampling for each implementation, case and regime.
    """

    regimes: tuple[str, ...]
    baseline: str | None
    iterations: int | None
    repeats: int | None
    budget_s: float

    def carry_out(self, request: Request, folder: Path | None = None) -> int:
        """Time all cases and leave the report, in the folder of past runs too if there is one."""
        probe, ceilings = find_probe()
        shown_as = _Pages()
        command = verify.Command(
            pages=shown_as,
            settings=self._settings(request),
            make_crew=lambda asked, rank: self._crew(asked, rank, probe),
            exclusive=True,
            facts={"baseline": self.baseline, "ceilings": ceilings},
        )
        code = verify.run(request, command)
        if folder is None or not shown_as.last:
            return code
        try:
            streams.show(f"  stored: {store.add(shown_as.last, folder)}")
        except (OSError, DocumentError) as error:
            print(f"--store: {error}", file=sys.stderr)
            return EXIT_COULD_NOT_RUN
        return code

    def _crew(self, request: Request, rank: int, probe: Probe | None) -> Crew:
        stage = Timing(self.regimes, self.iterations)
        leader = Leader(Rule(self.repeats, self.budget_s), probe)
        if self.baseline is None and not can_isolate():
            return Alone(request, stage, leader, rank)
        if not can_isolate():
            raise ConfigurationError(
                "--baseline: each implementation needs a process of its own, and this one has "
                "loaded PyTorch already; run python -m xllm_kernel.benchmark"
            )
        contenders = [*Contender(request.implementation, request.threads).twice]
        if self.baseline is not None:
            contenders += Contender(self.baseline, request.threads, BASELINE).twice
        asked = {c: replace(request, implementation=c.name) for c in contenders}
        return Ensemble(asked, stage, leader, rank=rank)

    def _settings(self, request: Request) -> dict[str, Any]:
        return {
            "warmup": request.warmup,
            "threads": request.threads,
            "iterations": self.iterations,
            "repeats": self.repeats,
            "budget_s": self.budget_s,
            "regimes": list(self.regimes),
            "garbage_collector": "off while timing",
        }


@dataclass(slots=True)
class _Pages:
    """A benchmark's files and table, all made of the report's document.

    Attributes:
        last: the document that was shown in the end; empty before.
    """

    last: Mapping[str, Any] = field(default_factory=dict, init=False)

    def write(self, report: Report) -> None:
        if report.request.output is not None:
            pages.write_all(report.as_dict(), report.request.output)

    def terminal(self, report: Report) -> str:
        self.last = report.as_dict()
        where = [] if report.request.output is None else [f"  report: {report.request.output}"]
        return "\n".join([shown(self.last), *where])


def shown(document: Mapping[str, Any]) -> str:
    """Return a report's document as it is shown where standard output goes."""
    return pages.terminal(document, room(), color=sys.stdout.isatty())


def find_probe() -> tuple[Probe | None, dict[str, str | None]]:
    """Return the ceilings' probe, and what a report says of it: its level, or why it is absent."""
    try:
        probe = Probe.load()
    except CeilingsAbsentError as error:
        return None, {"level": None, "absent": str(error)}
    return probe, {"level": probe.level, "absent": None}


def _check_store(folder: Path) -> None:
    """Try the folder of past runs now: after a run it would be too late to say that it fails."""
    try:
        store.prepare(folder)
    except OSError as error:
        raise ConfigurationError(
            f"--store: must be a folder that files can be added to, by hard links: {error}"
        ) from error


def _check_baseline(name: str | None, request: Request) -> None:
    known = request.suite.implementations
    if name is not None and name not in known:
        raise ConfigurationError(
            f"--baseline: must be one of {', '.join(known)}, which implement "
            f"{request.suite.operation}, got {name!r}"
        )


def _pin(cpus: Sequence[int]) -> None:
    """Keep this process and all that it starts on some processors."""
    if len(set(cpus)) < len(cpus):
        raise ConfigurationError(f"--cpus: each must be named once, got {' '.join(map(str, cpus))}")
    allowed = os.sched_getaffinity(0)
    wrong = [cpu for cpu in cpus if cpu not in allowed]
    if wrong:
        raise ConfigurationError(
            f"--cpus: must be among {' '.join(map(str, sorted(allowed)))}, got {wrong[0]}"
        )
    os.sched_setaffinity(0, cpus)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Time an implementation. Other verbs, of reports that are there: compare --help, history "
        "--help."
    )
    add = parser.add_argument_group("timing").add_argument
    add(
        "--iterations",
        type=arguments.positive,
        metavar="N",
        help="replays a sample, exactly (default: as many as a sample of 1 ms takes)",
    )
    add(
        "--repeats",
        type=arguments.positive,
        metavar="N",
        help="rounds, exactly: one sample each (default: until their noise falls no further)",
    )
    add(
        "--budget",
        type=arguments.seconds,
        default=1.0,
        metavar="SECONDS",
        help="time for the samples of an implementation, case and regime, twice that where the "
        "machine is busy (default: %(default)g)",
    )
    add(
        "--regimes",
        choices=REGIMES,
        nargs="+",
        help="hot: the same buffers; cold: rotated ones, in no cache; enqueue: a call without its "
        "work; graph: replays (default: hot, and graph in graph modes)",
    )
    add(
        "--baseline",
        metavar="NAME",
        help="implementation to compare with, in turns and in processes of their own",
    )
    add("--cpus", type=int, nargs="+", metavar="N", help="processors to stay on")
    add(
        "--store",
        type=Path,
        metavar="DIR",
        help="folder of past runs: keep the report there too, for the verb history",
    )
