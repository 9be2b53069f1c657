"""Guarantees: a closed list, each tried where an implementation states it, each fault found."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import need_native

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.numerics.__main__ import main
from xllm_kernel.numerics.invariants import levels
from xllm_kernel.numerics.invariants.checks import Subject
from xllm_kernel.numerics.invariants.guarantees import CHECKS
from xllm_kernel.numerics.rms_norm_out import SUITE
from xllm_kernel.numerics.suite import Trial
from xllm_kernel.receipts import Receipt
from xllm_kernel.registry import KernelRegistry, KernelSpec, OpContract, PreparedKernel

Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def honest(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Scale columns, element by element; a NaN comes out canonical."""
    y = x * w
    return y.masked_fill(y.isnan(), float("nan"))


def _parts(plan: PreparedKernel, arguments: Mapping[str, Any]) -> Sequence[torch.Tensor]:
    return [honest(*arguments.values())]


def trial_of(dtype: torch.dtype) -> Trial:
    def make() -> dict[str, Any]:
        generator = torch.Generator().manual_seed(1)
        return {n: torch.randn(s, generator=generator).to(dtype) for n, s in sizes.items()}

    def subnormal() -> dict[str, Any]:
        small = torch.finfo(dtype).smallest_normal / 4
        return {"x": torch.full((40, 9), small, dtype=dtype), "w": torch.ones(9, dtype=dtype)}

    sizes = {"x": (40, 9), "w": (9,)}
    return Trial(str(dtype)[6:], ("x",), make, subnormal, _parts)


def plan_of(kernel: Callable[..., Any], **changes: Any) -> PreparedKernel:
    contract = changes.pop("contract", OpContract("scale"))
    spec = KernelSpec("cpu.test.scale", contract, "cpu", ("eager",), "anything", "test", **changes)
    return PreparedKernel(spec, kernel, 1, ())


def word(guarantee: str, kernel: Callable[..., Any], dtype: torch.dtype) -> str | None:
    return CHECKS[guarantee](Subject(plan_of(kernel), trial_of(dtype)))


def _one_bit_off(y: torch.Tensor, row: int) -> torch.Tensor:
    y = y.clone()
    y.view(torch.int32 if y.dtype is torch.float32 else torch.int16)[row, 4] ^= 1
    return y


def _flaw(when: Callable[[torch.Tensor, torch.Tensor], bool], row: int = 0) -> Kernel:
    """Return a kernel that is one bit off, in one row, in some calls only."""

    def kernel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = honest(x, w)
        return _one_bit_off(y, row) if when(x, w) else y

    return kernel


# Of each dtype's NaNs: 0xFFC00000, 0xFE00, 0xFFC0 as signed integers, and those with a payload.
NEGATIVE = {torch.float32: -(1 << 22), torch.float16: -(1 << 9), torch.bfloat16: -(1 << 6)}
PAYLOAD = {torch.float32: 0x7FC00001, torch.float16: 0x7E01, torch.bfloat16: 0x7FC1}


