"""A worker without a host: binds what the environment says, calls it first inside a capture.

A program of its own, since a first call happens once a process. Ends with work still pending, and
prints the name of what was bound; raises where something is not as it must be.
"""

from __future__ import annotations

import sys
from pathlib import Path

import graph_scenarios
import scenarios
import torch
import torch_npu  # noqa: F401
from norm_data import EPS, NAN, Subject, assert_norm, draw_pair
from simulator import find_simulator

import xllm_kernel

BF16 = torch.bfloat16


def main(options: list[str]) -> None:
    plan = xllm_kernel.initialize(device="npu", execution_mode="aclgraph")["rms_norm"]
    simulator = find_simulator()
    subject = Subject(plan.function, ((BF16, BF16),), simulator)
    if "no-package-library" in options:
        mapped = Path("/proc/self/maps").read_text()
        assert "xllm_kernel/_build" not in mapped, "a library of the package is loaded"
    assert not hasattr(torch.ops.xllm_ops, "rms_norm"), "a host is loaded"

    x, w = draw_pair((16, 512), (BF16, BF16))
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = plan.function(x, w, EPS)
    y.fill_(NAN)
    graph.replay()
    assert_norm(y, x, w, EPS, "the first call ever, captured")

    scenarios.values_of_every_dtype_and_shape(subject)
    scenarios.fakes_agree_with_outputs(subject)
    graph_scenarios.a_replay_equals_an_eager_call(subject)

    torch.npu.synchronize()
    assert simulator is None or not (reports := simulator.take_reports()), reports

    print(plan.spec.name, flush=True)
    side = torch.npu.Stream()
    with torch.npu.stream(side):
        for _ in range(50):
            plan.function(x, w, EPS)
            graph.replay()
    for _ in range(50):
        plan.function(x, w, EPS)


if __name__ == "__main__":
    main(sys.argv[1:])
