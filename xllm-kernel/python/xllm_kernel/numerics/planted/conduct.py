"""Planted faults in what a call does to memory, keeps from earlier calls, or depends on."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xllm_kernel.numerics.compare import map_tensors
from xllm_kernel.numerics.memory import DENSE, once
from xllm_kernel.numerics.planted.fault import Fault, Plant, Site, promising, returning, writing
from xllm_kernel.numerics.planted.results import spoil
from xllm_kernel.numerics.storage import is_tensor, storage_bytes
from xllm_kernel.registry import KernelFunction

if TYPE_CHECKING:
    import torch

    from xllm_kernel.numerics.compare import Expected

# An element moved to the other of its two neighbours is off by so much, which every tolerance of
# rounded results allows.
_OTHER_ROUNDING = 0.7

# ---- memory and aliasing ------------------------------------------------------------------------


def _touching(which: int) -> Callable[[KernelFunction, Site], KernelFunction]:
    """Write to one of the tensors that may only be read, the first or the last."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            result = function(*arguments)
            tensor = site.only_read(arguments)[which]
            if tensor.numel():
                spoil(tensor[once(tensor.shape, tensor.stride())][..., -1:])
            return result

        return faulty

    return plant


def _scratch(function: KernelFunction, site: Site) -> KernelFunction:
    """Leave something else in an input after the call, and put it back before the next."""
    owed: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def faulty(*arguments: Any) -> Any:
        for tensor, before, left in owed:
            if tensor.cpu().equal(left):
                tensor.copy_(before)
        tensor = site.only_read(arguments)[-1]
        before = tensor.clone()
        result = function(*arguments)
        tensor.fill_(7.0)
        owed[:] = [(tensor, before, tensor.cpu().clone())]
        return result

    return faulty


def _only_reading(site: Site) -> str | None:
    left = [name for name in site.tensors if not site.writes(name)]
    return None if left else "the contract lets every tensor be written"


def _not_written(function: KernelFunction, site: Site) -> KernelFunction:
    """Put one written argument back, so that the call seems to have forgotten it."""

    def faulty(*arguments: Any) -> Any:
        tensor = site.outputs(None, arguments)[-1]
        before = tensor.clone()
        result = function(*arguments)
        tensor.copy_(before)
        return result

    return faulty


def _returns_input(function: KernelFunction, site: Site) -> KernelFunction:
    return lambda *arguments: next(a for a in arguments if is_tensor(a))


