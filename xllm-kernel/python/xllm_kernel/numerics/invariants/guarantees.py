"""Whether an implementation keeps the guarantees that it states, each tried bit for bit.

Knows rows and arguments, no operator; ``checks`` has the dependencies that some rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xllm_kernel.numerics.invariants import checks as invariance
from xllm_kernel.numerics.invariants.checks import OFFSETS, Subject, bits_of, difference, hex_of
from xllm_kernel.numerics.memory import Layout

_GAPS = (0, 1, 24)  # elements between rows


def batch_invariant(subject: Subject) -> str | None:
    """Look for a dependency on the other rows, on their number and on a row's place."""
    for dependency in (invariance.batch_size, invariance.batch_position, invariance.other_rows):
        reason = dependency(subject)
        if reason is not None:
            return reason
    return None


def thread_invariant(subject: Subject) -> str | None:
    """Look for a dependency on the number of threads."""
    return invariance.threads(subject)


def layout_invariant(subject: Subject) -> str | None:
    """Look for a dependency on addresses and row strides."""
    layouts = [Layout(offset, gap) for offset in OFFSETS for gap in _GAPS]
    return invariance.laid_out(subject, layouts)


def repeatable(subject: Subject) -> str | None:
    """Look for a difference between calls."""
    return invariance.repetition(subject)


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
        bits_of(arguments[name]).view(-1)[5] = -1
        for path, tensor in subject.call(arguments):
            bits, wanted = bits_of(tensor), canonical[tensor.dtype]
            seen += int(tensor.isnan().sum())
            wrong = (tensor.isnan() & (bits != wanted)).nonzero()
            if len(wrong):
                index = wrong[0].tolist()
                got = hex_of(bits[tuple(index)], tensor)
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
"""What can be tried within one process; ``invariants.levels`` has the one that cannot."""
