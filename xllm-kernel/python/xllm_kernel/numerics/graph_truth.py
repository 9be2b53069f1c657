"""Replays held to what calls on the arguments' current contents would give, step after step.

Knows neither operators nor modes, and cannot call an operator: it reads what replays wrote.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import NoReturn

from xllm_kernel.errors import RAISED, ConfigurationError
from xllm_kernel.numerics.compare import shares_storage
from xllm_kernel.numerics.memory import POISON
from xllm_kernel.numerics.replayed import Unit, Verdict, WrongReplayError
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.platforms import Platform
from xllm_kernel.platforms.captured import Captured

STEPS: Mapping[str, str] = {
    "inputs_changed": "after the inputs changed",
    "two_alive": "with two graphs alive",
    "objects_gone": "after the inputs' Python objects were gone",
    "other_stream": "on another stream",
    "after_allocation": "after unrelated allocations",
}
"""The steps by name, in their order, and how a failure says in which one it was."""

# How long graphs live and what they share does not depend on sizes; a second one costs as much
# as the first.
MOST_ELEMENTS_OF_TWO = 1 << 16
_TWO_TOO_LARGE = f"a second graph is captured of at most {MOST_ELEMENTS_OF_TWO} elements"
# Of each size that the case has, so that every block that fits is taken, not only the first.
_UNRELATED = 4


@dataclass(slots=True)
class Outcome:
    """What came of the steps.

    Attributes:
        verdicts: the suite's, by phase, ``graph_`` and a step's name; the last of each step.
        left_out: steps that were not taken, and why.
        status: ``passed``, ``failed`` or ``error``.
        stage: where it ended unless it passed: ``graph truth``, ``capture`` or ``replay``.
        reason: why, with the step and the replay.
        crashed: whether the implementation raised.
        cause: what was raised.
    """

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    status: str = "passed"
    stage: str = ""
    reason: str = ""
    crashed: bool = False
    cause: BaseException | None = None


def examine(
    platform: Platform,
    prepared: PreparedCase,
    captured: Captured,
    may_alias: bool,
    capture_another: Callable[[], tuple[PreparedCase, Captured]],
) -> Outcome:
    """Replay a captured case again and again under changing circumstances, and judge each replay.

    The case's own data stand in its arguments afterwards.

    Args:
        platform: where it was captured.
        prepared: the case.
        captured: its unit, which has been replayed once.
        may_alias: whether the contract lets outputs share storage with arguments.
        capture_another: prepares the same case once more, in memory of its own, and captures it
            beside the first. May raise what its caller handles.
    """
    truth = _Truth(platform, Unit(prepared, captured, "", may_alias))
    outcome = truth.outcome
    try:
        truth.take_steps(capture_another)
    except _EndedError as end:
        outcome.status, outcome.stage, outcome.reason = end.status, end.stage, str(end)
        outcome.crashed, outcome.cause = end.crashed, end.__cause__
    return outcome


class _EndedError(Exception):
    def __init__(self, status: str, stage: str, reason: str, crashed: bool = False) -> None:
        super().__init__(reason)
        self.status, self.stage, self.crashed = status, stage, crashed


class _Truth:
    """Takes the steps, and ends at the first that fails."""

    def __init__(self, platform: Platform, unit: Unit) -> None:
        self.outcome = Outcome()
        self._platform, self._unit = platform, unit
        # The replay that was judged when the case was captured.
        unit.replays = 1

    def take_steps(self, capture_another: Callable[[], tuple[PreparedCase, Captured]]) -> None:
        """Take all that can be taken, and say of the others why not."""
        unit, left_out = self._unit, self.outcome.left_out
        with_data = unit.has_other_data
        # Numbers of data sets: 0 and 1 have been judged before; the case's own come last.
        if with_data:
            self._renew("inputs_changed", unit, 2)
            self._round("inputs_changed", [unit])
        else:
            left_out["inputs_changed"] = "the case has no other data"
        if unit.elements <= MOST_ELEMENTS_OF_TWO:
            self._two(capture_another)
        else:
            left_out["two_alive"] = left_out["objects_gone"] = _TWO_TOO_LARGE
        stream = self._platform.other_stream()
        if stream is None:
            left_out["other_stream"] = "the device works in the order of its calls"
        else:
            self._round("other_stream", [unit], stream)
        if with_data:
            self._renew("after_allocation", unit, 0)
        self._round_among_strangers("after_allocation", [unit])

    def _two(self, capture_another: Callable[[], tuple[PreparedCase, Captured]]) -> None:
        """Replay two graphs in turn, the second one again when only its memory is left."""
        first = self._unit
        prepared, captured = capture_another()
        second = Unit(prepared, captured, " of the second graph", first.may_alias)
        function = _weak(prepared.function)
        self._round("two_alive", [first, second])
        del prepared, captured
        if function() is not None:
            self.outcome.left_out["objects_gone"] = "what was captured holds them"
            self._renew("two_alive", second, 1)
            self._round("two_alive", [second, first])
        else:
            gc.collect()  # whatever the implementation keeps of them
            self._renew("objects_gone", second, 1)
            self._round_among_strangers("objects_gone", [second, first])

    def _renew(self, step: str, unit: Unit, number: int) -> None:
        with self._suites(step):
            unit.renew(number)

    def _round_among_strangers(self, step: str, units: Sequence[Unit]) -> None:
        """Replay after memory was given back and taken by others, which must keep what they hold.

        Poison lies in all of it, so that a replay that still reads there shows it.
        """
        import torch

        self._platform.release_memory()
        tensors = [tensor for unit in units for tensor in unit.tensors()]
        sizes = {(t.untyped_storage().nbytes(), t.device) for t in tensors}
        strangers = [
            torch.full((size,), POISON, dtype=torch.uint8, device=device)
            for size, device in sorted(sizes, key=str)
            for _ in range(_UNRELATED)
        ]
        self._round(step, units)
        for stranger in strangers:
            changed = (stranger.cpu() != POISON).nonzero()
            if len(changed):
                reason = (
                    f"{STEPS[step]}: a replay wrote to memory that others hold: byte "
                    f"{int(changed[0])} of {stranger.numel()} allocated since the capture"
                )
                self._fail(step, "memory", reason)

    def _round(
        self,
        step: str,
        units: Sequence[Unit],
        where: AbstractContextManager[object] | None = None,
    ) -> None:
        """Put arguments back, poison outputs, replay, each for all units; then judge them all."""
        with self._suites(step):
            for unit in units:
                unit.put_back()
        try:
            with where or nullcontext():
                for unit in units:
                    unit.poison()
                for unit in units:
                    unit.replay()
            self._platform.synchronize()
        except RAISED as error:
            blame = not isinstance(error, ConfigurationError)
            reason = f"graph truth, {STEPS[step]}: {type(error).__name__}: {error}"
            raise _EndedError("error", "replay", reason, blame) from error
        for unit in units:
            self._judge(step, unit)
        self._keep_apart(step, units)

    def _judge(self, step: str, unit: Unit) -> None:
        said = f"replay {unit.replays}{unit.name} {STEPS[step]}"
        try:
            with self._suites(step):
                self.outcome.verdicts[f"graph_{step}"] = unit.judge()
        except WrongReplayError as wrong:
            if wrong.verdict is not None:
                self.outcome.verdicts[f"graph_{step}"] = wrong.verdict
            raise _EndedError("failed", "graph truth", f"{said}: {wrong}") from None

    def _keep_apart(self, step: str, units: Sequence[Unit]) -> None:
        """End the case where two units write to the same memory."""
        if len(units) < 2 or units[0].may_alias:
            return
        if shares_storage(units[0].outputs(), units[1].outputs()):
            reason = f"{STEPS[step]}: an output of one shares storage with an output of the other"
            self._fail(step, "aliasing", reason)

    def _fail(self, step: str, check: str, reason: str) -> NoReturn:
        """End the case for what the suite cannot see, and say so in the step's verdict too."""
        phase = f"graph_{step}"
        failed = {"status": "failed", "check": check, "reason": reason}
        self.outcome.verdicts[phase] = {**self.outcome.verdicts[phase], **failed}
        raise _EndedError("failed", "graph truth", reason)

    @contextmanager
    def _suites(self, step: str) -> Iterator[None]:
        """What raises here is the suite's, not the implementation's."""
        try:
            yield
        except WrongReplayError:
            raise
        except RAISED as error:
            reason = f"{STEPS[step]}: {type(error).__name__}: {error}"
            raise _EndedError("error", "graph truth", reason) from error


def _weak(function: object) -> Callable[[], object]:
    """Return a weak reference, or, to what cannot have one, a strong one."""
    try:
        return weakref.ref(function)
    except TypeError:
        return lambda: function
