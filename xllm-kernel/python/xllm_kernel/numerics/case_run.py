"""The steps of one case: prepare, validate, other data, warm up, capture, validate, prove or time.

A failure ends the case and stays in its row; nothing is retried another way.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

from xllm_kernel.errors import RAISED, ConfigurationError, KernelError
from xllm_kernel.numerics import graph_truth, memory
from xllm_kernel.numerics.compare import shares_storage
from xllm_kernel.numerics.integrity import Seal
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.storage import is_tensor
from xllm_kernel.numerics.suite import KernelCase, PreparedCase, Reset, ZeroArgument
from xllm_kernel.numerics.vacuity import vacuous
from xllm_kernel.platforms import Platform
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.registry import PreparedKernel

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Tells whoever leads the run something, and returns what to do next."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A case that passed, as a command's stage gets it.

    Attributes:
        platform: captures and measures.
        plan: the implementation.
        mode: execution mode.
        case: where it comes from; prepares more of its kind.
        prepared: its inputs, and who judges.
        captured: the unit that was judged.
    """

    platform: Platform
    plan: PreparedKernel
    mode: str
    case: KernelCase
    prepared: PreparedCase
    captured: Captured


class Stage(Protocol):
    """What a command does with a case that passed; the benchmark's is timing."""

    def refusal(self, plan: PreparedKernel, reset: Reset | None = None) -> str | None:
        """Return why the implementation cannot go through the stage, or None."""

    def run(self, subject: Subject, ask: Ask) -> Mapping[str, Any]:
        """Do it, led by whoever answers; who leads keeps what comes of it.

        Returns:
            What the row's metadata should say beside.

        Raises:
            CaseEndedError: where the implementation is found to be wrong on the way.
        """

    def examine(self, subject: Subject) -> None:
        """Look once more at an implementation whose results were right afterwards, too.

        Raises:
            CaseEndedError: where what it did is not to be believed.
        """


# Steps that judge a case over again are worth their time up to here: what they look for does not
# depend on the number of rows.
_MOST_ELEMENTS = 1 << 20
_CALLS_AT_THE_START = 3
_TOO_LARGE = f"other data, memory guarded at the start: more than {_MOST_ELEMENTS} elements"


class MeasurementError(KernelError):
    """The measurement itself failed; the implementation did nothing wrong."""


class RefusedError(KernelError):
    """The command cannot treat this implementation at all."""


class CaseEndedError(Exception):
    """A case is over before its last step.

    Attributes:
        status: how it ended: ``failed``, ``error`` or ``not_applicable``.
        stage: the step it ended in.
        crashed: whether the implementation raised.
    """

    def __init__(self, status: str, stage: str, reason: str, crashed: bool = False) -> None:
        super().__init__(reason)
        self.status, self.stage, self.crashed = status, stage, crashed


class _Watched:
    """The callable that a validator gets: counts its calls and remembers what it raised."""

    def __init__(self, function: ZeroArgument) -> None:
        self._function = function
        self.calls = 0
        self.raised: BaseException | None = None
        self.result: object = None

    def __call__(self) -> object:
        self.calls += 1
        try:
            self.result = self._function()
        except RAISED as error:
            self.raised = error
            raise
        return self.result


