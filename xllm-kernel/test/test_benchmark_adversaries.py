"""Candidates that would look quick: none of them gets a figure, and the row says why.

Those that remember results by value are in ``test_benchmark_honesty``, under a virtual clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import affine
import pytest
import torch
from numerics_world import Outcome, World

_honest = affine.honest


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _copied(result: dict[str, Any]) -> dict[str, Any]:
    return {"scaled": result["scaled"].clone(), "parts": (result["parts"][0].clone(),)}


def _cached_by_address() -> Callable[..., Any]:
    known: dict[int, Any] = {}

    def behave(values: torch.Tensor, scale: float) -> Any:
        return _copied(known.setdefault(values.data_ptr(), _honest(values, scale)))

    return behave


def _view_of_the_input() -> Callable[..., Any]:
    def behave(values: torch.Tensor, scale: float) -> Any:
        values.mul_(scale)
        return {"scaled": values[:], "parts": (-values,)}

    return behave


def _on_another_thread() -> Callable[..., Any]:
    def behave(values: torch.Tensor, scale: float) -> Any:
        result = {"scaled": torch.zeros_like(values), "parts": (torch.zeros_like(values),)}
        released = threading.Event()

        def late() -> None:
            released.wait(0.2)
            right = _honest(values, scale)
            result["scaled"].copy_(right["scaled"])
            result["parts"][0].copy_(right["parts"][0])

        threading.Thread(target=late).start()
        return result

    return behave


def _with_a_clock_of_its_own(name: str) -> Callable[..., Any]:
    def behave(values: torch.Tensor, scale: float) -> Any:
        setattr(time, name, lambda: 0)
        return _honest(values, scale)

    return behave


CHEATS: dict[str, tuple[Callable[[], Callable[..., Any]], str]] = {
    "cached by address": (_cached_by_address, "timing"),
    "view of the input": (_view_of_the_input, "validate function"),
    "another thread": (_on_another_thread, "validate function"),
    "perf_counter": (lambda: _with_a_clock_of_its_own("perf_counter"), "integrity"),
    "perf_counter_ns": (lambda: _with_a_clock_of_its_own("perf_counter_ns"), "integrity"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_candidate_that_cheats_gets_no_figure(
    world: World, cheat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("perf_counter", "perf_counter_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))  # put back afterwards
    make, stage = CHEATS[cheat]
    world.plant(make())
    outcome = world.run("benchmark")
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (1, "failed", stage)
    assert row["timings"] is None
    assert _shown_figures(outcome) == []


def test_an_honest_candidate_has_them(world: World) -> None:
    outcome = world.run("benchmark")
    assert outcome.code == 0
    assert _shown_figures(outcome) == ["hot"]


def _shown_figures(outcome: Outcome) -> list[str]:
    return [name for row in outcome.rows for name in (row["timings"] or {"regimes": ()})["regimes"]]
