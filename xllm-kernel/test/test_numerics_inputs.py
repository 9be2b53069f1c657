"""``--inputs DIR``: recorded calls become cases; what is no recording is refused by name."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import need

from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.numerics.rms_norm import SUITE, RmsNormCase

FACTS = {"operation": "rms_norm", "eps": "1e-05", "name": "prefill.attn", "source": "a model"}


def _save(path: Path, tensors: dict[str, torch.Tensor], **changes: str) -> None:
    from safetensors.torch import save_file

    save_file(tensors, str(path), metadata={**FACTS, **changes})


def _tensors(dtype: torch.dtype = torch.float32, rows: int = 5) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return {
        "input": torch.randn(rows, 576, generator=generator).to(dtype),
        "weight": torch.randn(576, generator=generator).to(dtype),
    }


def _cases(folder: Path, *options: str) -> list[RmsNormCase]:
    parser = argparse.ArgumentParser()
    SUITE.add_arguments(parser)
    return SUITE.cases(parser.parse_args(["--inputs", str(folder), *options]))


def test_recordings_become_cases_in_order_of_their_names(tmp_path: Path) -> None:
    need("safetensors")
    _save(tmp_path / "001.b.safetensors", _tensors(torch.bfloat16, rows=1), eps="1e-06")
    _save(tmp_path / "000.a.safetensors", _tensors())
    first, second = _cases(tmp_path)
    assert (first.case_id, second.case_id) == (
        "rms_norm/recorded/000.a",
        "rms_norm/recorded/001.b",
    )
    assert first.parameters == {
        "dtype": "float32",
        "shape": [5, 576],
        "eps": 1e-05,
        "name": "prefill.attn",
        "source": "a model",
    }
    assert (second.eps, second.dtype, second.shape) == (1e-06, "bfloat16", (1, 576))


def test_a_recorded_case_runs_on_the_recorded_tensors(tmp_path: Path) -> None:
    need("safetensors")
    from test_numerics_rms_norm import native, plan_of

    tensors = _tensors()
    _save(tmp_path / "000.a.safetensors", tensors)
    (case,) = _cases(tmp_path)
    seen: list[Any] = []

    def look(*arguments: Any) -> torch.Tensor:
        seen.append(arguments)
        return native(*arguments)

    prepared = case.prepare(plan_of(look))
    assert prepared.validate(prepared.function)["status"] == "passed"
    assert seen[0][0].equal(tensors["input"])
    assert seen[0][1].equal(tensors["weight"])
    assert seen[0][2] == 1e-05


@pytest.mark.parametrize("command", ["numerics", "benchmark"])
def test_both_commands_take_recordings(
    run_python: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    need("safetensors")
    _save(tmp_path / "000.a.safetensors", _tensors())
    _save(tmp_path / "001.integers.safetensors", {k: v.int() for k, v in _tensors().items()})
    done = run_python(
        *("-m", f"xllm_kernel.{command}", "--implementation", "cpu.torch.rms_norm"),
        *("--inputs", str(tmp_path), "--output", str(tmp_path / "r.json")),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "r.json").read_text())["rows"]
    recorded = [row["status"] for row in rows if "/recorded/" in row["case_id"]]
    assert recorded == ["passed", "not_applicable"]
    assert rows[1]["reason"].startswith("input.dtype")


@pytest.mark.parametrize(
    ("tensors", "changes", "message"),
    [
        (None, {}, "cannot be read"),
        ({"input": torch.ones(2, 4)}, {}, "must record a call"),
        ({**_tensors(), "bias": torch.ones(1)}, {}, "must record a call"),
        (_tensors(), {"operation": "another"}, "it records 'another'"),
        (_tensors(), {"eps": "small"}, "must say eps as a number"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(
    tmp_path: Path, tensors: dict[str, torch.Tensor] | None, changes: dict[str, str], message: str
) -> None:
    need("safetensors")
    path = tmp_path / "000.a.safetensors"
    if tensors is None:
        path.write_bytes(b"nonsense")
    else:
        _save(path, tensors, **changes)
    with pytest.raises(ConfigurationError, match=message) as raised:
        _cases(tmp_path)
    assert str(path) in str(raised.value)


def test_empty_directory_is_refused(tmp_path: Path) -> None:
    need("safetensors")
    with pytest.raises(ConfigurationError, match="a directory with"):
        _cases(tmp_path)


def test_options_that_the_files_decide_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="remove --rows, --seed"):
        _cases(tmp_path, "--rows", "1", "--seed", "2")


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == "safetensors" else found(n, *a)
    )
    with pytest.raises(DependencyAbsentError, match="extra 'inputs'"):
        _cases(tmp_path)