class CaseRun:
    """Runs the cases of one plan on one platform."""

    def __init__(
        self,
        platform: Platform,
        plan: PreparedKernel,
        mode: str,
        warmup: int | None,
        stage: Stage | None,
        seal: Seal | None = None,
        ask: Ask | None = None,
    ) -> None:
        """Take what all cases share.

        Args:
            platform: captures and synchronises.
            plan: the implementation.
            mode: execution mode.
            warmup: see ``warm_up``.
            stage: what follows validation, or None.
            seal: of the judge's tools, made before the implementation was loaded; None looks after
                none of them.
            ask: leads the stage; a run without a stage needs none.
        """
        self._ask = ask
        self._platform, self._plan, self._mode = platform, plan, mode
        self._warmup, self._stage, self._seal = warmup, stage, seal

    def run(self, case: KernelCase, row: Row) -> None:
        """Take a case through all steps and fill in its row.

        Raises:
            CaseEndedError: unless the case passed; the row says so already.
        """
        try:
            try:
                self._steps(case, row)
            finally:
                self._check_seal()
        except CaseEndedError as end:
            row.end(end.status, end.stage, str(end))
            if end.__cause__ is not None:
                row.traceback = "".join(traceback.format_exception(end.__cause__))
            raise
        row.status = "passed"

    def _check_seal(self) -> None:
        """End the case, whatever it came to, where the judge's tools are no longer its own."""
        broken = self._seal.broken() if self._seal is not None else None
        if broken is not None:
            raise CaseEndedError("failed", "integrity", broken)

    def _steps(self, case: KernelCase, row: Row) -> None:
        unsupported = case.unsupported_reason(self._plan)
        if unsupported is not None:
            raise CaseEndedError("not_applicable", "support", unsupported)
        prepared = self._prepare(case, row, "end")
        row.metadata = prepared.metadata
        row.work = None if prepared.work is None else asdict(prepared.work)
        refusal = self._stage.refusal(self._plan, prepared.reset) if self._stage else None
        if refusal is not None:
            raise RefusedError(f"{self._plan.spec.name}: {refusal}")
        self._put_back(row, prepared)
        first = _validate(row, "function", prepared, prepared.function)
        repeated = self._stage is None and _is_small(prepared)
        if repeated and prepared.refresh is not None:
            self._validate_other_data(row, prepared, first)
        with _step(row, "warmup", "warmup_s"):
            warm_up(partial(self._call_afresh, prepared), self._warmup)
            self._platform.synchronize()
        self._put_back(row, prepared)
        captured = self._capture(row, prepared)
        if prepared.reset is not None and captured.calls != 1:
            reason = (
                f"mode '{self._mode}' runs {captured.calls} calls as one, and the arguments that "
                "they write cannot be put back between them"
            )
            raise CaseEndedError("not_applicable", "support", reason)
        self._validate_captured(row, "captured", prepared, captured, first)
        if self._mode != "eager":
            self._hold_to_graph_truth(case, row, prepared, captured)
        if self._stage is None:
            self._prove(case, row, prepared, captured.outputs()[-1], repeated)
            return
        if self._ask is None:
            raise RuntimeError("CaseRun: a stage needs somebody to lead it")
        subject = Subject(self._platform, self._plan, self._mode, case, prepared, captured)
        with _step(row, "timing", "timing_s"):
            notes = self._stage.run(subject, self._ask)
        row.metadata = {**row.metadata, **notes}
        self._validate_captured(row, "after_timing", prepared, captured, first)
        with _step(row, "examination", "examination_s"):
            self._stage.examine(subject)
        if prepared.refresh is not None:
            with _step(row, "refresh", "preparation_s", crashed=False):
                prepared.refresh(1)
            self._validate_captured(row, "fresh_data", prepared, captured, first)

    def _capture(self, row: Row, prepared: PreparedCase, beside: bool = False) -> Captured:
        """Capture a case; where it is judged and must be put back between calls, one call alone."""
        calls = 1 if self._stage is None and prepared.reset is not None else None
        with _step(row, "capture", "capture_s"):
            return self._platform.capture(prepared.function, self._mode, calls=calls, beside=beside)

    def _hold_to_graph_truth(
        self, case: KernelCase, row: Row, prepared: PreparedCase, captured: Captured
    ) -> None:
        """Judge replays under changing circumstances; see ``graph_truth``."""
        if not _is_small(prepared):
            reason = f"more than {_MOST_ELEMENTS} elements"
            row.metadata = {**row.metadata, "graph_truth_left_out": {"every_step": reason}}
            return

        def capture_another() -> tuple[PreparedCase, Captured]:
            another = self._prepare(case, row, "start")
            return another, self._capture(row, another, beside=True)

        begin = time.perf_counter()
        aliases = self._plan.spec.contract.aliases_inputs
        outcome = graph_truth.examine(self._platform, prepared, captured, aliases, capture_another)
        row.add_duration("graph_truth_s", time.perf_counter() - begin)
        row.metadata = {**row.metadata, "graph_truth_left_out": outcome.left_out}
        row.validation |= outcome.verdicts
        if outcome.status != "passed":
            end = CaseEndedError(outcome.status, outcome.stage, outcome.reason, outcome.crashed)
            raise end from outcome.cause

    def _prepare(self, case: KernelCase, row: Row, side: str) -> PreparedCase:
        """Prepare a case; where it is judged rather than timed, with guarded memory."""
        guard = memory.guarded(side) if self._stage is None else nullcontext()
        with guard, _step(row, "prepare", "preparation_s", crashed=False):
            return case.prepare(self._plan)

    def _validate_other_data(self, row: Row, prepared: PreparedCase, first: object) -> None:
        """Judge a call on other data in the same memory, which stay there from then on."""
        assert prepared.refresh is not None
        with _step(row, "refresh", "preparation_s", crashed=False):
            prepared.refresh(1)
        self._put_back(row, prepared)
        second = _validate(row, "other_data", prepared, prepared.function)
        _check_fresh("other_data", first, second)

    def _prove(
        self, case: KernelCase, row: Row, prepared: PreparedCase, result: object, repeated: bool
    ) -> None:
        """Show that the case can fail, and judge it with the other ends of its memory guarded."""
        with _step(row, "prove", "validation_s", crashed=False):
            nobody = vacuous(prepared, self._plan.spec.contract.mutates, result)
        if nobody is not None:
            raise CaseEndedError("failed", "prove", nobody)
        if not repeated:
            row.metadata = {**row.metadata, "left_out": _TOO_LARGE}
            return
        other = self._prepare(case, row, "start")
        for _ in range(_CALLS_AT_THE_START):
            self._put_back(row, other)
            _validate(row, "start_guarded", other, other.function)

    def _put_back(self, row: Row, prepared: PreparedCase) -> None:
        """Restore the arguments that calls write to; a case without a reset has none."""
        if prepared.reset is None:
            return
        with _step(row, "reset", "reset_s", crashed=False):
            prepared.reset.function()
            self._platform.synchronize()

    def _call_afresh(self, prepared: PreparedCase) -> object:
        if prepared.reset is not None:
            prepared.reset.function()
        return prepared.function()

    def _validate_captured(
        self, row: Row, phase: str, prepared: PreparedCase, captured: Captured, first: object
    ) -> None:
        """Replay once and judge every output that is then there.

        Args:
            row: the case's row.
            phase: key of the verdicts in the row.
            prepared: judges.
            captured: the unit.
            first: what the very first call returned, still held: later calls must not reuse it.
        """
        self._put_back(row, prepared)
        with _step(row, "replay", "replay_s"):
            captured.replay()
            self._platform.synchronize()
            outputs = captured.outputs()
        if len(outputs) != captured.calls:
            reason = f"a replay makes {captured.calls} calls, but has {len(outputs)} outputs"
            raise CaseEndedError("error", "replay", reason)
        for output in outputs:
            _validate(row, phase, prepared, partial(_already_there, output))
            _check_fresh(phase, first, output)


