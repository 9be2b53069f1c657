"""Operators that write to their arguments, in graphs of one call: what stands there is judged."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import recorded_graph
import torch

import xllm_kernel
from xllm_kernel.numerics.case_run import CaseEndedError, CaseRun
from xllm_kernel.numerics.report import Row
from xllm_kernel.platforms.cpu import CpuPlatform

MUTATING = ("fused_add_rms_norm_inplace", "rms_norm_out")


def _judge_mutating(operation: str, function: Callable[..., Any] | None = None) -> Row:
    """Take a case of such an operator, or of something else in its place, through a graph."""
    suite = importlib.import_module(f"xllm_kernel.numerics.{operation}").SUITE
    plan = xllm_kernel.initialize(device="cpu", overrides={operation: "torch"})[operation]
    if function is not None:
        plan = replace(plan, function=partial(function, plan.function))
    parser = argparse.ArgumentParser()
    suite.add_arguments(parser)
    (case,) = suite.cases(
        parser.parse_args(["--rows", "3", "--widths", "16", "--dtypes", "bfloat16"])
    )
    row = Row(case.case_id, case.parameters)
    with suppress(CaseEndedError):
        CaseRun(CpuPlatform(), plan, "graph", 1, None).run(case, row)
    return row


@pytest.fixture
def graph(fresh: object, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded_graph.install(monkeypatch)


@pytest.mark.parametrize("operation", MUTATING)
def test_written_arguments_are_judged_in_a_graph_of_one_call(graph: None, operation: str) -> None:
    row = _judge_mutating(operation)
    assert (row.status, row.reason) == ("passed", None)
    assert set(row.metadata["graph_truth_left_out"]) == {"other_stream"}


@pytest.mark.parametrize("operation", MUTATING)
def test_frozen_input_of_a_mutating_operator_found(graph: None, operation: str) -> None:
    seen: list[torch.Tensor] = []

    def frozen(honest: Callable[..., Any], *arguments: Any) -> None:
        *others, weight, eps = arguments
        if not recorded_graph.capturing():
            seen.append(weight.clone())
        honest(*others, seen[-1], eps)

    row = _judge_mutating(operation, frozen)
    assert (row.status, row.stage) == ("failed", "graph truth")
    assert str(row.reason).startswith("replay 2 after the inputs changed: argument '")


def test_written_argument_left_out_of_the_graph_found(graph: None) -> None:
    def outside(honest: Callable[..., Any], output: torch.Tensor, *arguments: Any) -> None:
        with torch.utils._python_dispatch._disable_current_modes():
            honest(output, *arguments)

    row = _judge_mutating("rms_norm_out", outside)
    assert (row.status, row.stage) == ("failed", "validate captured")
    assert "argument 'output' must be written to" in str(row.reason) or "nan" in str(row.reason)
