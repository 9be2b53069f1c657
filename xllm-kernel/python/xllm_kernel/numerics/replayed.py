"""One captured unit and the case that judges it, without any way to the case's function.

Poisons what a replay is to write, and judges what it wrote; when to do so is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.compare import flatten, shares_storage
from xllm_kernel.numerics.memory import POISON
from xllm_kernel.numerics.storage import is_tensor, overlap, storage_bytes
from xllm_kernel.numerics.suite import PreparedCase
from xllm_kernel.platforms.captured import Captured

if TYPE_CHECKING:
    import torch

Verdict = Mapping[str, Any]


class WrongReplayError(Exception):
    """What a replay wrote is wrong; says of which call, and why.

    Attributes:
        verdict: the suite's, where it was asked.
    """

    def __init__(self, reason: str, verdict: Verdict | None = None) -> None:
        super().__init__(reason)
        self.verdict = verdict


class Unit:
    """A captured unit, the arguments that it reads, and what judges it by their contents.

    Attributes:
        name: how failures tell it from another one; empty for the first.
        may_alias: whether the contract lets outputs share storage with arguments.
        replays: how many there have been.
    """

    def __init__(
        self, prepared: PreparedCase, captured: Captured, name: str, may_alias: bool
    ) -> None:
        self.name, self.may_alias, self.replays = name, may_alias, 0
        # Not the case itself: it holds the function, and with it the arguments' Python objects.
        self._refresh, self._validate = prepared.refresh, prepared.validate
        self._reset, self._captured = prepared.reset, captured
        self._known_apart = False
        self._arguments = tensors_of(dict(prepared.arguments))

    @property
    def has_other_data(self) -> bool:
        """Whether the case can put other data into its arguments."""
        return self._refresh is not None

    @property
    def elements(self) -> int:
        """How many elements its arguments have together."""
        return sum(tensor.numel() for tensor in self._arguments)

    def tensors(self) -> list[torch.Tensor]:
        """Return its arguments, and the outputs of one call."""
        return [*self._arguments, *tensors_of(self._captured.outputs()[:1])]

    def outputs(self) -> list[Any]:
        """Return what the last replay wrote, one structure a call."""
        return self._captured.outputs()

    def renew(self, number: int) -> None:
        """Put other data into the arguments; by these it is judged from now on."""
        if self._refresh is not None:
            self._refresh(number)

    def put_back(self) -> None:
        """Restore the arguments that calls write to."""
        if self._reset is not None:
            self._reset.function()

    def poison(self) -> None:
        """Overwrite what the last replay wrote: what is read next, the next one must have written.

        An output in an argument's memory is left alone: that was put back.
        """
        for output in tensors_of(self._captured.outputs()):
            if not any(overlap(output, argument) for argument in self._arguments):
                storage_bytes(output).fill_(POISON)

    def replay(self) -> None:
        """Replay once."""
        self.replays += 1
        self._captured.replay()

    def judge(self) -> Verdict:
        """Judge the outputs of every call; one that equals a judged one bit for bit goes with it.

        Returns:
            The suite's verdict on the last that it judged.

        Raises:
            WrongReplayError: for the first that is wrong.
        """
        outputs, calls = self._captured.outputs(), self._captured.calls
        if len(outputs) != calls:
            raise WrongReplayError(f"a replay makes {calls} calls, but has {len(outputs)} outputs")
        self._look_whether_apart(outputs)
        verdict: Verdict = {}
        judged: list[object] = []
        for number, output in enumerate(outputs, 1):
            which = "" if calls == 1 else f"call {number} of {calls}: "
            if any(_same(other, output) for other in judged):
                continue
            verdict = self._validate(lambda there=output: there)  # type: ignore[misc]
            if verdict.get("status") != "passed":
                raise WrongReplayError(f"{which}{verdict.get('reason') or 'no reason'}", verdict)
            judged.append(output)
        return verdict

    def _look_whether_apart(self, outputs: list[Any]) -> None:
        """Raise where two calls write to the same memory; once, a graph's never moves."""
        if self.may_alias or self._known_apart:
            return
        for first, second in combinations(outputs, 2):
            if shares_storage(first, second):
                raise WrongReplayError("two calls of the graph share the storage of an output")
        self._known_apart = True


def tensors_of(structure: object) -> list[torch.Tensor]:
    """Return the tensors of a structure, in its order."""
    return [leaf for _, leaf in flatten(structure) if is_tensor(leaf)]


def _same(first: object, second: object) -> bool:
    """Say whether two structures are alike in everything that a verdict looks at."""
    ours, theirs = flatten(first), flatten(second)
    return [path for path, _ in ours] == [path for path, _ in theirs] and all(
        _same_tensor(a, b) for (_, a), (_, b) in zip(ours, theirs, strict=True)
    )


def _same_tensor(first: object, second: object) -> bool:
    import torch

    if type(first) is not torch.Tensor or type(second) is not torch.Tensor:
        return False
    if _facts(first) != _facts(second):
        return False
    return torch.equal(_bits(first), _bits(second))


def _facts(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.layout


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
