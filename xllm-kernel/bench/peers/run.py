"""One case after the other: bind every library, check it, take blocks, sum them up.

Knows no operator and no library by name but ours.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from peers import blocks, machine
from peers.blocks import Block, Rule
from peers.ceilings import Ceilings, Measure, timed
from peers.check import check
from peers.operation import Buffers, Case, Form, Operation, PeerError, Tensors
from xllm_kernel.benchmark.sampling import Sampling

THREADS = (1, 2)

# Shorter than a scheduler's slice, so that most blocks are left alone; a longer call is a block.
_BLOCK_S = 1e-3
# Caches and threads that must wake up do not show in a call this long.
_LONG_US = 20e3
_UNSETTLED = "threads of an earlier call still ran"

Key = tuple[str, int]
"""A contender's name and its threads."""


@dataclass(slots=True)
class Contender:
    """What is timed.

    Attributes:
        measure: makes calls and returns microseconds a call.
        ceiling: whether it is a copy or the like, and no library.
        error: of its results, in steps of the dtype.
        calls: a block.
        warmups: calls before it.
        resets_us: what each reset before a block took.
    """

    measure: Measure
    ceiling: bool = False
    error: float | None = None
    calls: int = 1
    warmups: int = 0
    resets_us: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Group:
    """What a case gave in one form.

    Attributes:
        case: the inputs.
        form: the convention.
        contenders: by name and threads.
        blocks: theirs.
        left_out: reasons, by name and threads.
        bytes_moved: that must be read and written.
    """

    case: Case
    form: Form
    contenders: Mapping[Key, Contender]
    blocks: Mapping[Key, list[Block]]
    left_out: Mapping[Key, str]
    bytes_moved: int


def load(loaders: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Load the libraries; return those that came, and why the others did not."""
    loaded: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, loader in loaders.items():
        try:
            loaded[name] = loader()
        except Exception as error:  # noqa: BLE001 (of any kind; the report shows it)
            missing[name] = _reason(error)
    return loaded, missing


def groups(
    operation: Operation,
    cases: Sequence[Case],
    libraries: Mapping[str, Any],
    ceilings: Ceilings,
    rule: Rule,
    seed: int,
) -> Iterator[Group]:
    """Measure every form of every case."""
    rng = random.Random(seed)
    gc.disable()
    try:
        for case in cases:
            torch.set_num_threads(1)  # many small steps follow, as in the check
            buffers = operation.buffers(case)
            expected = buffers.expected()
            for form in operation.forms:
                yield _group(case, form, buffers, expected, libraries, ceilings, rule, rng)
                torch.compiler.reset()
                gc.collect()
    finally:
        gc.enable()


def _group(
    case: Case,
    form: Form,
    buffers: Buffers,
    expected: Tensors,
    libraries: Mapping[str, Any],
    ceilings: Ceilings,
    rule: Rule,
    rng: random.Random,
) -> Group:
    contenders, left_out = _bind(form, buffers, expected, libraries)
    source, destination = buffers.read(), buffers.written()
    for threads in THREADS:
        passes = ceilings(source, destination, form.mutates, threads)
        for name, measure in passes.items():
            contenders[name, threads] = Contender(measure, ceiling=True)
    take = _taker(contenders, buffers.reset if form.mutates else None)
    taken = blocks.interleave(list(contenders), take, machine.read, rule, rng)
    return Group(case, form, contenders, taken, left_out, 2 * source.nbytes)


def _bind(
    form: Form, buffers: Buffers, expected: Tensors, libraries: Mapping[str, Any]
) -> tuple[dict[Key, Contender], dict[Key, str]]:
    """Bind and check every library at every number of threads."""
    contenders: dict[Key, Contender] = {}
    left_out: dict[Key, str] = {}
    for name, library in libraries.items():
        for threads in THREADS:
            torch.set_num_threads(threads)
            try:
                if name not in form.calls:
                    raise PeerError("has no such form")
                call = form.calls[name](library, buffers, threads)
                off = check(call, buffers, expected)
            except Exception as error:  # noqa: BLE001 (of any kind; the report shows it)
                left_out[name, threads] = _reason(error)
            else:
                contenders[name, threads] = Contender(timed(call.run), error=off)
    return contenders, left_out


def _taker(
    contenders: Mapping[Key, Contender], reset: Callable[[], None] | None
) -> Callable[[Key], Block]:
    """Return what takes a block, once every contender's calls a block are known."""
    for (_, threads), contender in contenders.items():
        torch.set_num_threads(threads)
        sampling = Sampling(sample_s=_BLOCK_S)
        contender.calls = sampling.calls(_column(contender.measure), time.perf_counter_ns)
        short = contender.measure(1) < _LONG_US
        contender.warmups = 1 + contender.calls // 8 if short else 0

    def take(key: Key) -> Block:
        contender = contenders[key]
        torch.set_num_threads(key[1])
        settled = machine.settle()
        if reset is not None:
            contender.resets_us.append(timed(reset)(1))
        if contender.warmups:
            contender.measure(contender.warmups)
        before = machine.progress()
        us = contender.measure(contender.calls)
        dropped = blocks.interruption(before, machine.progress(), us * contender.calls / 1e6)
        return Block(us, contender.calls, dropped if settled else _UNSETTLED)

    return take


def _column(measure: Measure) -> Callable[[int], dict[str, float]]:
    return lambda count: {"us": measure(count)}


def _reason(error: Exception) -> str:
    """Return one line for a foreign error, and the whole of one of ours."""
    if isinstance(error, PeerError):
        return str(error)
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'without a word'}"[:200]
