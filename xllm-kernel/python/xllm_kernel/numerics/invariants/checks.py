"""What a row's bits may depend on beside the row: each dependency looked for by itself.

Knows rows and arguments, no operator: a suite's trials say which arguments carry rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics import memory
from xllm_kernel.numerics.compare import flatten
from xllm_kernel.numerics.memory import Layout
from xllm_kernel.numerics.suite import NotTriedError, Trial
from xllm_kernel.platforms import Platform
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

Results = list[tuple[str, "torch.Tensor"]]

# One row, a pair, and where implementations are known to change how they divide the work.
BATCHES = (1, 2, 255, 256, 257, 1000)
THREADS = (1, 2, 3, 4, 8)
REPETITIONS = 20
OFFSETS = (1, 2, 3, 4, 8, 16, 31)  # elements; addresses of every residue that vector loads know


def covered(trials: Iterable[Trial], plan: PreparedKernel) -> list[Trial]:
    """Return, of the trials of each name, the first that an implementation's domain covers.

    Raises:
        NotTriedError: where it covers none, with the reason for the first.
    """
    found: dict[str, Trial] = {}
    reasons = []
    for trial in trials:
        reason = trial.unsupported_reason(plan)
        if reason is None:
            found.setdefault(trial.name, trial)
        else:
            reasons.append(reason)
    if not found:
        raise NotTriedError(next(iter(reasons), "the suite has no trials for these options"))
    return list(found.values())


class Subject:
    """An implementation on the arguments of one trial."""

    def __init__(self, plan: PreparedKernel, trial: Trial) -> None:
        """Take both.

        Args:
            plan: the implementation.
            trial: makes arguments for it.
        """
        self.plan, self.trial = plan, trial

    def call(
        self,
        arguments: Mapping[str, Any],
        layout: Layout = memory.DENSE,
        run: Callable[[Callable[[], object]], object] | None = None,
    ) -> Results:
        """Call on copies and return every tensor that was returned or written, with its path.

        Args:
            arguments: in the order of the call; left as they are.
            layout: how the copies lie.
            run: calls what it is given, and returns what that returned; None only calls it.
        """
        given = self.copies(arguments, layout)
        function = partial(self.plan.function, *given.values())
        return self.results(function() if run is None else run(function), given)

    def copies(self, arguments: Mapping[str, Any], layout: Layout = memory.DENSE) -> dict[str, Any]:
        """Return arguments with each tensor copied to the implementation's device."""
        put = partial(memory.place, device=self.plan.spec.device, layout=layout)
        return {n: put(v) if hasattr(v, "dtype") else v for n, v in arguments.items()}

    def results(self, returned: object, given: Mapping[str, Any]) -> Results:
        """Return what came of a call: what it returned, then what stands in written arguments."""
        leaves = [] if returned is None else flatten(returned)
        written = [(f"argument '{n}'", given[n]) for n in self.plan.spec.contract.mutates]
        return [(path, tensor.cpu()) for path, tensor in (*leaves, *written)]

    def of_rows(self, arguments: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        """Return arguments of some rows, in the order of their numbers."""
        return {n: v[rows] if n in self.trial.rows else v for n, v in arguments.items()}


def difference(got: Results, how: str, wanted: Results, otherwise: str) -> str | None:
    """Return a sentence about the first element whose bits differ, or None."""
    for (path, mine), (_, theirs) in zip(got, wanted, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"{path} has another shape or dtype {how} than {otherwise}"
        first, second = bits_of(mine), bits_of(theirs)
        wrong = (first != second).nonzero()
        if len(wrong):
            index = wrong[0].tolist()
            one, other = (hex_of(bits[tuple(index)], mine) for bits in (first, second))
            count = len(wrong)
            return f"{path}{index} is {one} {how}, but {other} {otherwise} ({count} such elements)"
    return None


def batch_size(subject: Subject) -> str | None:
    """Compare the first rows in batches of other sizes with the same rows in the whole trial."""
    import torch

    return _rows_among_others(
        subject, lambda count: [torch.arange(size) % count for size in BATCHES]
    )


def batch_position(subject: Subject) -> str | None:
    """Compare rows in other places: each batch reversed, its last row first, a middle row first."""
    import torch

    def moved(count: int) -> Iterator[torch.Tensor]:
        for size in BATCHES[1:]:
            numbers = torch.arange(size) % count
            yield from (numbers.flip(0), numbers.roll(1), numbers.roll(size // 2))
        yield from (torch.arange(count)[n : n + 1] for n in (count // 2, count - 1))

    return _rows_among_others(subject, moved)


def other_rows(subject: Subject) -> str | None:
    """Compare rows among others that are NaN, infinite, huge or zero."""
    import torch

    arguments = subject.trial.make()
    count = len(arguments[subject.trial.rows[0]])
    whole = subject.call(arguments)
    kept = torch.arange(count) % 7 == 3
    for value, what in ((float("nan"), "NaN"), (float("inf"), "infinities"), (0.0, "zeros")):
        strangers = dict(arguments)
        for name in subject.trial.rows:
            strangers[name] = arguments[name].clone()
            strangers[name][~kept] = value
        got = [(path, tensor[kept]) for path, tensor in subject.call(strangers)]
        wanted = [(path, tensor[kept]) for path, tensor in whole]
        reason = difference(got, f"among rows of {what}", wanted, "among others")
        if reason is not None:
            return reason
    return None


def threads(subject: Subject) -> str | None:
    """Compare calls on several threads with one on a single thread, in batches of every size."""
    import torch

    arguments = subject.trial.make()
    count = len(arguments[subject.trial.rows[0]])
    with _threads_kept():
        for size in BATCHES:
            batch = subject.of_rows(arguments, torch.arange(size) % count)
            torch.set_num_threads(THREADS[0])
            alone = subject.call(batch)
            for number in THREADS[1:]:
                torch.set_num_threads(number)
                how = f"on {number} threads"
                reason = difference(subject.call(batch), how, alone, "on one")
                if reason is not None:
                    return reason
    return None


def alignment(subject: Subject) -> str | None:
    """Compare dense arguments some elements away from an aligned address with aligned ones."""
    return laid_out(subject, [Layout(offset=offset) for offset in OFFSETS])


def laid_out(subject: Subject, layouts: Sequence[Layout]) -> str | None:
    """Compare arguments that lie otherwise with dense ones."""
    arguments = subject.trial.make()
    dense = subject.call(arguments)
    for layout in layouts:
        got = subject.call(arguments, layout)
        how = f"{layout.offset} elements off, with gaps of {layout.gap} between rows,"
        reason = difference(got, how, dense, "dense")
        if reason is not None:
            return reason
    return None


def repetition(subject: Subject) -> str | None:
    """Compare calls with the first."""
    arguments = subject.trial.make()
    first = subject.call(arguments)
    for number in range(2, REPETITIONS + 1):
        reason = difference(subject.call(arguments), f"in call {number}", first, "in the first")
        if reason is not None:
            return reason
    return None


def stream(subject: Subject, platform: Platform) -> str | None:
    """Compare a call on another stream with one on the current stream.

    Raises:
        NotTriedError: on a device without streams.
    """
    arguments = subject.trial.make()
    here = subject.call(arguments)

    def aside(function: Callable[[], object]) -> object:
        other = platform.other_stream()
        if other is None:
            raise NotTriedError(f"device {platform.name} has no streams")
        with other:
            return function()

    return difference(subject.call(arguments, run=aside), "on another stream", here, "on this")


def mode(subject: Subject, platform: Platform, name: str) -> str | None:
    """Compare what a mode other than eager makes of the call with an eager call.

    Args:
        subject: what is called.
        platform: captures.
        name: the mode.

    Raises:
        NotTriedError: where there is nothing to compare, or arguments cannot be put back.
    """
    if name == "eager":
        raise NotTriedError("this run is eager; run one in another mode to compare it with eager")
    arguments = subject.trial.make()
    eager = subject.call(arguments)
    given, blank = subject.copies(arguments), subject.copies(arguments)
    captured = platform.capture(partial(subject.plan.function, *given.values()), name)
    mutates = subject.plan.spec.contract.mutates
    if mutates and captured.calls != 1:
        raise NotTriedError(f"mode {name} runs {captured.calls} calls that write, as one")
    for argument in mutates:
        given[argument].copy_(blank[argument])
    captured.replay()
    platform.synchronize()
    words = (
        difference(subject.results(output, given), f"in mode {name}", eager, "eagerly")
        for output in captured.outputs()
    )
    return next((word for word in words if word is not None), None)


def _rows_among_others(
    subject: Subject, batches: Callable[[int], Iterable[torch.Tensor]]
) -> str | None:
    """Compare batches of rows, given by their numbers, with the same rows among all."""
    arguments = subject.trial.make()
    count = len(arguments[subject.trial.rows[0]])
    whole = subject.call(arguments)
    for picked in batches(count):
        got = subject.call(subject.of_rows(arguments, picked))
        wanted = [(path, tensor[picked]) for path, tensor in whole]
        how = f"among {len(picked)} rows from number {int(picked[0])}"
        reason = difference(got, how, wanted, f"among all {count}")
        if reason is not None:
            return reason
    return None


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a floating-point tensor's bits, as integers in the same memory."""
    import torch

    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(integers[tensor.element_size()])


def hex_of(bits: torch.Tensor, tensor: torch.Tensor) -> str:
    """Write the bits of one element of a tensor."""
    return f"{int(bits) & ((1 << 8 * tensor.element_size()) - 1):#x}"


@contextmanager
def _threads_kept() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
