"""Graph capture on device npu, over a double that records what is asked of torch_npu."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from xllm_kernel.platforms import npu
from xllm_kernel.platforms.npu import CALLS_A_GRAPH, NpuPlatform


class FakeNpu:
    """Streams and graphs that write down the order of events.

    A failed capture cannot be ended, and torch_npu's own context then forgets to put the stream
    back, as its real one does.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self.current = "default"
        self.fails_to_end = False

    def NPUGraph(self) -> Any:  # noqa: N802 (the framework's name)
        return _Graph(self)

    def Stream(self) -> Any:  # noqa: N802
        return _Stream(self)

    def current_stream(self) -> str:
        return self.current

    @contextmanager
    def stream(self, stream: Any):
        before, self.current = self.current, str(stream)
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def graph(self, graph: Any, stream: Any):
        self.log.append(f"begin on {stream}")
        self.current = str(stream)
        try:
            yield
        finally:
            if self.fails_to_end:
                raise RuntimeError("capture_end: 107027")
            self.log.append("end")

    def call(self) -> int:
        self.log.append(f"call on {self.current}")
        return len(self.log)


class _Graph:
    def __init__(self, device: FakeNpu) -> None:
        self._device = device

    def replay(self) -> None:
        self._device.log.append("replay")


class _Stream:
    def __init__(self, device: FakeNpu) -> None:
        self._device = device

    def __str__(self) -> str:
        return "side"

    def wait_stream(self, other: str) -> None:
        self._device.log.append(f"side waits for {other}")

    def synchronize(self) -> None:
        self._device.log.append("side is done")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeNpu:
    double = FakeNpu()
    monkeypatch.setattr(npu, "_npu", lambda: double)
    return double


def test_capture_warms_up_on_the_stream_that_it_then_captures(device: FakeNpu) -> None:
    captured = NpuPlatform().capture(device.call, "aclgraph")
    calls = ["call on side"]
    assert device.log == [
        *("side waits for default", *calls, "side is done"),
        *("begin on side", *calls * CALLS_A_GRAPH, "end"),
    ]
    assert device.current == "default"
    assert captured.calls == CALLS_A_GRAPH == 64


def test_replay_calls_nothing_and_gives_every_output(device: FakeNpu) -> None:
    captured = NpuPlatform().capture(device.call, "aclgraph")
    device.log.clear()
    captured.replay()
    outputs = captured.outputs()
    assert device.log == ["replay"]
    assert len(set(outputs)) == CALLS_A_GRAPH


def test_side_stream_takes_calls_and_puts_the_callers_stream_back(device: FakeNpu) -> None:
    with NpuPlatform().side_stream():
        device.call()
    device.call()
    assert device.log == ["call on side", "call on default"]


def _failing(device: FakeNpu, error: Exception):
    """A function that raises while it is captured, and not before."""

    def call() -> None:
        if "begin on side" in device.log:
            raise error

    return call


def test_failing_call_in_a_capture_raises_as_it_is(device: FakeNpu) -> None:
    error = RuntimeError("the cause")
    with pytest.raises(RuntimeError) as raised:
        NpuPlatform().capture(_failing(device, error), "aclgraph")
    assert raised.value is error
    assert device.current == "default"


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_failing_call_stays_named_where_its_capture_cannot_be_ended(
    device: FakeNpu, kind: type[Exception]
) -> None:
    device.fails_to_end = True
    message = rf"{kind.__name__}: the cause \(then, ending the capture: capture_end: 107027\)"
    with pytest.raises(RuntimeError, match=message):
        NpuPlatform().capture(_failing(device, kind("the cause")), "aclgraph")
    assert device.current == "default"


def test_capture_that_cannot_be_ended_raises_by_itself(device: FakeNpu) -> None:
    device.fails_to_end = True
    with pytest.raises(RuntimeError, match=r"^capture_end: 107027$"):
        NpuPlatform().capture(device.call, "aclgraph")
