"""Every fault of a suite, planted into one implementation and taken through the suite's cases.

Knows no operator: a case's own word on its arguments and results says where a fault applies.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from xllm_kernel.errors import RAISED, ConfigurationError
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.case_run import CaseEndedError, CaseRun
from xllm_kernel.numerics.compare import flatten
from xllm_kernel.numerics.faults import faults
from xllm_kernel.numerics.invariants.checks import Subject, covered
from xllm_kernel.numerics.invariants.guarantees import CHECKS
from xllm_kernel.numerics.memory import guarded
from xllm_kernel.numerics.planted.fault import Fault, Site
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.numerics.suite import KernelCase, PreparedCase
from xllm_kernel.platforms import get_platform
from xllm_kernel.registry import KernelFunction, PreparedKernel

# Larger cases repeat the smaller ones' kind.
_MOST_ELEMENTS = 1 << 17
_WARMUP = 2


class _Switch:
    """The callable that prepared cases hold: calls whatever is planted at the moment."""

    def __init__(self, honest: KernelFunction) -> None:
        self.honest = self.planted = honest

    def __call__(self, *arguments: Any) -> Any:
        return self.planted(*arguments)


class _KeptCase:
    """A case prepared once; its memory and data are put back each time it is asked for."""

    def __init__(self, case: KernelCase, plan: PreparedKernel) -> None:
        self.case_id, self.parameters = case.case_id, case.parameters
        self._prepared: list[PreparedCase] = []
        for side in ("end", "start"):
            with guarded(side):
                self._prepared.append(case.prepare(plan))
        self._asked = 0

    @property
    def first(self) -> PreparedCase:
        return self._prepared[0]

    def unsupported_reason(self, plan: PreparedKernel) -> None:
        return None

    def rewind(self) -> None:
        self._asked = 0

    def prepare(self, plan: PreparedKernel) -> PreparedCase:
        """Return the case as first prepared; the second time the one guarded at the start."""
        prepared = self._prepared[self._asked % 2]
        self._asked += 1
        if prepared.refresh is not None:
            prepared.refresh(0)
        return prepared


@dataclass(slots=True)
class Killed:
    """How a fault was noticed.

    Attributes:
        by: the case or guarantee.
        check: the check of the verdict, or the step.
        reason: what the report would say.
    """

    by: str
    check: str
    reason: str


class FaultRun:
    """The faults of one request's suite in its implementation."""

    def __init__(self, request: Request, only: tuple[str, ...] | None = None) -> None:
        """Bind the implementation and prepare the small cases that it covers.

        Args:
            request: names implementation, device, mode, and the suite's options.
            only: names of the faults to try; None tries all.

        Raises:
            KernelError: where it cannot be bound.
        """
        import torch

        suite = request.suite
        self._request, self._platform, self._only = request, get_platform(request.device), only
        self._platform.require()
        # Children of fork have one thread, and must find nothing held by others.
        torch.set_num_threads(1)
        plan = suite.prepare(request.device, request.mode, request.implementation)
        self._switch = _Switch(plan.function)
        self._plan = PreparedKernel(plan.spec, self._switch, plan.generation, plan.excluded)
        self._runner = CaseRun(self._platform, self._plan, request.mode, _WARMUP, stage=None)
        cases = list(self._small_cases())
        # A suite puts like beside like, and most faults show in one kind of case only.
        random.Random(0).shuffle(cases)
        self._cases = [_KeptCase(case, self._plan) for case in cases]
        if not self._cases:
            raise ConfigurationError(f"{plan.spec.name}: no small case applies to it")
        self._site = self._describe()
        self._may_raise = True

    def results(self) -> dict[str, Any]:
        """Return the honest implementation's failures, and every fault's fate."""
        begin = time.monotonic()
        honest = self._first_failure(self._cases)
        chosen = [f for f in faults(self._request.suite) if not self._only or f.name in self._only]
        lines = [] if honest else [self._line(fault) for fault in chosen]
        applicable = [line for line in lines if line["status"] != "not_applicable"]
        return {
            "evidence": self._platform.evidence,
            "cases": len(self._cases),
            "honest_failure": None if honest is None else f"{honest.by}: {honest.reason}",
            "killed": sum(line["status"] == "killed" for line in applicable),
            "applicable": len(applicable),
            "faults": lines,
            "duration_s": time.monotonic() - begin,
        }

    def _small_cases(self) -> Iterator[KernelCase]:
        cases = self._request.suite.cases(self._request.options)
        for case in cases:
            if case.unsupported_reason(self._plan) is None and _size(case) <= _MOST_ELEMENTS:
                yield case

    def _describe(self) -> Site:
        case, spec = self._cases[0].first, self._plan.spec
        if case.expect is None or not case.arguments:
            raise ConfigurationError(
                f"{spec.name}: a suite must say what its cases' arguments are and what must come "
                "of them, to try faults; prepare them by numerics.bound.bind_case"
            )
        expect, tensors = case.expect, [a for a in case.arguments.values() if is_tensor(a)]
        device = tensors[0].device
        named = {n: a.cpu() if is_tensor(a) else a for n, a in case.arguments.items()}
        returned = expect(named, device).returned
        return Site(
            contract=spec.contract,
            names=tuple(case.arguments),
            tensors=tuple(n for n, a in case.arguments.items() if is_tensor(a)),
            returns=0 if returned is None else len(flatten(returned)),
            device=spec.device,
            mode=self._request.mode,
            guarantees=spec.guarantees,
            expect=lambda arguments: expect(arguments, device),
        )

    def _line(self, fault: Fault) -> dict[str, Any]:
        line: dict[str, Any] = {"fault": fault.name, "text": fault.text}
        reason = fault.inapplicable(self._site)
        if reason is not None:
            return {**line, "status": "not_applicable", "reason": reason}
        try:
            killed = self._alone(fault) if fault.fatal else self._try(fault)
        except CaseEndedError as end:
            # The suite broke, or the planted code did: nobody noticed what it is there for.
            return {**line, "status": "survived", "reason": f"{end.stage}: {end}"}
        if killed is None:
            return {**line, "status": "survived", "reason": "no case and no guarantee failed"}
        found = {"by": killed.by, "check": killed.check, "reason": killed.reason}
        return {**line, "status": "killed", **found}

    def _try(self, fault: Fault) -> Killed | None:
        self._may_raise = fault.raises
        self._switch.planted = fault.plant(self._switch.honest, self._site)
        try:
            # What breaks a guarantee keeps to the contract, as nearly as it can: cases may pass it.
            if fault.guarantee is not None:
                return self._broken(fault.guarantee)
            return self._first_failure(self._cases)
        finally:
            self._switch.planted = self._switch.honest

    def _alone(self, fault: Fault) -> Killed | None:
        """Try a fault that may end the process in a child."""
        if self._platform.name == "cpu":
            return self._forked(fault)
        # A process that uses a device cannot be forked; the one that tries this fault only may end.
        return self._try(fault) if self._only == (fault.name,) else self._spawned(fault)

    def _forked(self, fault: Fault) -> Killed | None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            faulthandler.disable()  # to die is no news here
            os.close(reader)
            self._answer(fault, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(child, 0)
        if not answer:
            return self._ended(os.waitstatus_to_exitcode(status))
        word, mistake = json.loads(answer)
        if mistake is not None:
            raise CaseEndedError("error", "planted", mistake)
        return None if word is None else Killed(*word)

    def _answer(self, fault: Fault, writer: int) -> NoReturn:
        """Try a fault, write what came of it, and end this process."""
        word, mistake = None, None
        try:
            killed = self._try(fault)
            word = None if killed is None else [killed.by, killed.check, killed.reason]
        except BaseException as error:  # noqa: BLE001 (told on: no planted fault's doing)
            mistake = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps([word, mistake]).encode())
        os._exit(0)

    def _spawned(self, fault: Fault) -> Killed | None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            argv = [*self._request.arguments, "--faults", fault.name, "--output", str(path)]
            command = [sys.executable, "-m", "xllm_kernel.numerics", "--self-test", *argv]
            done = subprocess.run(command, capture_output=True, check=False)
            if not path.is_file():
                return self._ended(done.returncode)
            (line,) = json.loads(path.read_text(encoding="utf-8"))["suites"][0]["faults"]
        killed = line["status"] == "killed"
        return Killed(line["by"], line["check"], line["reason"]) if killed else None

    def _ended(self, code: int) -> Killed:
        what = f"signal {-code}" if code < 0 else f"exit status {code}"
        return Killed("a case", "process", f"the process ended with {what}")

    def _first_failure(self, cases: list[_KeptCase]) -> Killed | None:
        for case in cases:
            case.rewind()
            row = Row(case.case_id, case.parameters)
            try:
                self._runner.run(case, row)
            except CaseEndedError as end:
                if end.status == "failed":
                    return Killed(case.case_id, _check_of(row), str(end))
                if end.crashed and self._may_raise:
                    return Killed(case.case_id, end.stage, str(end))
                raise
        return None

    def _broken(self, guarantee: str) -> Killed | None:
        trials = self._request.suite.trials(self._request.options)
        for trial in covered(trials, self._plan):
            try:
                reason = CHECKS[guarantee](Subject(self._plan, trial))
            except RAISED as error:
                reason = f"{type(error).__name__}: {error}"
            if reason is not None:
                return Killed(guarantee, "guarantee", f"{trial.name}: {reason}")
        return None


def _size(case: KernelCase) -> int:
    """Return how many elements a case's shape has, as far as its parameters tell."""
    parameters: Mapping[str, Any] = case.parameters
    shape = parameters.get("shape") or [parameters.get("rows", 1), parameters.get("width", 1)]
    return math.prod(shape)


def _check_of(row: Row) -> str:
    """Return the check by which a row's last verdict failed, or the step it ended in."""
    verdicts = [v for v in row.validation.values() if v.get("status") == "failed"]
    return str(verdicts[-1].get("check")) if verdicts else str(row.stage)
