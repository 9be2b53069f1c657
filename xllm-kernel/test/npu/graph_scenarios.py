"""What every RMSNorm on an NPU must do inside of graphs; each scenario raises if it does not."""

from __future__ import annotations

import torch
from norm_data import EPS, NAN, MemoryUse, Subject, assert_norm, bits, draw, draw_pair, layouts

CALLS_A_GRAPH = 64
CYCLES = 2000


class Captured:
    """One call in a graph, with the inputs it reads."""

    def __init__(self, subject: Subject, x: torch.Tensor, w: torch.Tensor, stream=None) -> None:
        self.x, self.w = x, w
        self.graph = torch.npu.NPUGraph()
        with torch.npu.graph(self.graph, stream=stream):
            self.output = subject.function(x, w, EPS)

    def poison(self) -> None:
        """Make sure that what is read next, a replay has written."""
        self.output.fill_(NAN)


def a_replay_equals_an_eager_call(subject: Subject) -> None:
    for dtype, weight_dtype in subject.dtypes:
        for name, x in layouts(dtype):
            w = draw(x.shape[-1:], weight_dtype, seed=2).npu()
            eager = subject.function(x, w, EPS)
            captured = Captured(subject, x, w)
            captured.poison()
            captured.graph.replay()
            assert torch.equal(bits(captured.output), bits(eager)), f"{dtype} {name}"


def interleaved_replays_follow_their_inputs(subject: Subject) -> None:
    """Two graphs, new values each round, poisoned outputs, either order."""
    for pair in subject.dtypes:
        cut = draw((16, 576), pair[0]).npu()[:, :512]
        graphs = [
            Captured(subject, *draw_pair((16, 512), pair)),
            Captured(subject, cut, draw((512,), pair[1], seed=3).npu()),
        ]
        for number in range(6):
            for offset, captured in enumerate(graphs):
                x, w = draw_pair((16, 512), pair, seed=10 * number + offset)
                captured.x.copy_(x)
                captured.w.copy_(w)
                captured.poison()
            for captured in graphs if number % 2 else reversed(graphs):
                captured.graph.replay()
            for captured in graphs:
                wanted = subject.function(captured.x, captured.w, EPS)
                assert torch.equal(bits(captured.output), bits(wanted)), f"{pair} {number}"


def every_call_of_a_graph_writes_its_output(subject: Subject) -> None:
    for pair in subject.dtypes:
        x, w = draw_pair((16, 512), pair)
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            outputs = [subject.function(x, w, EPS) for _ in range(CALLS_A_GRAPH)]
        for output in outputs:
            output.fill_(NAN)
        graph.replay()
        wanted = bits(subject.function(x, w, EPS))
        assert all(torch.equal(bits(output), wanted) for output in outputs)


def branches_of_a_graph_join(subject: Subject) -> None:
    """Two calls on two streams of one capture, then a sum on the first."""
    side = torch.npu.Stream()
    for pair in subject.dtypes:
        x, w = draw_pair((16, 512), pair)
        graph = torch.npu.NPUGraph()
        with torch.npu.graph(graph):
            first = torch.npu.current_stream()
            doubled = x * 2.0
            side.wait_stream(first)
            with torch.npu.stream(side):
                here = subject.function(doubled, w, EPS)
            there = subject.function(x, w, EPS)
            first.wait_stream(side)
            total = here + there
        for output in (here, there, total):
            output.fill_(NAN)
        graph.replay()
        assert_norm(there, x, w, EPS, f"{pair}")
        assert_norm(here, x * 2.0, w, EPS, f"{pair}")
        assert torch.equal(bits(total), bits(here + there)), f"{pair}"


def replays_on_another_stream(subject: Subject) -> None:
    for pair in subject.dtypes:
        captured = Captured(subject, *draw_pair((16, 512), pair))
        captured.poison()
        side = torch.npu.Stream()
        side.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(side):
            captured.graph.replay()
        torch.npu.current_stream().wait_stream(side)
        assert_norm(captured.output, captured.x, captured.w, EPS, f"{pair}")


def a_graph_on_another_device(subject: Subject, other: str) -> None:
    """On a stream of that device; ``torch.npu.graph`` by itself takes one of device 0."""
    for pair in subject.dtypes:
        x, w = draw_pair((16, 512), pair, device=other)
        with torch.npu.device(other):
            captured = Captured(subject, x, w, torch.npu.Stream(device=other))
            captured.poison()
            captured.graph.replay()
        assert torch.npu.current_device() == 0
        assert_norm(captured.output, x, w, EPS, f"{pair}")


def memory_stays_over_2000_captures(subject: Subject) -> None:
    x, w = draw_pair((4, 512), subject.dtypes[0])
    wanted = bits(subject.function(x, w, EPS))

    def cycle() -> None:
        captured = Captured(subject, x, w)
        captured.poison()
        captured.graph.replay()
        assert torch.equal(bits(captured.output), wanted)

    cycle()
    before = MemoryUse.now(emptied=True)
    for _ in range(CYCLES):
        cycle()
    before.assert_no_growth(f"{CYCLES} captures", emptied=True)


GRAPH = (
    a_replay_equals_an_eager_call,
    interleaved_replays_follow_their_inputs,
    every_call_of_a_graph_writes_its_output,
    branches_of_a_graph_join,
    replays_on_another_stream,
    memory_stays_over_2000_captures,
)
