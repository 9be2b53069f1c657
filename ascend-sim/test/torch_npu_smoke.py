"""Compare torch_npu's calls over the simulated libraries with torch's on the CPU.

Run as `ascend-sim/run python -m pytest ascend-sim/test/torch_npu_smoke.py`. Shows that simulated
operators get the arguments that they expect; what they compute has unit tests of its own.
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
import torch_npu

SIMULATOR = ctypes.CDLL("libascendcl.so")
Call = Callable[[torch.Tensor], object]


def take_reports() -> list[dict[str, str]]:
    """Return the simulator's reports since the last call."""
    function = SIMULATOR.ascend_sim_take_reports
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    function.restype = ctypes.c_size_t
    buffer = ctypes.create_string_buffer(1 << 20)
    assert function(buffer, len(buffer)) <= len(buffer)
    reports: list[dict[str, str]] = json.loads(buffer.value)
    return reports


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Let every test draw the same, alone or after others, in every run."""
    torch.manual_seed(11)


@pytest.fixture(autouse=True)
def no_reports() -> Iterator[None]:
    """Fail a test during which the simulator saw a race or a stray operand."""
    take_reports()
    yield
    torch.npu.synchronize()
    assert take_reports() == []


def on_cpu(result: object) -> object:
    """Bring what a call returned to the host."""
    return result.cpu() if isinstance(result, torch.Tensor) else result


def assigned(tensor: torch.Tensor, where: object, value: object) -> torch.Tensor:
    """Return a copy with `value` written to `where`."""
    out = tensor.clone()
    out[where] = value
    return out


FLOATING: dict[str, Call] = {
    "abs": lambda a: a.abs(),
    "add": lambda a: a + 2 * a,
    "add_alpha": lambda a: a.clone().add_(a, alpha=3),
    "add_scalar": lambda a: a + 1.5,
    "all": lambda a: (a == a).all(),
    "all_of_rows": lambda a: (a > 0).all(1),
    "allclose": lambda a: torch.allclose(a, a * (1 + 1e-7)),
    "amax": lambda a: a.amax(0),
    "any": lambda a: (a > 0).any(),
    "argmax": lambda a: a.argmax(1),
    "bits": lambda a: a.view(torch.int32),
    "bool_and": lambda a: (a > 0) & (a < 1),
    "bool_not": lambda a: ~(a > 0),
    "cat": lambda a: torch.cat([a, a[:, :2]], 1),
    "ceil": lambda a: a.ceil(),
    "clamp": lambda a: a.clamp(-0.5, 0.5),
    "clamp_min": lambda a: a.clamp_min(0.25),
    "contiguous_columns": lambda a: a[:, ::2].contiguous(),
    "contiguous_transpose": lambda a: a.t().contiguous(),
    "div": lambda a: a / (a.abs() + 1),
    "div_scalar": lambda a: a / 3,
    "equal": lambda a: torch.equal(a, a.clone()),
    "exp": lambda a: a.exp(),
    "expand": lambda a: a[:1].expand(4, 5).contiguous(),
    "fill": lambda a: a.clone().fill_(3),
    "floor": lambda a: a.floor(),
    "isfinite": lambda a: (a / (a > 0)).isfinite(),
    "isinf": lambda a: (a / (a > 0)).isinf(),
    "isnan": lambda a: (a * float("nan")).isnan(),
    "item": lambda a: a.max().item(),
    "masked_fill": lambda a: a.clone().masked_fill_(a > 0, 1.0),
    "masked_select": lambda a: torch.masked_select(a, a > 0),
    "max": lambda a: a.max(),
    "max_of_rows": lambda a: a.max(1)[0],
    "maximum": lambda a: torch.maximum(a, -a),
    "mean": lambda a: a.mean(-1, keepdim=True),
    "min": lambda a: a.min(),
    "mul_inplace": lambda a: a.clone().mul_(3),
    "ne_scalar": lambda a: a != 1,
    "nonzero": lambda a: (a > 0).nonzero(),
    "ones_like": lambda a: torch.ones_like(a),
    "pow": lambda a: a.pow(2),
    "rsqrt": lambda a: (a.abs() + 1).rsqrt(),
    "rsub": lambda a: 1 - a,
    "set_column": lambda a: assigned(a, (slice(None), 1), 7.0),
    "set_masked": lambda a: assigned(a, a > 0, 1.0),
    "sigmoid": lambda a: a.sigmoid(),
    "silu": lambda a: torch.nn.functional.silu(a),
    "sqrt": lambda a: a.abs().sqrt(),
    "square": lambda a: a.square(),
    "stack": lambda a: torch.stack([a, a], 1),
    "sum": lambda a: a.sum(),
    "sum_of_columns": lambda a: a.sum(0),
    "take_masked": lambda a: a[a > 0],
    "to_bfloat16": lambda a: a.bfloat16(),
    "to_bool": lambda a: a.bool(),
    "to_float16": lambda a: a.half(),
    "to_int32": lambda a: a.int(),
    "to_int64": lambda a: a.long(),
    "tolist": lambda a: a.tolist(),
    "where": lambda a: torch.where(a > 0, a, -a),
    "zero": lambda a: a.clone().zero_(),
}

INTEGER: dict[str, Call] = {
    "add": lambda a: a + 1,
    "div": lambda a: a / 2,
    "floor_div": lambda a: a // 2,
    "remainder": lambda a: a % 3,
    "sum": lambda a: a.sum(),
    "xor": lambda a: a ^ 3,
}

INDEXED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "index": lambda a, i: a[i],
    "index_columns": lambda a, i: a[:, i],
    "index_both": lambda a, i: a[i, i],
    "index_select": lambda a, i: a.index_select(1, i.abs()),
    "embedding": lambda a, i: torch.nn.functional.embedding(i.abs(), a),
    "gather": lambda a, i: a.gather(1, i.abs()[None].expand(3, -1)),
    "set": lambda a, i: assigned(a, i, 5.0),
}


@pytest.mark.parametrize("name", FLOATING)
def test_floating_point_call_gives_what_the_cpu_gives(name: str) -> None:
    values = torch.randn(3, 5, generator=torch.Generator().manual_seed(7))
    torch.testing.assert_close(on_cpu(FLOATING[name](values.npu())), FLOATING[name](values))


@pytest.mark.parametrize("name", INTEGER)
def test_integer_call_gives_what_the_cpu_gives(name: str) -> None:
    values = torch.arange(-6, 6).reshape(3, 4)
    torch.testing.assert_close(on_cpu(INTEGER[name](values.npu())), INTEGER[name](values))


@pytest.mark.parametrize("name", INDEXED)
def test_indexing_gives_what_the_cpu_gives(name: str) -> None:
    values, index = torch.randn(3, 5), torch.tensor([2, -1, 0])
    torch.testing.assert_close(
        INDEXED[name](values.npu(), index.npu()).cpu(), INDEXED[name](values, index)
    )


def test_empty_index_takes_nothing() -> None:
    values = torch.randn(3, 5)
    device = values.npu()
    assert device[torch.tensor([], dtype=torch.long).npu()].shape == (0, 5)
    device[device > 99] = 1.0
    assert torch.equal(device.cpu(), values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_tensor_prints_as_on_the_cpu(dtype: torch.dtype) -> None:
    values = torch.tensor([[0.5, -2.0], [float("inf"), 3.0]]).nan_to_num(posinf=9.0).to(dtype)
    assert repr(values.npu()).replace(", device='npu:0'", "") == repr(values)


def test_random_numbers_follow_the_seed() -> None:
    torch.npu.manual_seed(3)
    first = torch.randn(100, device="npu")
    torch.npu.manual_seed(3)
    assert torch.equal(first, torch.randn(100, device="npu"))
    assert not torch.equal(first, torch.randn(100, device="npu"))
    assert torch.rand(100, device="npu").min() >= 0
    assert torch.randint(2, 5, (100,), device="npu").max() == 4


@pytest.mark.parametrize(
    ("dtype", "weight_dtype"),
    [
        (torch.float32, torch.float32),
        (torch.float16, torch.float16),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.bfloat16),
        (torch.bfloat16, torch.float32),
    ],
)
def test_rms_norm_of_a_strided_input_follows_the_formula(
    dtype: torch.dtype, weight_dtype: torch.dtype
) -> None:
    projected, weight = torch.randn(4, 96).to(dtype), torch.randn(64).to(weight_dtype)
    x = projected.npu()[:, :64]
    y, rstd = torch_npu.npu_rms_norm(x, weight.npu(), epsilon=1e-5)
    wide = projected[:, :64].double()
    expected_rstd = (wide.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    # Half a place of the result's dtype, and a few of float32's for the steps inside. A result
    # below the normal numbers is off by half of the smallest one instead, or has become zero.
    limits = torch.finfo(dtype)
    step = limits.eps / 2 + 8 * torch.finfo(torch.float32).eps
    least = limits.smallest_normal * limits.eps / 2
    assert (y.dtype, rstd.dtype) == (dtype, torch.float32)
    assert rstd.shape == (4, 1)
    torch.testing.assert_close(rstd.cpu().double(), expected_rstd, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        y.cpu().double(), wide * expected_rstd * weight.double(), rtol=step, atol=least
    )


def test_refused_operand_raises_the_operators_sentence() -> None:
    with pytest.raises(RuntimeError, match=r"aclnnRmsNorm: gamma's sizes must be the last ones"):
        torch_npu.npu_rms_norm(torch.randn(2, 8).npu(), torch.randn(4).npu())


def test_pinned_memory_is_told_from_other_memory() -> None:
    assert torch.empty(4).pin_memory().is_pinned()
    assert not torch.empty(4).is_pinned()


def test_allocation_beyond_the_device_is_out_of_memory() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, dtype=torch.uint8, device="npu")


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own: an asynchronous error stays until the end."""
    return subprocess.run(
        [sys.executable, "-c", "import torch, torch_npu\nd = torch.ones(4, 8).npu()\n" + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_operator_that_is_not_simulated_raises_its_name() -> None:
    result = run_python("d.flip(0)\ntorch.npu.synchronize()")
    assert result.returncode != 0
    assert "operator ReverseV2 is not simulated" in result.stderr


def test_failed_kernel_raises_at_the_next_synchronisation() -> None:
    program = "y = torch_npu.npu_rms_norm(d, d[0])[0]\nprint('submitted')\ntorch.npu.synchronize()"
    result = run_python(program, ASCEND_SIM_FAULT="launch:aclnnRmsNorm:1")
    assert result.returncode != 0
    assert "submitted" in result.stdout
    assert "507035" in result.stderr


def test_process_with_pending_work_ends_cleanly() -> None:
    program = """
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    y = torch_npu.npu_rms_norm(d, d[0])[0]
for _ in range(50):
    graph.replay()
    z = y + 1
"""
    result = run_python(program)
    assert result.returncode == 0, result.stderr
