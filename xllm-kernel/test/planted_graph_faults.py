"""Implementations of the throw-away operation that only their replays show to be wrong.

An implementation is host code, which runs when it is called or captured, and a kernel, which every
replay runs too: an operator that PyTorch can neither look into nor leave out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import affine
import torch
from recorded_graph import CALLS, capturing

NAN = float("nan")


@dataclass
class Device:
    """What the device has seen and holds, as far as a fault asks."""

    kernel: Callable[[torch.Tensor, float], torch.Tensor] = torch.mul
    runs: int = 0
    seen: dict[Any, Any] = field(default_factory=dict)
    aside: bool = False
    released: bool = False
    strangers: list[torch.Tensor] = field(default_factory=list)


device = Device()


@torch.library.custom_op("planted::scale", mutates_args=())
def _scale(values: torch.Tensor, scale: float) -> torch.Tensor:
    device.runs += 1
    return device.kernel(values, scale)


@torch.library.custom_op("planted::scale_into", mutates_args=("output",))
def _scale_into(output: torch.Tensor, values: torch.Tensor, scale: float) -> None:
    device.runs += 1
    if not device.seen.get("last only") or device.runs % CALLS == 0 or capturing():
        output.copy_(values * scale)


@_scale.register_fake
def _(values: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.empty_like(values)


Behaviour = Callable[[torch.Tensor, float], Any]


def _result(scaled: torch.Tensor) -> dict[str, Any]:
    return {"scaled": scaled, "parts": (-scaled,)}


def on_device(kernel: Callable[[torch.Tensor, float], torch.Tensor]) -> Behaviour:
    """Return host code that launches a kernel."""
    device.kernel = kernel
    return lambda values, scale: _result(torch.ops.planted.scale(values, scale))


def input_frozen() -> Behaviour:
    """Capture the values of the last call, not their memory."""
    seen: dict[str, torch.Tensor] = {}

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if capturing():
            return affine.honest(seen["values"], scale)
        seen["values"] = values.clone()
        return affine.honest(values, scale)

    return behaviour


def host_scalar_frozen() -> Behaviour:
    """Compute one element on the host, from the last call's values."""
    seen: dict[str, float] = {}

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not capturing():
            seen["first"] = float(values[0])
        rest = values[1:] * scale
        return _result(torch.cat((torch.full_like(values[:1], seen["first"] * scale), rest)))

    return behaviour


def captured_result_repeated() -> Behaviour:
    """Launch, when captured, what answers with its first result ever after."""
    first: dict[int, torch.Tensor] = {}
    kernel = on_device(lambda v, s: first.setdefault(v.data_ptr(), v * s).clone())
    return lambda values, scale: (kernel if capturing() else affine.honest)(values, scale)


def last_call_alone_written() -> Behaviour:
    """Leave out what a replay's other calls must write."""
    device.seen["last only"] = True

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not capturing():
            return affine.honest(values, scale)
        output = torch.empty_like(values)
        torch.ops.planted.scale_into(output, values, scale)
        return _result(output)

    return behaviour


def output_memory_shared() -> Behaviour:
    """Give each captured call's result the memory that the last graph's call gave to its own."""
    memory = [torch.empty(8) for _ in range(CALLS)]
    calls = [0]

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not capturing():
            return affine.honest(values, scale)
        output = memory[calls[0]]
        if not torch.compiler.is_compiling():
            calls[0] = (calls[0] + 1) % CALLS
        torch.ops.planted.scale_into(output, values, scale)
        return _result(output)

    return behaviour


def one_memory_for_all_calls() -> Behaviour:
    """Let all captured calls of a graph write to one memory."""
    memory: list[torch.Tensor] = []

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not capturing():
            memory[:] = [torch.empty_like(values)]
            return affine.honest(values, scale)
        torch.ops.planted.scale_into(memory[0], values, scale)
        return _result(memory[0])

    return behaviour


def pointer_dangling() -> Behaviour:
    """Read a buffer of which there is one, for the arguments that came last."""
    known: set[int] = set()
    buffer: dict[int, float] = {}

    def kernel(values: torch.Tensor, scale: float) -> torch.Tensor:
        address = values.data_ptr()
        if address not in known:
            known.add(address)
            buffer.clear()
            buffer[address] = scale
        return values * buffer.get(address, NAN)

    return on_device(kernel)


def buffer_dies_with_an_object() -> Behaviour:
    """Keep a buffer as long as the argument's Python object lives."""
    known: set[int] = set()
    freed: set[int] = set()
    launch = on_device(lambda v, s: v * (NAN if v.data_ptr() in freed else s))

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if not torch.compiler.is_compiling() and id(values) not in known:
            known.add(id(values))
            weakref.finalize(values, freed.add, values.data_ptr())
        return launch(values, scale)

    return behaviour


def stream_fixed() -> Behaviour:
    """Run elsewhere than the replay: too early, so that what is read is what was there before."""
    return on_device(lambda v, s: v * (NAN if device.aside else s))


def memory_given_back() -> Behaviour:
    """Read what others have allocated since."""
    return on_device(lambda v, s: v * (NAN if device.released else s))


def memory_of_others_written() -> Behaviour:
    """Write to what others have allocated since."""

    def kernel(values: torch.Tensor, scale: float) -> torch.Tensor:
        for stranger in device.strangers:
            stranger[0] = 0
        return values * scale

    return on_device(kernel)


def raises_when_captured() -> Behaviour:
    """Work in eager mode alone."""

    def behaviour(values: torch.Tensor, scale: float) -> Any:
        if capturing():
            raise RuntimeError("cannot be captured")
        return affine.honest(values, scale)

    return behaviour


@torch._dynamo.disable
def _computed_now(values: torch.Tensor, scale: float) -> torch.Tensor:
    with torch.utils._python_dispatch._disable_current_modes():
        return values * scale


def eager_when_captured() -> Behaviour:
    """Compute at once what was to be captured."""
    return lambda values, scale: _result(_computed_now(values, scale))
