"""A case that nobody's results can fail is a failure itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import affine.suite
import pytest
import torch
from numerics_world import World

from xllm_kernel.numerics.suite import PreparedCase, Reset
from xllm_kernel.numerics.vacuity import vacuous


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def accepting(*accepted: float, elements: int = 3) -> PreparedCase:
    """A case that lets results of these values pass."""

    def validate(function: Any) -> dict[str, str]:
        value = float(function()[0])
        same = any(value == a or (value != value and a != a) for a in accepted)
        return {"status": "passed" if same else "failed"}

    return PreparedCase(lambda: torch.ones(elements), validate)


def test_a_case_that_passes_zeros_and_nan_is_vacuous() -> None:
    reason = vacuous(accepting(0.0, float("nan")), (), torch.ones(3))
    assert reason is not None
    assert "vacuous" in reason


@pytest.mark.parametrize("accepted", [(), (0.0,), (float("nan"),)])
def test_a_case_that_fails_either_is_not(accepted: tuple[float, ...]) -> None:
    assert vacuous(accepting(*accepted), (), torch.ones(3)) is None


def test_no_elements_cannot_be_told_from_nobodys() -> None:
    assert vacuous(accepting(0.0, float("nan")), (), torch.ones(0)) is None


def test_one_result_with_elements_among_empty_ones_is_looked_at() -> None:
    result = (torch.ones(1), torch.ones(0))
    assert vacuous(accepting(0.0, float("nan")), (), result) is not None


def test_written_arguments_are_filled_and_put_back() -> None:
    buffer, seen = torch.ones(3), []

    def validate(function: Any) -> dict[str, str]:
        function()
        seen.append(buffer.clone())
        return {"status": "failed"}

    case = PreparedCase(
        lambda: None,
        validate,
        reset=Reset(lambda: buffer.fill_(1.0)),
        arguments={"buffer": buffer},
    )
    assert vacuous(case, ("buffer",), None) is None
    assert seen[0].tolist() == [0.0] * 3
    assert buffer.tolist() == [1.0] * 3


def test_a_run_with_a_vacuous_case_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = affine.suite.Case.prepare

    def blind(case: Any, plan: Any) -> PreparedCase:
        def validate(function: Any) -> dict[str, str]:
            function()
            return {"status": "passed"}

        return replace(prepare(case, plan), validate=validate)

    monkeypatch.setattr(affine.suite.Case, "prepare", blind)
    outcome = world.run("numerics")
    assert (outcome.code, outcome.rows[0]["stage"]) == (1, "prove")
    assert "vacuous" in outcome.rows[0]["reason"]