def _nan_of(bits: dict[torch.dtype, int]) -> Kernel:
    def kernel(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = x * w
        y.view(torch.int32 if x.dtype is torch.float32 else torch.int16)[y.isnan()] = bits[x.dtype]
        return y

    return kernel


def _flushing(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = honest(x, w)
    return y.where(y.abs() >= torch.finfo(x.dtype).smallest_normal, 0.0)


def _neighbours(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = honest(x, w)
    y[1:] = y[1:].masked_fill(x[:-1].isnan().all(-1, keepdim=True), 0.0)
    return y


def _counting() -> Kernel:
    calls = itertools.count()
    return _flaw(lambda x, w: next(calls) == 3)


FAULTS: dict[str, tuple[str, Callable[[], Kernel]]] = {
    "number of rows": ("batch_invariant", lambda: _flaw(lambda x, w: len(x) == 40)),
    "one row alone": ("batch_invariant", lambda: _flaw(lambda x, w: len(x) == 1)),
    "last place": ("batch_invariant", lambda: _flaw(lambda x, w: len(x) > 1, row=-1)),
    "rows beside it": ("batch_invariant", lambda: _neighbours),
    "threads": ("thread_invariant", lambda: _flaw(lambda x, w: torch.get_num_threads() == 3)),
    "alignment": (
        "layout_invariant",
        lambda: _flaw(lambda x, w: x.data_ptr() % 64 == x.element_size()),
    ),
    "alignment of what is shared": (
        "layout_invariant",
        lambda: _flaw(lambda x, w: w.data_ptr() % 64 == 16),
    ),
    "row stride": ("layout_invariant", lambda: _flaw(lambda x, w: x.stride(0) % 8 == 2)),
    "fourth call": ("repeatable", _counting),
    "flushed": ("subnormals_kept", lambda: _flushing),
    "negative NaN": ("canonical_nan", lambda: _nan_of(NEGATIVE)),
    "NaN with a payload": ("canonical_nan", lambda: _nan_of(PAYLOAD)),
    "NaN swallowed": ("canonical_nan", lambda: lambda x, w: honest(x, w).nan_to_num(0.0)),
    "one bit off its parts": ("equals_parts", lambda: _flaw(lambda x, w: True, row=17)),
}


def test_every_guarantee_is_tried_and_has_a_fault() -> None:
    assert set(GUARANTEES) == {*CHECKS, "level_invariant"}
    assert {guarantee for guarantee, _ in FAULTS.values()} == set(CHECKS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("guarantee", CHECKS)
def test_honest_kernel_keeps_every_guarantee(guarantee: str, dtype: torch.dtype) -> None:
    before = torch.get_num_threads()
    assert word(guarantee, honest, dtype) is None
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_found(fault: str, dtype: torch.dtype) -> None:
    guarantee, make = FAULTS[fault]
    assert word(guarantee, make(), dtype) is not None


def test_word_names_the_element_and_both_values() -> None:
    reason = word("equals_parts", _flaw(lambda x, w: True, row=17), torch.bfloat16)
    y = honest(*trial_of(torch.bfloat16).make().values())[17, 4].view(torch.int16)
    ours, theirs = (f"{int(v) & 0xFFFF:#x}" for v in (y ^ 1, y))
    wanted = f"output[17, 4] is {ours} at once, but {theirs} by its parts (1 such elements)"
    assert reason == wanted


def test_written_arguments_are_results_too() -> None:
    contract = OpContract("scale", mutates=("x",))

    def kernel(x: torch.Tensor, w: torch.Tensor) -> None:
        x.copy_(honest(x, w) if len(x) > 1 else x)

    subject = Subject(plan_of(kernel, contract=contract), trial_of(torch.float32))
    reason = CHECKS["batch_invariant"](subject)
    assert reason is not None
    assert reason.startswith("argument 'x'[0, ")


# ---------------------------------------------------------------- stated


def test_unknown_guarantee_refused_at_registration() -> None:
    registry = KernelRegistry()
    for stated, seen in ((("fast",), "fast"), (("repeatable",) * 2, "repeatable, repeatable")):
        spec = plan_of(honest, guarantees=stated).spec
        with pytest.raises(ConfigurationError, match=f"guarantees must be .*, got {seen};"):
            registry.register(spec, honest, site="here:1", module="test")


def test_receipt_says_name_and_sentence() -> None:
    plan = plan_of(honest, guarantees=("repeatable",))
    assert Receipt.of(plan).guarantees == ("repeatable: repeated calls give the same bits",)


# ---------------------------------------------------------------- on the command line

QUICK = ("--rows", "2", "--widths", "64", "--dtypes", "bfloat16")


def _run(implementation: str, folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    output = folder / "numerics.json"
    argv = ["--implementation", implementation, *QUICK, *options, "--output", str(output)]
    code = main(argv)
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    return code, [row for row in rows if "guarantee" in row["parameters"]]


def _plant(monkeypatch: pytest.MonkeyPatch, kernel: Callable[..., Any], *names: str) -> None:
    """Make the suite prepare PyTorch's implementation with another callable and guarantees."""
    prepare = SUITE.prepare

    def planted(device: str, mode: str, implementation: str) -> PreparedKernel:
        plan = prepare(device, mode, implementation)
        held = plan.function
        spec = replace(plan.spec, guarantees=names)
        return replace(plan, spec=spec, function=lambda *a: kernel(held, *a))

    monkeypatch.setattr(SUITE, "prepare", planted)


def test_nothing_stated_nothing_tried(fresh: object, tmp_path: Path) -> None:
    assert _run("cpu.torch.rms_norm_out", tmp_path) == (0, [])


def test_broken_guarantee_fails_the_run_by_name(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def kernel(held: Callable[..., Any], output: torch.Tensor, *others: Any) -> None:
        held(output, *others)
        if len(output) > 200:
            output[7, 9] += 1

    _plant(monkeypatch, kernel, "repeatable", "batch_invariant")
    code, rows = _run("cpu.torch.rms_norm_out", tmp_path)
    assert (code, [row["status"] for row in rows]) == (1, ["passed", "failed"])
    assert rows[1]["reason"].startswith("bfloat16: argument 'output'[")
    # The certificates beside them: one on batches fails as well, two have nothing to compare.
    assert "FAILED  6 of 11 cases passed, 3 failed, 2 n/a" in capsys.readouterr().out


def test_raising_while_tried_is_a_crash(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(held: Callable[..., Any], output: torch.Tensor, *others: Any) -> None:
        if len(output) > 2:
            raise RuntimeError("too tall")
        held(output, *others)

    _plant(monkeypatch, kernel, "repeatable")
    code, (row,) = _run("cpu.torch.rms_norm_out", tmp_path)
    assert (code, row["status"], row["reason"]) == (4, "error", "RuntimeError: too tall")


def test_nothing_tried_where_no_case_passed(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plant(monkeypatch, lambda held, output, *others: None, "repeatable")
    assert _run("cpu.torch.rms_norm_out", tmp_path) == (1, [])


def test_parts_by_another_solution_are_not_compared(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    _plant(monkeypatch, lambda held, *arguments: held(*arguments), "equals_parts")
    code, (row,) = _run("cpu.torch.rms_norm_out", tmp_path)
    assert (code, row["status"]) == (0, "not_applicable")
    assert "bound to cpu.simd.rms_norm, another solution than cpu.torch" in row["reason"]


# ---------------------------------------------------------------- the package's own kernels

SIMD = ("rms_norm", "rms_norm_out", "fused_add_rms_norm", "fused_add_rms_norm_inplace")


@pytest.mark.parametrize("operation", SIMD)
def test_simd_keeps_what_it_states(
    fresh: object, tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    # One child is enough, and the next test has one of its own.
    monkeypatch.setattr(levels, "other_levels", lambda: ["scalar"])
    code, rows = _run(f"cpu.simd.{operation}", tmp_path, "--dtypes", "float32", "float16")
    assert (code, {row["status"] for row in rows}) == (0, {"passed"})
    stated = {row["parameters"]["guarantee"] for row in rows}
    assert stated == set(GUARANTEES) - ({"equals_parts"} if operation == "rms_norm" else set())


def test_level_that_differs_found_with_its_element(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    # Runs first in the child: its kernel is wrong, at this level alone.
    (tmp_path / "sitecustomize.py").write_text(
        "import dataclasses, os\n"
        "if os.environ.get('XLLM_KERNEL_SIMD_LEVEL') == 'scalar':\n"
        "    from xllm_kernel.numerics import rms_norm_family as family\n"
        "    bind = family.bind\n"
        "    def planted(*names):\n"
        "        plan = bind(*names)\n"
        "        def function(*arguments):\n"
        "            output = plan.function(*arguments)\n"
        "            output[17, 40] *= 1.5\n"
        "            return output\n"
        "        return dataclasses.replace(plan, function=function)\n"
        "    family.bind = planted\n",
        encoding="utf-8",
    )
    import xllm_kernel

    package = str(Path(xllm_kernel.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{package}")
    monkeypatch.setattr(levels, "other_levels", lambda: ["scalar"])
    code, rows = _run("cpu.simd.rms_norm", tmp_path)
    bad = [row for row in rows if row["status"] != "passed"]
    assert (code, [row["parameters"]["guarantee"] for row in bad]) == (1, ["level_invariant"])
    assert bad[0]["reason"].startswith("bfloat16: output[17, 40] is 0x")
    assert " at level scalar, but 0x" in bad[0]["reason"]


def test_level_that_the_machine_lacks_is_no_verdict(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    monkeypatch.setattr(levels, "other_levels", lambda: ["sse9"])
    code, rows = _run("cpu.simd.rms_norm", tmp_path)
    row = next(r for r in rows if r["parameters"]["guarantee"] == "level_invariant")
    assert (code, row["status"]) == (0, "not_applicable")
    assert row["reason"] == "this machine has no other level to compare with"


def test_child_that_dies_is_no_verdict_either(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_native()
    (tmp_path / "sitecustomize.py").write_text("import os\nos._exit(9)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(levels, "other_levels", lambda: ["scalar"])
    code, rows = _run("cpu.simd.rms_norm", tmp_path)
    row = next(r for r in rows if r["parameters"]["guarantee"] == "level_invariant")
    assert (code, row["status"]) == (3, "error")
    assert "a child with XLLM_KERNEL_SIMD_LEVEL=scalar must compute the trials" in row["reason"]
