"""Mode ``compile``: the bound callables in one graph, and what the validator sees of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import affine
import pytest
import torch
from conftest import need_native
from numerics_world import COMMANDS, QUICK, World

import xllm_kernel
from xllm_kernel.platforms import get_platform

OPERATIONS = ("rms_norm", "rms_norm_out", "fused_add_rms_norm", "fused_add_rms_norm_inplace")
BOTH = pytest.mark.parametrize("command", ["numerics", "benchmark"])

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("torch.compile needs a C++ compiler", allow_module_level=True)


@pytest.fixture(autouse=True)
def nothing_compiled_stays() -> Iterator[None]:
    yield
    torch.compiler.reset()


@pytest.fixture
def world(fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def _run(command: str, *options: str, output: Path) -> tuple[int, dict[str, Any]]:
    code = COMMANDS[command](["--mode", "compile", "--output", str(output), *options])
    return code, json.loads(output.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- the package's own operators


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("solution", ["simd", "torch"])
@pytest.mark.parametrize("rows", ["1", "16"])
def test_every_solution_passes_compiled(
    fresh: object, tmp_path: Path, operation: str, solution: str, rows: str
) -> None:
    if solution == "simd":
        need_native()
    code, report = _run(
        "benchmark",
        *("--implementation", f"cpu.{solution}.{operation}", "--rows", rows, "--widths", "512"),
        *("--dtypes", "bfloat16", *QUICK),
        output=tmp_path / "r.json",
    )
    (row,) = report["rows"]
    assert (code, row["status"], report["mode"]) == (0, "passed", "compile"), row["reason"]
    truth = ["graph_inputs_changed", "graph_two_alive", "graph_after_allocation"]
    assert list(row["validation"]) == ["function", "captured", *truth, "after_timing", "fresh_data"]
    assert row["timings"]["regimes"]["graph"]["calls_a_replay"] == 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_initialized_for_compile_the_same_choice(fresh: object, operation: str) -> None:
    plans = xllm_kernel.initialize(device="cpu", execution_mode="compile")
    assert plans[operation].spec.execution_modes == ("eager", "compile")
    assert xllm_kernel.receipts()[operation].execution_modes == ("eager", "compile")


@pytest.mark.parametrize("solution", ["simd", "torch"])
@pytest.mark.parametrize("operation", ["rms_norm", "fused_add_rms_norm"])
def test_compiled_call_follows_its_scalar(fresh: object, operation: str, solution: str) -> None:
    if solution == "simd":
        need_native()
    call = xllm_kernel.initialize(device="cpu", overrides={operation: solution})[operation].function
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    added = [] if operation == "rms_norm" else [x.flip(0)]
    tensors = [x, *added, torch.ones(64)]
    compiled = torch.compile(lambda eps: call(*tensors, eps), fullgraph=True, backend="aot_eager")
    for eps in (1e-6, 1.0, 1e-6, 4.0):
        torch.testing.assert_close(compiled(eps), call(*tensors, eps), rtol=0, atol=0)


# What a compiler fuses it may leave unrounded; the norm is of the rounded sum all the same.
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_compiled_norm_alone_is_of_the_rounded_sum(fresh: object, dtype: torch.dtype) -> None:
    chosen = {"fused_add_rms_norm": "torch"}
    plan = xllm_kernel.initialize(device="cpu", overrides=chosen)["fused_add_rms_norm"]
    x, r = torch.randn(2, 16, 512, generator=torch.Generator().manual_seed(1)).to(dtype)
    w = torch.ones(512, dtype=dtype)
    compiled = torch.compile(lambda a, b: plan.function(a, b, w, 1e-6)[0], fullgraph=True)
    total = (x.float() + r.float()).to(dtype).double()
    exact = total / torch.sqrt((total * total).mean(-1, keepdim=True) + 1e-6)
    error = (compiled(x, r).double() - exact).abs()
    # Half an ULP for one rounding, and a little for float32; a norm of another sum is off by one.
    assert bool((error <= 0.51 * torch.finfo(dtype).eps * exact.abs()).all())


@pytest.mark.parametrize("operation", ["fused_add_rms_norm", "fused_add_rms_norm_inplace"])
def test_compiled_composition_that_needs_a_gradient_refused(fresh: object, operation: str) -> None:
    plan = xllm_kernel.initialize(device="cpu", overrides={operation: "torch"})[operation]
    x, r, w = torch.ones(2, 4), torch.ones(2, 4), torch.ones(4, requires_grad=True)
    compiled = torch.compile(lambda a: plan.function(a, r, w, 1e-6), fullgraph=True)
    with pytest.raises(Exception, match=r"weight must not require a gradient"):
        compiled(x)
    with torch.no_grad():
        compiled(x)


def test_compiled_composition_still_refuses_memory_that_overlaps(fresh: object) -> None:
    operation = "fused_add_rms_norm_inplace"
    plan = xllm_kernel.initialize(device="cpu", overrides={operation: "torch"})[operation]
    memory, w = torch.ones(12), torch.ones(4)
    x, r = memory[:8].view(2, 4), memory[4:].view(2, 4)
    with pytest.raises(Exception, match="apart_from_residual"):
        torch.compile(lambda: plan.function(x, r, w, 1e-6), fullgraph=True)()


# ---------------------------------------------------------------- what is found


def _compiled_only(damage: Callable[[Any], Any]) -> Callable[..., Any]:
    def behaviour(values: Any, scale: float) -> Any:
        result = affine.honest(values, scale)
        return damage(result) if torch.compiler.is_compiling() else result

    return behaviour


@BOTH
def test_wrong_only_when_compiled_found(world: World, command: str) -> None:
    world.plant(_compiled_only(lambda r: {**r, "scaled": r["scaled"] * (1 + 2.0**-18)}))
    outcome = world.run(command, "--mode", "compile")
    (row,) = outcome.rows
    assert (outcome.code, row["stage"]) == (1, "validate captured")
    assert row["validation"]["function"]["status"] == "passed"
    assert "ULP off" in row["reason"]
    assert row.get("timings") is None
    world.plant(affine.honest)
    assert world.run(command, "--mode", "compile").code == 0


@BOTH
def test_graph_break_is_an_error_that_names_the_case(world: World, command: str) -> None:
    def broken(values: Any, scale: float) -> Any:
        torch._dynamo.graph_break()
        return affine.honest(values, scale)

    world.plant(broken)
    outcome = world.run(command, "--mode", "compile")
    (row,) = outcome.rows
    assert (outcome.code, row["status"], row["stage"]) == (4, "error", "capture")
    assert outcome.report["reason"].startswith("affine/8/scale3.0: capture: Unsupported: ")


def test_not_compiled_at_all_is_no_result_of_the_implementation(world: World) -> None:
    with torch.compiler.set_stance("force_eager"):
        outcome = world.run("numerics", "--mode", "compile")
    (row,) = outcome.rows
    assert (outcome.code, row["stage"]) == (3, "capture")
    assert "torch.compile must compile the call, but it ran as it is" in row["reason"]


def test_more_cases_than_pytorch_recompiles_each_compiled_anew(world: World) -> None:
    sizes = [str(n) for n in range(2, 14)]
    outcome = world.run("numerics", "--mode", "compile", "--warmup", "0", "--sizes", *sizes)
    assert (outcome.code, outcome.report["coverage"]["passed"]) == (0, len(sizes))


def test_captured_calls_run_what_was_compiled_and_never_python_again() -> None:
    python_calls = []
    x = torch.arange(4.0)

    def function() -> torch.Tensor:
        if not torch.compiler.is_compiling():
            python_calls.append(1)
        return x * 2

    captured = get_platform("cpu").capture(function, "compile")
    for factor in (1.0, 3.0):
        x.copy_(torch.arange(4.0) * factor)
        captured.replay()
        assert torch.equal(captured.outputs()[0], x * 2)
    assert (captured.calls, python_calls) == (1, [])


def test_replay_that_would_compile_anew_raises() -> None:
    x, factor = torch.ones(4), [2.0]
    captured = get_platform("cpu").capture(lambda: x * factor[0], "compile")
    captured.replay()
    factor[0] = 3.0
    with pytest.raises(Exception, match="a replay must run what was compiled"):
        captured.replay()


def test_captured_beside_another_leaves_it_as_it_is() -> None:
    cpu, tensors = get_platform("cpu"), [torch.ones(4), torch.ones(4)]
    first, second = (
        cpu.capture(lambda x=x: x * 2, "compile", beside=number > 0)
        for number, x in enumerate(tensors)
    )
    for number, x in enumerate(tensors):
        x.fill_(number)
    for captured in (first, second):
        captured.replay()
    for number, captured in enumerate((first, second)):
        assert torch.equal(captured.outputs()[0], torch.full((4,), 2.0 * number))