def _returns_equal_input(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        import torch

        given = [a for a in arguments if is_tensor(a) and a.is_contiguous()]

        def short_cut(result: torch.Tensor) -> torch.Tensor:
            same = (a for a in given if a.dtype == result.dtype and torch.equal(a, result))
            return next(same, result)

        return map_tensors(function(*arguments), short_cut)

    return faulty


def _one_storage(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        import torch

        return tuple(torch.stack(function(*arguments)).unbind())

    return faulty


def _several_returned(site: Site) -> str | None:
    return None if site.returns > 1 else "the operation does not return several tensors"


def _buffer_reused(function: KernelFunction, site: Site) -> KernelFunction:
    """Answer in the memory of the first result of the same form."""
    kept: dict[Any, Any] = {}

    def faulty(*arguments: Any) -> Any:
        result = function(*arguments)
        tensors = site.outputs(result, arguments)[: site.returns]
        key = tuple((tuple(t.shape), t.dtype) for t in tensors)
        first = kept.setdefault(key, result)
        for mine, theirs in zip(site.outputs(first, arguments), tensors, strict=False):
            mine.copy_(theirs)
        return first

    return faulty


def _stray(past_end: bool, write: bool) -> Callable[[KernelFunction, Site], KernelFunction]:
    """Touch one element outside of an argument: the first that is written, or else the first."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            result = function(*arguments)
            written = site.outputs(None, arguments)
            _touch((written or list(filter(is_tensor, arguments)))[0], past_end, write)
            return result

        return faulty

    return plant


def _touch(tensor: torch.Tensor, past_end: bool, write: bool) -> None:
    size = tensor.element_size()
    reach = sum((e - 1) * s for e, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    away = reach * size if past_end else -size
    if tensor.device.type == "cpu":
        address = tensor.data_ptr() + away
        if write:
            ctypes.memset(address, 0x55, size)
        else:
            ctypes.string_at(address, size)
        return
    start = tensor.storage_offset() * size + away
    storage_bytes(tensor)[start : start + size] = 0x55


def _no_pages(site: Site) -> str | None:
    if site.device == "cpu":
        return None
    return f"reads leave no trace on {site.device}, where memory has no guard pages"


def _gaps_written(function: KernelFunction, site: Site) -> KernelFunction:
    """Write behind the first row of the first argument whose rows lie apart."""

    def faulty(*arguments: Any) -> Any:
        result = function(*arguments)
        for tensor in filter(is_tensor, arguments):
            width = tensor.shape[-1]
            if tensor.dim() > 1 and tensor.shape[-2] > 1 and tensor.stride(-2) > width:
                gap = tensor.stride(-2) - width
                tensor.as_strided((gap,), (1,), tensor.storage_offset() + width).fill_(7.0)
                break
        return result

    return faulty


# ---- calls that remember ------------------------------------------------------------------------


def _stale(function: KernelFunction, site: Site) -> KernelFunction:
    """Compute once for each form of arguments, and give that answer again."""
    kept: dict[Any, list[torch.Tensor]] = {}

    def faulty(*arguments: Any) -> Any:
        result = function(*arguments)
        outputs = site.outputs(result, arguments)
        key = tuple((tuple(t.shape), t.stride(), t.dtype) for t in filter(is_tensor, arguments))
        first = kept.setdefault(key, [t.clone() for t in outputs])
        for mine, theirs in zip(outputs, first, strict=True):
            mine.copy_(theirs)
        return result

    return faulty


def _last_input_frozen(function: KernelFunction, site: Site) -> KernelFunction:
    """Keep the last tensor argument of the first call of each form."""
    kept: dict[Any, torch.Tensor] = {}

    def faulty(*arguments: Any) -> Any:
        last = max(i for i, a in enumerate(arguments) if is_tensor(a))
        tensor = arguments[last]
        key = (tuple(tensor.shape), tensor.dtype)
        given = list(arguments)
        if not site.writes(site.names[last]):
            given[last] = kept.setdefault(key, tensor.clone())
        return function(*given)

    return faulty


def _wrong_later(function: KernelFunction, site: Site) -> KernelFunction:
    """Be right thrice for arguments in one memory, as with a workspace that nobody clears."""
    calls: Counter[int] = Counter()

    def faulty(*arguments: Any) -> Any:
        first = next(a for a in arguments if is_tensor(a)).data_ptr()
        calls[first] += 1
        result = function(*arguments)
        for tensor in site.outputs(result, arguments):
            if calls[first] > 3 and tensor.numel():
                spoil(tensor[..., :1])
        return result

    return faulty


def _late(function: KernelFunction, site: Site) -> KernelFunction:
    """Return at once, and let another thread finish the work a tenth of a second later."""

    def faulty(*arguments: Any) -> Any:
        result = function(*arguments)
        for tensor in site.outputs(result, arguments):
            done = tensor.clone()
            tensor.zero_()
            threading.Timer(0.1, tensor.copy_, (done,)).start()
        return result

    return faulty


def _on_processor(site: Site) -> str | None:
    if site.device == "cpu":
        return None
    return f"a thread's work on {site.device} is the device's, and waited for"


# ---- calls that end badly -----------------------------------------------------------------------


def _raises(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        raise RuntimeError("a planted fault")

    return faulty


def _raises_on_empty(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        if any(a.numel() == 0 for a in arguments if is_tensor(a)):
            raise ZeroDivisionError("a planted fault")
        return function(*arguments)

    return faulty


def _leaves(function: KernelFunction, site: Site) -> KernelFunction:
    return lambda *arguments: os._exit(0)


# ---- calls that are captured --------------------------------------------------------------------


def _is_captured(site: Site) -> bool:
    """Say whether a compiler traces this call, or a device records it."""
    import torch

    if torch.compiler.is_compiling():
        return True
    records = getattr(getattr(torch, site.device), "is_current_stream_capturing", None)
    return records is not None and bool(records())


def _capturing(site: Site) -> str | None:
    return None if site.mode != "eager" else "mode eager captures nothing"


def _raises_when_captured(function: KernelFunction, site: Site) -> KernelFunction:
    def faulty(*arguments: Any) -> Any:
        if _is_captured(site):
            raise RuntimeError("a planted fault")
        return function(*arguments)

    return faulty


def _frozen_when_captured(function: KernelFunction, site: Site) -> KernelFunction:
    """Let captured calls read a copy of the last input, made by the call before the capture."""
    kept: list[torch.Tensor] = []

    def faulty(*arguments: Any) -> Any:
        where = max(i for i, n in enumerate(site.names) if n in site.tensors and not site.writes(n))
        given = list(arguments)
        if _is_captured(site):
            given[where] = kept[0]
        else:
            kept[:] = [arguments[where].clone()]
        return function(*given)

    return faulty


# ---- what a call must not depend on -------------------------------------------------------------


def _ignores_strides(function: KernelFunction, site: Site) -> KernelFunction:
    """Take every tensor's rows for neighbours in memory."""

    def dense(value: Any) -> Any:
        if not is_tensor(value):
            return value
        strides = DENSE.strides(tuple(value.shape))
        if any(mine < dense for mine, dense in zip(value.stride(), strides, strict=True)):
            return value  # a repeated row's memory ends before a dense one's
        return value.as_strided(value.shape, strides, value.storage_offset())

    return lambda *arguments: function(*map(dense, arguments))


def _depending(condition: Callable[[tuple[Any, ...]], bool]) -> Plant:
    """Give another correct rounding of some elements where a condition holds."""

    def plant(function: KernelFunction, site: Site) -> KernelFunction:
        def faulty(*arguments: Any) -> Any:
            if not condition(arguments):
                return function(*arguments)
            wanted = site.wanted(arguments)
            result = function(*arguments)
            for want, tensor in zip(wanted, site.outputs(result, arguments), strict=True):
                if want.earned.limit >= _OTHER_ROUNDING:
                    _round_otherwise(want, tensor)
            return result

        return faulty

    return plant


def _round_otherwise(want: Expected, tensor: torch.Tensor) -> None:
    """Replace results that lie near the middle of two values by the other one of the two."""
    import torch

    from xllm_kernel.numerics.ulp import format_of, spacing

    mine = tensor.cpu().double()
    step = spacing(want.reference.abs().nan_to_num(0.0, 0.0, 0.0), format_of(tensor.dtype))
    off = (want.reference - mine) / step
    near = (off.abs() > 1.0 - _OTHER_ROUNDING) & (off.abs() <= 0.5)
    other = (mine + torch.sign(off) * step).to(tensor.dtype)
    tensor.copy_(torch.where(near, other, tensor.cpu()))


def _many_threads(arguments: tuple[Any, ...]) -> bool:
    import torch

    threads: int = torch.get_num_threads()
    return threads > 2


def _many_rows(arguments: tuple[Any, ...]) -> bool:
    rows: int = next(a for a in arguments if is_tensor(a)).shape[0]
    return rows > 256


def _odd_address(arguments: tuple[Any, ...]) -> bool:
    first = next(a for a in arguments if is_tensor(a))
    return bool(first.data_ptr() % 64)


class _EveryThird:
    """True at every third call."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, arguments: tuple[Any, ...]) -> bool:
        self._calls += 1
        return self._calls % 3 == 0


MEMORY = (
    Fault("first_input_written", "writes to an input", _touching(0), _only_reading),
    Fault("last_input_written", "writes to another input", _touching(-1), _only_reading),
    Fault("input_as_scratch", "keeps its work in an input", _scratch, _only_reading),
    Fault("not_written", "forgets an argument that it must write", _not_written, writing),
    Fault("input_returned", "returns its input", _returns_input, returning),
    Fault(
        "equal_input_returned",
        "returns an input where the result is equal",
        _returns_equal_input,
        returning,
    ),
    Fault("one_storage", "returns two results in one memory", _one_storage, _several_returned),
    Fault("buffer_reused", "returns the same memory each time", _buffer_reused, returning),
    Fault("written_past_the_end", "writes one element too many", _stray(True, True), fatal=True),
    Fault("written_before_the_start", "writes one before", _stray(False, True), fatal=True),
    Fault("read_past_the_end", "reads one too many", _stray(True, False), _no_pages, fatal=True),
    Fault("read_before_the_start", "reads one before", _stray(False, False), _no_pages, fatal=True),
    Fault("gaps_written", "writes between rows that lie apart", _gaps_written),
)

MEMORY_OF_CALLS = (
    Fault("stale", "gives the first answer to every question of its form", _stale),
    Fault("input_frozen", "keeps the first call's last input", _last_input_frozen, _only_reading),
    Fault("wrong_later", "is wrong at the fourth call in one memory", _wrong_later),
    Fault("late", "returns before another thread has finished", _late, _on_processor),
)

CAPTURED = (
    Fault(
        "raises_when_captured",
        "raises when captured",
        _raises_when_captured,
        _capturing,
        raises=True,
    ),
    Fault(
        "input_frozen_when_captured",
        "replays what an input was at the capture",
        _frozen_when_captured,
        lambda site: _capturing(site) or _only_reading(site),
    ),
)

ENDING = (
    Fault("raises", "raises", _raises, raises=True),
    Fault("raises_on_empty", "raises where there are no rows", _raises_on_empty, raises=True),
    Fault("leaves", "ends the process as if all were well", _leaves, fatal=True),
)

DEPENDENCE = (
    Fault("strides_ignored", "takes rows for neighbours in memory", _ignores_strides),
    *(
        Fault(
            f"not_{name}",
            f"rounds some results otherwise {when}",
            _depending(condition),
            promising(name),
            guarantee=name,
        )
        for name, when, condition in (
            ("batch_invariant", "in large batches", _many_rows),
            ("thread_invariant", "on more than two threads", _many_threads),
            ("layout_invariant", "at odd addresses", _odd_address),
            ("repeatable", "at every third call", _EveryThird()),
            ("equals_parts", "than its parts do", lambda arguments: True),
        )
    ),
)