def _is_small(prepared: PreparedCase) -> bool:
    tensors = [a for a in prepared.arguments.values() if is_tensor(a)]
    elements: int = sum(tensor.numel() for tensor in tensors)
    return elements <= _MOST_ELEMENTS


def _check_fresh(phase: str, first: object, output: object) -> None:
    """End the case where a later output lies in the first one's memory."""
    if shares_storage(first, output):
        raise CaseEndedError(
            "failed",
            f"validate {phase}",
            "an output shares storage with the first call's, which is still held; each call must "
            "return fresh tensors",
        )


def _validate(row: Row, phase: str, prepared: PreparedCase, function: ZeroArgument) -> object:
    """Let the suite judge a callable; end the case unless the verdict is clear and good.

    Returns:
        What the callable returned.
    """
    watched = _Watched(function)
    stage = f"validate {phase}"
    row.enter(stage)
    begin = time.perf_counter()
    try:
        result = prepared.validate(watched)
    except RAISED as error:
        crashed = watched.raised is error
        raise CaseEndedError("error", stage, _describe(error), crashed) from error
    finally:
        row.add_duration("validation_s", time.perf_counter() - begin)
    if not isinstance(result, Mapping) or result.get("status") not in ("passed", "failed"):
        reason = f"the validator must say passed or failed, it returned {result!r:.200}"
        raise CaseEndedError("error", stage, reason)
    row.validation[phase] = result
    if watched.calls == 0:
        raise CaseEndedError("failed", stage, "the validator never called what it was given")
    if result["status"] == "failed":
        reason = str(result.get("reason") or "the validator gave no reason")
        raise CaseEndedError("failed", stage, reason)
    return watched.result


@contextmanager
def _step(row: Row, stage: str, key: str, crashed: bool = True) -> Iterator[None]:
    """Time a step; end the case where it raises.

    Args:
        row: the case's row.
        stage: name of the step.
        key: its key among the durations.
        crashed: whether what raises here is the implementation rather than the suite.
    """
    row.enter(stage)
    begin = time.perf_counter()
    try:
        yield
    except CaseEndedError:
        raise
    except RAISED as error:
        crashed &= not isinstance(error, (MeasurementError, ConfigurationError))
        raise CaseEndedError("error", stage, _describe(error), crashed) from error
    finally:
        row.add_duration(key, time.perf_counter() - begin)


def warm_up(
    function: ZeroArgument,
    calls: int | None,
    clock: Callable[[], float] = time.perf_counter,
    most_calls: int = 10,
    budget_s: float = 0.1,
) -> int:
    """Call a function until it has settled and return how often it was called.

    Args:
        function: the callable.
        calls: exact number of calls; None stops at ``most_calls`` or when the budget is spent.
        clock: host clock in seconds.
        most_calls: bound for the automatic choice.
        budget_s: seconds for the automatic choice.
    """
    if calls is not None:
        for _ in range(calls):
            function()
        return calls
    end = clock() + budget_s
    for done in range(1, most_calls + 1):
        function()
        if clock() >= end:
            return done
    return most_calls


def _already_there(output: object) -> object:
    """Read what a replay wrote; there is no way from here to the operator."""
    return output


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
