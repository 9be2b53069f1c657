"""The life of a run: parse, bind, take every case through its steps, reach a verdict, report.

Knows neither operators nor devices nor modes: suites judge, platforms capture and measure.
"""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.numerics import guarantee_rows, render
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.case_run import CaseEndedError, CaseRun, RefusedError, Stage
from xllm_kernel.numerics.integrity import Seal
from xllm_kernel.numerics.report import Report, Row
from xllm_kernel.numerics.suite import KernelCase
from xllm_kernel.platforms import Platform, get_platform
from xllm_kernel.receipts import Receipt
from xllm_kernel.registry import PreparedKernel

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_COULD_NOT_RUN = 3
EXIT_CRASHED = 4
EXIT_INTERRUPTED = 130

# After these, a graph or the device itself may be unusable, as after any error on a device that
# does not recover: later cases would only echo the fault.
_LAST_STAGES = ("capture", "replay")


def run(
    request: Request, columns: render.Columns, settings: Mapping[str, Any], stage: Stage | None
) -> int:
    """Carry out a request and leave its report, whatever happens.

    Args:
        request: what to do.
        columns: the command's columns in tables.
        settings: what to record of the command's options.
        stage: what follows validation, or None.

    Returns:
        The process's exit code.
    """
    report = Report(request, dict(settings))
    try:
        # A report of an earlier run must not be taken for this one's, should this one be killed.
        report.write(render.markdown(report, columns))
    except OSError as error:
        print(f"--output: {request.output} cannot be written: {error}", file=sys.stderr)
        return EXIT_USAGE
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        execute(request, report, columns, stage)
    except KeyboardInterrupt:
        report.finish("error", EXIT_INTERRUPTED, "interrupted")
    finally:
        signal.signal(signal.SIGTERM, previous)
    try:
        report.write(render.markdown(report, columns))
    except OSError as error:
        print(f"--output: {request.output} can no longer be written: {error}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    _print(render.terminal(report, columns))
    return EXIT_COULD_NOT_RUN if report.exit_code is None else report.exit_code


def _print(text: str) -> None:
    """Print whatever the terminal can show; what it cannot becomes an escape, not an error."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def execute(request: Request, report: Report, columns: render.Columns, stage: Stage | None) -> None:
    """Run every case and record the verdict; only an interrupt gets out."""
    try:
        crashed = _execute(request, report, columns, stage)
    except DependencyAbsentError as error:
        report.finish("error", EXIT_COULD_NOT_RUN, str(error))
    except ConfigurationError as error:
        report.finish("error", EXIT_USAGE, str(error))
    except RefusedError as error:
        report.finish("not_run", EXIT_COULD_NOT_RUN, str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (reported; the report must be complete)
        traceback.print_exc()
        report.finish("error", EXIT_COULD_NOT_RUN, f"{type(error).__name__}: {error}")
    else:
        report.finish(*_verdict(report, crashed))


def _execute(
    request: Request, report: Report, columns: render.Columns, stage: Stage | None
) -> bool:
    """Run every case; return whether the implementation raised in one."""
    suite = request.suite
    platform = _platform(request)
    platform.require()
    report.evidence = platform.evidence
    cases = list(suite.cases(request.options))
    _check_unique(cases)
    report.rows = [Row(c.case_id, c.parameters, report.evidence) for c in cases]
    if request.threads is not None:
        _set_threads(request.threads)
    report.environment.update(platform.environment())
    seal = Seal()  # before anything of the implementation is loaded
    begin = time.perf_counter()
    plan = suite.prepare(request.device, request.mode, request.implementation)
    report.preparation_s = time.perf_counter() - begin
    _check_plan(request, plan)
    report.receipt = Receipt.of(plan).as_dict()
    report.write(render.markdown(report, columns))
    runner = CaseRun(platform, plan, request.mode, request.warmup, stage, seal)
    progress = render.Progress(len(cases), sys.stderr)
    crashed = False
    for case, row in zip(cases, report.rows, strict=True):
        progress.show(row.case_id)
        try:
            runner.run(case, row)
        except CaseEndedError as end:
            crashed |= end.crashed
            if end.stage in _LAST_STAGES or (end.status == "error" and not platform.recovers):
                break
        finally:
            progress.clear()
            report.write(render.markdown(report, columns))
    if stage is None and report.coverage()["passed"]:
        crashed |= _try_guarantees(request, report, columns, plan)
    return crashed


def _try_guarantees(
    request: Request, report: Report, columns: render.Columns, plan: PreparedKernel
) -> bool:
    """Add a row for each stated guarantee; return whether the implementation raised in one."""
    added = guarantee_rows.rows(request, plan, report.evidence)
    report.rows += added
    progress = render.Progress(len(added), sys.stderr)
    crashed = False
    for row in added:
        progress.show(row.case_id)
        crashed |= guarantee_rows.fill_in(row, request, plan)
        progress.clear()
        report.write(render.markdown(report, columns))
    return crashed


def _verdict(report: Report, crashed: bool) -> tuple[str, int, str | None]:
    counts = report.coverage()
    bad = [r for r in report.rows if r.status in ("error", "failed")]
    if bad:
        first = next((r for r in bad if r.status == "error"), bad[0])
        reason = f"{first.case_id}: {first.stage}: {first.reason}"
        if first.status == "error":
            return "error", EXIT_CRASHED if crashed else EXIT_COULD_NOT_RUN, reason
        return "failed", EXIT_FAILED, reason
    if counts["passed"] == 0:
        return "not_run", EXIT_COULD_NOT_RUN, "no case ran, so nothing was shown"
    return "passed", EXIT_PASSED, None


def _platform(request: Request) -> Platform:
    platform = get_platform(request.device)
    if request.mode not in platform.execution_modes:
        raise ConfigurationError(
            f"--mode: must be one of {', '.join(platform.execution_modes)} on device "
            f"'{request.device}', got {request.mode!r}"
        )
    return platform


def _check_plan(request: Request, plan: PreparedKernel) -> None:
    asked = (request.suite.operation, request.implementation)
    got = (plan.spec.contract.operation, plan.spec.name)
    if got != asked:
        raise ConfigurationError(
            f"{asked[0]}: '{asked[1]}' was requested, but the suite prepared {got[1]} of {got[0]}"
        )


def _check_unique(cases: Sequence[KernelCase]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.case_id in seen:
            raise ConfigurationError(
                f"{case.case_id}: each case must occur once; remove the repeated option value"
            )
        seen.add(case.case_id)


def _set_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
