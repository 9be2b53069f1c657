"""The xlite bridge on an NPU: the shared scenarios, and its domain from both sides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch_npu
from graph_scenarios import GRAPH, a_graph_on_another_device
from norm_data import EPS, Subject, assert_norm, draw, draw_pair, layouts
from processes import Command, text_of
from queue_modes import assert_every_mode_passes
from scenarios import (
    EAGER,
    a_call_does_not_wait_for_the_device,
    a_call_on_another_device_leaves_the_current_one,
    unrecorded_arguments_may_be_freed_early,
)
from torch._subclasses.fake_tensor import FakeTensorMode

IMPLEMENTATION = "npu.xlite.rms_norm"

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
DTYPES = ((F16, F16), (BF16, BF16))
FLOAT32_MAX = torch.finfo(F32).max
NZ = 29  # the format that torch_npu calls FRACTAL_NZ

Refusal = tuple[str, tuple[torch.Tensor | None, torch.Tensor | None, float]]


@pytest.fixture
def subject(plan, simulator) -> Subject:
    return Subject(plan.function, DTYPES, simulator)


def _name(scenario) -> str:
    return scenario.__name__


def test_a_call_does_not_wait_for_the_device(subject: Subject) -> None:
    # First, while the simulator's trace is short.
    a_call_does_not_wait_for_the_device(subject)


@pytest.mark.parametrize("scenario", [*EAGER, unrecorded_arguments_may_be_freed_early], ids=_name)
def test_eager(subject: Subject, scenario) -> None:
    scenario(subject)


@pytest.mark.parametrize("scenario", GRAPH, ids=_name)
def test_graph(subject: Subject, scenario) -> None:
    scenario(subject)


def test_queued_launches_hold_no_tensor_that_python_has(subject: Subject) -> None:
    # Another thread lets go of what a launch held. If that were the last holder of a tensor that
    # has a Python object, it would need Python's lock, and while Python ends that aborts.
    x, w = draw_pair((4, 128), (F16, F16))
    for _ in range(200):
        y = subject.function(x, w, EPS)
        assert [tensor._use_count() for tensor in (x, w, y)] == [1, 1, 1]


def test_a_call_on_another_device(subject: Subject, other_device) -> None:
    a_call_on_another_device_leaves_the_current_one(subject, str(other_device))


def test_a_graph_on_another_device(subject: Subject, other_device) -> None:
    a_graph_on_another_device(subject, str(other_device))


def test_every_mode_of_the_task_queue() -> None:
    assert_every_mode_passes(Path(__file__), IMPLEMENTATION)


def test_a_worker_needs_no_host() -> None:
    done = Command(
        (str(Path(__file__).with_name("alone.py")),),
        {"XLLM_KERNEL_OVERRIDE_RMS_NORM": IMPLEMENTATION, "XLLM_KERNEL_HOST_LIBRARY": None},
    ).run()
    assert done.returncode == 0, text_of(done)
    assert done.stdout.splitlines()[-1] == IMPLEMENTATION


def test_just_inside_the_domain_gives_right_values(subject: Subject) -> None:
    for dtype, _ in DTYPES:
        for width in (64, 128, 8128, 8192):
            x, w = draw_pair((3, width), (dtype, dtype))
            assert_norm(subject.function(x, w, EPS), x, w, EPS, f"width {width}")
        x, w = draw_pair((3, 64), (dtype, dtype))
        for eps in (0.0, 1e-45, FLOAT32_MAX, 1, 0):
            assert_norm(subject.function(x, w, eps), x, w, eps, f"eps {eps}")
        with torch.no_grad():
            x.requires_grad_()
            assert_norm(subject.function(x, w, EPS), x.detach(), w, EPS, "no_grad")


def _refusals(x: torch.Tensor, w: torch.Tensor) -> Iterator[Refusal]:
    """Yield arguments a step outside, each with the clause that must refuse them.

    Args:
        x: ``[4, 128]`` in float16, real or fake.
        w: ``[128]`` like it.
    """
    yield "input.rank", (x[0, 0], w, EPS)
    for dtype in (F32, torch.float64, torch.int16):
        yield "input.dtype", (torch.empty_like(x, dtype=dtype), w, EPS)
    yield "weight.rank", (x, w[None], EPS)
    yield "weight.rank", (x, w[0], EPS)
    for dtype in (BF16, F32):
        yield "weight.dtype", (x, torch.empty_like(w, dtype=dtype), EPS)
    for width in (0, 1, 63, 65, 96, 8256):
        wide = torch.empty(4, width, dtype=F16, device=x.device)
        yield "input.width", (wide, wide[0], EPS)
    yield "weight.width", (x, w[:64], EPS)
    yield "weight.width", (x[:, :64], w, EPS)
    yield "input.device", (torch.ones(4, 128, dtype=F16), torch.ones(128, dtype=F16), EPS)
    yield "weight.device", (x, torch.ones(128, dtype=F16), EPS)
    yield "input.elements", (x[:1, :64].expand(2**26, 64), w[:64], EPS)
    for eps in (math.nan, math.inf, -math.inf, -1e-45, 3.5e38, 1e300):
        yield "eps", (x, w, eps)


def _real_refusals(x: torch.Tensor, w: torch.Tensor) -> Iterator[Refusal]:
    """Yield what fakes do not know: formats and gradients."""
    formatted = torch_npu.empty_with_format((4, 128), dtype=F16, device="npu", acl_format=NZ)
    assert torch_npu.get_npu_format(formatted) == NZ
    yield "input.format", (formatted, w, EPS)
    yield "input.gradient", (x.detach().requires_grad_(), w, EPS)
    yield "weight.gradient", (x, w.detach().requires_grad_(), EPS)


def _must_refuse(subject: Subject, refusals: Iterator[Refusal]) -> None:
    for clause, arguments in refusals:
        wanted = rf"rms_norm \[{re.escape(IMPLEMENTATION)}\]: .*\(clause {clause}\)"
        with pytest.raises(RuntimeError, match=wanted):
            subject.function(*arguments)


def test_just_outside_the_domain_is_refused_before_any_launch(subject: Subject) -> None:
    x, w = draw_pair((4, 128), (F16, F16))
    before = subject.launches()
    _must_refuse(subject, _refusals(x, w))
    _must_refuse(subject, _real_refusals(x, w))
    assert subject.launches() == before


def test_fakes_refuse_the_same_arguments(subject: Subject) -> None:
    with FakeTensorMode() as mode:
        x = torch.empty(4, 128, dtype=F16, device="npu")
        _must_refuse(
            subject,
            (
                (clause, tuple(mode.from_tensor(a) if _is_real(a) else a for a in arguments))
                for clause, arguments in _refusals(x, x[0])
            ),
        )
        # A real one would need 8 GiB.
        far = torch.empty(2, 2**32 + 128, dtype=F16, device="npu")[:, :128]
        _must_refuse(subject, iter([("input.reach", (far, x[0], EPS))]))


def _is_real(argument: object) -> bool:
    return isinstance(argument, torch.Tensor) and not hasattr(argument, "fake_mode")


def test_another_devices_weight_is_refused(subject: Subject, other_device) -> None:
    x, w = draw_pair((4, 128), (F16, F16))
    _must_refuse(subject, iter([("weight.device", (x, w.to(other_device), EPS))]))


def test_fakes_have_the_outputs_strides_in_every_layout(subject: Subject) -> None:
    for name, x in layouts(F16):
        w = draw(x.shape[-1:], F16).npu()
        y = subject.function(x, w, EPS)
        with FakeTensorMode() as mode:
            fake = subject.function(mode.from_tensor(x), mode.from_tensor(w), EPS)
        assert (fake.shape, fake.dtype, fake.stride()) == (y.shape, y.dtype, y.stride()), name
