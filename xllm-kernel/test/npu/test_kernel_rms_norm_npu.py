"""The vendor adapter on an NPU: the shared scenarios, the host's operator, a worker without one."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from graph_scenarios import GRAPH, a_graph_on_another_device
from norm_data import EPS, Subject, bits, draw, draw_pair, layouts
from npu_worlds import copy_package
from processes import Command, text_of
from queue_modes import assert_every_mode_passes
from scenarios import (
    EAGER,
    SHAPES,
    a_call_does_not_wait_for_the_device,
    a_call_on_another_device_leaves_the_current_one,
    unrecorded_arguments_may_be_freed_early,
)

IMPLEMENTATION = "npu.xllm_native.rms_norm"

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
DTYPES = ((F16, F16), (BF16, BF16), (F16, F32), (BF16, F32), (F32, F32))


@pytest.fixture
def subject(plan, simulator) -> Subject:
    return Subject(plan.function, DTYPES, simulator)


def _name(scenario) -> str:
    return scenario.__name__


def test_a_call_does_not_wait_for_the_device(subject: Subject) -> None:
    # First, while the simulator's trace is short.
    a_call_does_not_wait_for_the_device(subject)


@pytest.mark.parametrize("scenario", EAGER, ids=_name)
def test_eager(subject: Subject, scenario) -> None:
    scenario(subject)


@pytest.mark.parametrize("scenario", GRAPH, ids=_name)
def test_graph(subject: Subject, scenario) -> None:
    scenario(subject)


def test_a_call_on_another_device(subject: Subject, other_device) -> None:
    a_call_on_another_device_leaves_the_current_one(subject, str(other_device))


def test_a_graph_on_another_device(subject: Subject, other_device) -> None:
    a_graph_on_another_device(subject, str(other_device))


def test_every_mode_of_the_task_queue() -> None:
    assert_every_mode_passes(Path(__file__), IMPLEMENTATION)


def test_the_adapter_equals_the_hosts_operator_bitwise(subject: Subject) -> None:
    host = torch.ops.xllm_ops.rms_norm
    for pair in DTYPES:
        for shape in SHAPES:
            x, w = draw_pair(shape, pair)
            assert torch.equal(bits(subject.function(x, w, EPS)), bits(host(x, w, EPS)))
        for name, x in layouts(pair[0]):
            w = draw(x.shape[-1:], pair[1]).npu()
            assert torch.equal(bits(subject.function(x, w, EPS)), bits(host(x, w, EPS))), name


def test_a_worker_needs_neither_host_nor_package_library(tmp_path: Path) -> None:
    copy = copy_package(tmp_path, ignore=("_build",))
    done = Command(
        (str(Path(__file__).with_name("alone.py")), "no-package-library"),
        {
            "PYTHONPATH": str(copy.parent),
            "XLLM_KERNEL_OVERRIDE_RMS_NORM": IMPLEMENTATION,
            "XLLM_KERNEL_HOST_LIBRARY": None,
        },
    ).run()
    assert done.returncode == 0, text_of(done)
    assert done.stdout.splitlines()[-1] == IMPLEMENTATION


def test_the_simulator_reports_a_missing_wait(simulator) -> None:
    """What the other tests' silence is worth: the same detector, on a program with a mistake."""
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    side = torch.npu.Stream()
    x = torch.ones(64, 512, device="npu")
    torch.npu.synchronize()
    x.mul_(2.0)
    with torch.npu.stream(side):
        x * 1.0
    torch.npu.synchronize()
    assert {report["kind"] for report in simulator.take_reports()} == {"race"}


def test_the_simulator_reports_a_missing_record_stream(subject: Subject, simulator) -> None:
    """The vendor's operator leaves that to its caller."""
    if simulator is None:
        pytest.skip("needs the simulated runtime")
    with contextlib.suppress(AssertionError):  # or the values happen to be right
        unrecorded_arguments_may_be_freed_early(subject)
    torch.npu.synchronize()
    assert {report["kind"] for report in simulator.take_reports()} == {"race"}
