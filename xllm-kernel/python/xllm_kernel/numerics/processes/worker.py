"""Does the work of a run, one row at a time, and tells each step: in a child, or in this process.

Knows neither how it is told on nor what becomes of it: ``processes.crew`` does.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence

from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.numerics import reproduce
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.case_run import Ask, CaseEndedError, CaseRun, RefusedError, Stage
from xllm_kernel.numerics.integrity import Seal
from xllm_kernel.numerics.invariants import rows as guarantee_rows
from xllm_kernel.numerics.processes.wire import Event
from xllm_kernel.numerics.report import Row
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

Tell = Callable[[Event], None]


class RunEndedError(Exception):
    """A run is over before its last row.

    Attributes:
        status: of the report.
        exit_code: of the command.
        reason: why.
    """

    def __init__(self, status: str, exit_code: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.exit_code, self.reason = status, exit_code, reason

    @classmethod
    def of(cls, error: BaseException) -> RunEndedError:
        """Return what an exception means for the run."""
        if isinstance(error, RunEndedError):
            return error
        if isinstance(error, DependencyAbsentError):
            return cls("error", EXIT_COULD_NOT_RUN, str(error))
        if isinstance(error, ConfigurationError):
            return cls("error", EXIT_USAGE, str(error))
        if isinstance(error, RefusedError):
            return cls("not_run", EXIT_COULD_NOT_RUN, str(error))
        if isinstance(error, KeyboardInterrupt):
            return cls("error", EXIT_INTERRUPTED, "interrupted")
        traceback.print_exception(error)
        return cls("error", EXIT_COULD_NOT_RUN, f"{type(error).__name__}: {error}")


class Worker:
    """One implementation, bound in this process."""

    def __init__(
        self, request: Request, stage: Stage | None, tell: Tell, ask: Ask | None = None
    ) -> None:
        """Take what a run is.

        Args:
            request: what to do.
            stage: what follows validation, or None.
            tell: is told everything as it happens.
            ask: leads the stage; a run without one needs nobody.
        """
        self._request, self._stage, self._tell, self._ask = request, stage, tell, ask
        self._cases: list[KernelCase] = []
        self._rows: list[Row] = []
        self._plan: PreparedKernel | None = None
        self._runner: CaseRun | None = None

    def prepare(self, rank: int = 0) -> None:
        """Find the rows, reach the device and bind the implementation; tell what is known of each.

        Args:
            rank: number of this process on its machine, where several share the devices.

        Raises:
            KernelError: as the platform, the suite and ``initialize`` do.
        """
        request = self._request
        platform = _platform(request)
        platform.require()
        platform.use(rank)
        evidence = platform.evidence
        self._tell({"event": "facts", "evidence": evidence})
        self._cases = chosen_cases(request, with_guarantees=self._stage is None)
        self._rows = [Row(c.case_id, c.parameters, evidence) for c in self._cases]
        self._tell({"event": "facts", "cases": _described(self._rows)})
        if request.threads is not None:
            _set_threads(request.threads)
        self._tell({"event": "facts", "environment": platform.environment()})
        self._tell({"event": "facts", "device": platform.identity()})
        seal = Seal()  # before anything of the implementation is loaded
        begin = time.perf_counter()
        plan = request.suite.prepare(request.device, request.mode, request.implementation)
        spent = time.perf_counter() - begin
        _check_plan(request, plan)
        guarantees = self._chosen_guarantees(plan, evidence)
        self._rows += guarantees
        self._plan = plan
        self._runner = CaseRun(
            platform, plan, request.mode, request.warmup, self._stage, seal, self._ask
        )
        receipt = Receipt.of(plan).as_dict()
        self._tell({"event": "facts", "receipt": receipt, "preparation_s": spent})
        self._tell({"event": "facts", "guarantees": _described(guarantees)})
        self._tell({"event": "ready", "recovers": platform.recovers})

    def run(self, number: int) -> Row:
        """Run one row, tell its results and return it.

        Args:
            number: of the row: the cases come first, then the guarantees.

        Raises:
            RefusedError: when the stage cannot treat the implementation at all.
        """
        row = self._rows[number]
        self._tell({"event": "start", "row": number})
        row.watch = lambda step: self._tell({"event": "step", "row": number, "step": step})
        if self._plan is None or self._runner is None:
            raise RuntimeError("Worker.run: prepare() must come first")
        if number >= len(self._cases):
            row.enter("guarantee")
            row.crashed = guarantee_rows.fill_in(row, self._request, self._plan)
        else:
            try:
                self._runner.run(self._cases[number], row)
            except CaseEndedError as end:
                row.crashed = end.crashed
        self._tell({"event": "row", "row": number, "results": row.results()})
        return row

    def _chosen_guarantees(self, plan: PreparedKernel, evidence: str) -> list[Row]:
        """Return the rows of the stated guarantees that are asked for; a benchmark tries none."""
        if self._stage is not None:
            return []
        rows = guarantee_rows.rows(self._request, plan, evidence)
        chosen = self._request.cases
        if not chosen:
            return rows
        known = [row.case_id for row in (*self._rows, *rows)]
        reproduce.check_known(chosen, known, f"a case or a stated guarantee of {plan.spec.name}")
        return [row for row in rows if row.case_id in chosen]


def chosen_cases(request: Request, with_guarantees: bool = True) -> list[KernelCase]:
    """Return the cases that are asked for, in the suite's order.

    Args:
        request: what to do.
        with_guarantees: whether guarantees may be asked for too.

    Raises:
        ConfigurationError: for options that make no sense, identifiers that occur twice, and ones
            that are asked for and do not exist.
    """
    cases = list(request.suite.cases(request.options))
    _check_unique(cases)
    if not request.cases:
        return cases
    names = [case.case_id for case in cases]
    if with_guarantees:
        names += guarantee_rows.case_ids(request.suite.operation)
    reproduce.check_known(request.cases, names, "a case")
    return [case for case in cases if case.case_id in request.cases]


def _described(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [
        {"case_id": r.case_id, "parameters": r.parameters, "evidence": r.evidence} for r in rows
    ]


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
