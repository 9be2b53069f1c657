"""Whether an implementation keeps the guarantees that it states, each tried bit for bit.

Knows rows and arguments, no operator: a suite's trials say which arguments carry rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.compare import flatten
from xllm_kernel.numerics.suite import Trial
from xllm_kernel.registry import PreparedKernel

if TYPE_CHECKING:
    import torch

Place = Callable[["torch.Tensor"], "torch.Tensor"]
Results = list[tuple[str, "torch.Tensor"]]

_THREADS = (1, 2, 3, 4, 8)
_REPETITIONS = 5
_OFFSETS = (1, 2, 3, 4, 8, 16, 31)  # elements; addresses of every residue that vector loads know
_GAPS = (0, 1, 24)  # elements between rows


class Subject:
    """An implementation on the arguments of one trial."""

    def __init__(self, plan: PreparedKernel, trial: Trial) -> None:
        """Take both.

        Args:
            plan: the implementation.
            trial: makes arguments for it.
        """
        self.plan, self.trial = plan, trial

    def call(self, arguments: Mapping[str, Any], place: Place | None = None) -> Results:
        """Call on copies and return every tensor that was returned or written, with its path.

        Args:
            arguments: in the order of the call; left as they are.
            place: copies a tensor to where it shall lie; None makes a dense copy.
        """
        place = place or _dense
        given = {
            name: place(value.to(self.plan.spec.device)) if hasattr(value, "dtype") else value
            for name, value in arguments.items()
        }
        result = self.plan.function(*given.values())
        returned = [] if result is None else flatten(result)
        written = [(f"argument '{n}'", given[n]) for n in self.plan.spec.contract.mutates]
        return [(path, tensor.cpu()) for path, tensor in (*returned, *written)]

    def of_rows(self, arguments: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        """Return arguments of some rows, in the order of their numbers."""
        return {n: v[rows] if n in self.trial.rows else v for n, v in arguments.items()}


def difference(got: Results, how: str, wanted: Results, otherwise: str) -> str | None:
    """Return a sentence about the first element whose bits differ, or None."""
    for (path, mine), (_, theirs) in zip(got, wanted, strict=True):
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return f"{path} has another shape or dtype {how} than {otherwise}"
        first, second = _bits(mine), _bits(theirs)
        wrong = (first != second).nonzero()
        if len(wrong):
            index = wrong[0].tolist()
            one, other = (_hex(bits[tuple(index)], mine) for bits in (first, second))
            count = len(wrong)
            return f"{path}{index} is {one} {how}, but {other} {otherwise} ({count} such elements)"
    return None


def batch_invariant(subject: Subject) -> str | None:
    """Compare rows alone, in other company, in other places and numbers with the whole."""
    import torch

    arguments = subject.trial.make()
    count = len(arguments[subject.trial.rows[0]])
    whole = subject.call(arguments)
    numbers = torch.arange(count)
    for picked in (
        *(numbers[n : n + 1] for n in (0, count // 2, count - 1)),
        numbers[:2],
        numbers[count // 3 :],
        numbers.flip(0),
        numbers.roll(1),
    ):
        got = subject.call(subject.of_rows(arguments, picked))
        wanted = [(path, tensor[picked]) for path, tensor in whole]
        how = f"among {len(picked)} rows from number {int(picked[0])}"
        reason = difference(got, how, wanted, f"among all {count}")
        if reason is not None:
            return reason
    kept = numbers % 7 == 3
    strangers = dict(arguments)
    for name in subject.trial.rows:
        strangers[name] = arguments[name].clone()
        strangers[name][~kept] = float("nan")
    got = [(path, tensor[kept]) for path, tensor in subject.call(strangers)]
    wanted = [(path, tensor[kept]) for path, tensor in whole]
    return difference(got, "among rows of NaN", wanted, "among others")


def thread_invariant(subject: Subject) -> str | None:
    """Compare calls on several threads with one on a single thread."""
    import torch

    arguments = subject.trial.make()
    with _threads_kept():
        torch.set_num_threads(_THREADS[0])
        alone = subject.call(arguments)
        for count in _THREADS[1:]:
            torch.set_num_threads(count)
            reason = difference(subject.call(arguments), f"on {count} threads", alone, "on one")
            if reason is not None:
                return reason
    return None


def layout_invariant(subject: Subject) -> str | None:
    """Compare arguments at other addresses and row strides with dense ones."""
    arguments = subject.trial.make()
    dense = subject.call(arguments)
    for offset in _OFFSETS:
        for gap in _GAPS:
            got = subject.call(arguments, partial(_shifted, offset=offset, gap=gap))
            how = f"{offset} elements off, with gaps of {gap} between rows,"
            reason = difference(got, how, dense, "dense")
            if reason is not None:
                return reason
    return None


def repeatable(subject: Subject) -> str | None:
    """Compare calls with the first."""
    arguments = subject.trial.make()
    first = subject.call(arguments)
    for number in range(2, _REPETITIONS + 1):
        reason = difference(subject.call(arguments), f"in call {number}", first, "in the first")
        if reason is not None:
            return reason
    return None


def subnormals_kept(subject: Subject) -> str | None:
    """Look for a zero where the exact results are all subnormal."""
    import torch

    for path, tensor in subject.call(subject.trial.subnormal()):
        size = tensor.abs()
        wrong = ((size == 0) | ~(size < torch.finfo(tensor.dtype).smallest_normal)).nonzero()
        if len(wrong):
            index = wrong[0].tolist()
            value = float(tensor[tuple(index)])
            return f"{path}{index} must be a subnormal value, got {value!r}"
    return None


def canonical_nan(subject: Subject) -> str | None:
    """Look for another NaN than the canonical, with NaNs of all bits set in each argument."""
    import torch

    canonical = {torch.float32: 0x7FC00000, torch.float16: 0x7E00, torch.bfloat16: 0x7FC0}
    seen = 0
    for name, value in subject.trial.make().items():
        if not hasattr(value, "dtype"):
            continue
        arguments = subject.trial.make()
        _bits(arguments[name]).view(-1)[5] = -1
        for path, tensor in subject.call(arguments):
            bits, wanted = _bits(tensor), canonical[tensor.dtype]
            seen += int(tensor.isnan().sum())
            wrong = (tensor.isnan() & (bits != wanted)).nonzero()
            if len(wrong):
                index = wrong[0].tolist()
                got = _hex(bits[tuple(index)], tensor)
                return f"{path}{index} must be the NaN {wanted:#x}, got {got}, for a NaN in {name}"
    return None if seen else "no NaN came out of any, so nothing was tried"


def equals_parts(subject: Subject) -> str | None:
    """Compare with what the suite puts together of simpler operations."""
    if subject.trial.parts is None:
        return "the suite names no simpler operations; let its trials say of what it is made"
    arguments = subject.trial.make()
    got = subject.call(arguments)
    parts = subject.trial.parts(subject.plan, arguments)
    wanted = [(path, part.cpu()) for (path, _), part in zip(got, parts, strict=True)]
    return difference(got, "at once", wanted, "by its parts")


CHECKS: Mapping[str, Callable[[Subject], str | None]] = {
    check.__name__: check
    for check in (
        batch_invariant,
        thread_invariant,
        layout_invariant,
        repeatable,
        subnormals_kept,
        canonical_nan,
        equals_parts,
    )
}
"""What can be tried within one process; ``levels`` has the one that cannot."""


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    return tensor.clone(memory_format=torch.contiguous_format)


def _shifted(tensor: torch.Tensor, offset: int, gap: int) -> torch.Tensor:
    """Copy so many elements off the start of fresh memory, rows apart by a gap."""
    import torch

    width = tensor.shape[-1]
    step = width + gap if tensor.dim() > 1 else width
    memory = torch.full(
        (offset + step * (tensor.numel() // width),), float("nan"), dtype=tensor.dtype
    ).to(tensor.device)
    strides = [1]
    for extent in reversed(tensor.shape[1:]):
        strides.insert(0, strides[0] * extent if len(strides) > 1 else step)
    return memory.as_strided(tensor.shape, strides, offset).copy_(tensor)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(integers[tensor.element_size()])


def _hex(bits: torch.Tensor, tensor: torch.Tensor) -> str:
    return f"{int(bits) & ((1 << 8 * tensor.element_size()) - 1):#x}"


@contextmanager
def _threads_kept() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
