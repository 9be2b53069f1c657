"""The seal over the judge's tools: what it notices, and what it leaves alone.

Implementations that break it in a run are in ``test_numerics_adversaries.py``.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from xllm_kernel.numerics import integrity
from xllm_kernel.numerics.integrity import Seal

SOURCE = """
from collections import Counter
LIMIT = 3
lower = 4
__cache__ = print
def judge():
    return 1
def other():
    return 2
class Tool:
    size = 1
    def check(self):
        return 3
"""


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module among the judge's own."""
    return _imported("numerics", monkeypatch)


def _imported(part: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType(f"xllm_kernel.{part}.a_judge")
    exec(SOURCE, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda m: setattr(m, "judge", m.other), "judge"),
        (lambda m: setattr(m.judge, "__code__", m.other.__code__), "judge"),
        (lambda m: setattr(m, "LIMIT", 4), "LIMIT"),
        (lambda m: delattr(m, "LIMIT"), "LIMIT"),
        (lambda m: setattr(m.Tool, "check", m.judge), "Tool.check"),
        (lambda m: setattr(m.Tool.check, "__code__", m.other.__code__), "Tool.check"),
        (lambda m: setattr(m.Tool, "size", 2), "Tool.size"),
        (lambda m: setattr(m, "Tool", SimpleNamespace), "Tool"),
        (lambda m: setattr(m, "Counter", dict), "Counter"),
    ],
)
def test_seal_names_the_tool_that_is_another_now(
    judge: Any, change: Callable[[Any], None], name: str
) -> None:
    seal = Seal()
    assert seal.broken() is None
    change(judge)
    said = seal.broken()
    assert said is not None
    assert said.startswith(f"{judge.__name__}.{name} was replaced while")
    assert said.endswith("must leave the process as it is")


@pytest.mark.parametrize("part", ["numerics", "benchmark", "platforms"])
def test_seal_covers_each_part_that_judges(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    module = _imported(part, monkeypatch)
    seal = Seal()
    module.LIMIT += 1
    assert seal.broken() is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "lower", 5),
        lambda m: setattr(m, "__cache__", len),
        lambda m: setattr(m, "added", len),
        lambda m: setattr(m, "SOURCES", ("a",)),
    ],
)
def test_seal_leaves_variables_and_additions_alone(
    judge: Any, change: Callable[[Any], None]
) -> None:
    seal = Seal()
    change(judge)
    assert seal.broken() is None


def test_seal_covers_no_other_module(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("xllm_kernel.ops.a_kernel")
    other.LIMIT = 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, other.__name__, other)

    class Foreign:
        count = 0

    judge.Foreign = Foreign  # a class from elsewhere keeps what state it likes
    seal = Seal()
    other.LIMIT = 2  # type: ignore[attr-defined]
    Foreign.count = 1
    assert seal.broken() is None


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (time, "perf_counter", "time.perf_counter"),
        (builtins, "min", "builtins.min"),
        (gc, "collect", "gc.collect"),
        (json, "dumps", "json.dumps"),
        (json.JSONEncoder, "encode", "json.encoder.JSONEncoder.encode"),
        (resource, "getrusage", "resource.getrusage"),
        (torch, "equal", "torch.equal"),
        (torch.Tensor, "numel", "torch.Tensor.numel"),
        (torch.Tensor, "shape", "torch.Tensor.shape"),
    ],
)
def test_seal_covers_clocks_what_carries_figures_and_what_torch_does_natively(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, told: str
) -> None:
    seal = Seal()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *arguments: 0, raising=False)
        said = seal.broken()
    assert said is not None
    assert said.startswith(f"{told} was replaced")


@pytest.mark.parametrize(
    ("name", "what"),
    [("getpriority", "the nice value"), ("sched_getscheduler", "the scheduling policy")],
)
def test_seal_notices_a_process_that_gave_itself_another_share_of_the_processor(
    monkeypatch: pytest.MonkeyPatch, name: str, what: str
) -> None:
    seal = Seal()
    now = getattr(os, name)
    monkeypatch.setattr(os, name, lambda *whose: now(*whose) + 1)
    said = seal.broken()
    assert said is not None
    assert said.startswith(f"{what} was ")


def test_seal_lets_torch_replace_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    seal = Seal()
    monkeypatch.setattr(torch, "compile", len)
    assert seal.broken() is None


def test_seal_needs_no_torch(judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    seal = Seal()
    monkeypatch.setattr(torch, "equal", len)
    assert seal.broken() is None
    judge.LIMIT = 4
    assert seal.broken() is not None


@pytest.mark.parametrize(
    ("mode", "sum_", "difference"),
    [
        ("nearest", 1.0, -1.0),
        ("up", 1.0 + 2.0**-52, -1.0),
        ("down", 1.0, -1.0 - 2.0**-52),
    ],
)
def test_state_tells_the_roundings_apart(mode: str, sum_: float, difference: float) -> None:
    modes = {
        "x86_64": {"nearest": 0, "down": 0x400, "up": 0x800},
        "aarch64": {"nearest": 0, "up": 0x400000, "down": 0x800000},
    }[platform.machine()]
    libm = ctypes.CDLL("libm.so.6")
    libm.fesetround(modes[mode])
    try:
        state = integrity._state()
    finally:
        libm.fesetround(0)
    assert state["the rounding of 1 + 2^-53"] == sum_
    assert state["the rounding of -1 - 2^-53"] == difference
    assert state["the smallest double, times one"] == "0x0.0000000000001p-1022"
