"""The domain of xlite's norm on both sides of each boundary, and its fake; nothing launches.

Facts and fakes only: what the bridge itself answers is for tests over a device.
"""

from __future__ import annotations

import dataclasses
import math

import pytest

from xllm_kernel.domain import FLOAT32_MAX, TensorFacts
from xllm_kernel.ops.rms_norm.domain import XLITE_DOMAIN

LIMIT = 2**32 - 1
INPUT, WEIGHT = "input", "weight"


def _input(shape=(4, 128), dtype="bfloat16", device="npu:0", **others) -> TensorFacts:
    dense = TensorFacts.contiguous(shape, dtype, device)
    return dataclasses.replace(dense, **others)


def _violation(eps: float = 1e-5, weight: TensorFacts | None = None, **changes) -> str | None:
    given = _input(**changes)
    same = TensorFacts.contiguous(given.shape[-1:], given.dtype, given.device)
    violation = XLITE_DOMAIN.violation({INPUT: given, WEIGHT: weight or same, "eps": eps})
    return None if violation is None else f"{violation.clause}: {violation.sentence}"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(64,), (1, 64), (0, 64), (3, 0, 128), (2, 3, 4, 5, 8192)])
def test_inside(shape: tuple[int, ...], dtype: str) -> None:
    assert _violation(shape=shape, dtype=dtype) is None


@pytest.mark.parametrize("width", [64, 128, 6144, 8128, 8192])
def test_width_in_whole_vectors_inside(width: int) -> None:
    assert _violation(shape=(2, width)) is None


@pytest.mark.parametrize("width", [0, 1, 63, 65, 127, 8191, 8193, 8256, 16384])
def test_width_of_no_whole_vectors_or_too_many_named(width: int) -> None:
    assert _violation(shape=(2, width)) == (
        "input.width: input.shape[-1] must be a multiple of 64 from 64 to 8192, got " + str(width)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float8_e4m3fn"])
def test_dtype_without_a_launcher_named(dtype: str) -> None:
    sentence = f"input.dtype: input.dtype must be one of float16, bfloat16, got {dtype}"
    assert _violation(dtype=dtype) == sentence


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_weight_of_another_dtype_named(dtype: str) -> None:
    weight = TensorFacts.contiguous((128,), dtype, "npu:0")
    sentence = f"weight.dtype: weight.dtype must equal input.dtype (bfloat16), got {dtype}"
    assert _violation(weight=weight) == sentence


@pytest.mark.parametrize(
    ("shape", "clause"),
    [((1, 128), "weight.rank"), ((), "weight.rank"), ((64,), "weight.width")],
)
def test_weight_of_another_shape_named(shape: tuple[int, ...], clause: str) -> None:
    weight = TensorFacts.contiguous(shape, "bfloat16", "npu:0")
    assert str(_violation(weight=weight)).startswith(clause + ": ")


def test_scalar_input_named() -> None:
    weight = TensorFacts.contiguous((64,), "bfloat16", "npu:0")
    scalar = TensorFacts.contiguous((), "bfloat16", "npu:0")
    violation = XLITE_DOMAIN.violation({INPUT: scalar, WEIGHT: weight, "eps": 0.0})
    assert violation is not None
    assert violation.clause == "input.rank"


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "meta"])
def test_input_elsewhere_named(device: str) -> None:
    sentence = f"input.device: input must be on device npu, got {device}"
    assert _violation(device=device) == sentence


@pytest.mark.parametrize("device", ["npu:1", "cpu"])
def test_weight_elsewhere_named(device: str) -> None:
    weight = TensorFacts.contiguous((128,), "bfloat16", device)
    sentence = f"weight.device: weight must be on input's device (npu:0), got {device}"
    assert _violation(weight=weight) == sentence


@pytest.mark.parametrize("name", ["ND", "NCHW", "NCL", "NCDHW", None])
def test_format_stored_by_rows_inside(name: str | None) -> None:
    assert _violation(format=name) is None


@pytest.mark.parametrize("name", ["FRACTAL_NZ", "NC1HWC0", "NHWC", "number 99"])
def test_format_of_the_device_alone_named(name: str) -> None:
    allowed = "ND, NCHW, NCL, NCDHW"
    sentence = f"input.format: input's format must be one of {allowed}, got {name}"
    assert _violation(format=name) == sentence
    weight = dataclasses.replace(TensorFacts.contiguous((128,), "bfloat16", "npu:0"), format=name)
    assert _violation(weight=weight) == sentence.replace("input", "weight")


# ---------------------------------------------------------------- what 32 bits count


def test_elements_up_to_the_limit_inside() -> None:
    rows = LIMIT // 64  # 4294967232 elements
    assert _violation(shape=(rows, 64)) is None
    assert _violation(shape=(rows + 1, 64)) == (
        f"input.elements: input must have at most {LIMIT} elements, got 4294967296"
    )


@pytest.mark.parametrize(
    ("shape", "strides", "reach"),
    [
        ((2, 64), (LIMIT - 64, 1), LIMIT),
        ((2, 64), (LIMIT - 63, 1), LIMIT + 1),
        ((3, 64), (2**31 - 64, 1), 2**32 - 64),
        ((3, 64), (2**31, 1), 2**32 + 64),
        # Two leading dimensions that make one distance of 2**30.
        ((2, 2, 64), (2**31, 2**30, 1), 3 * 2**30 + 64),
        ((2, 3, 64), (3 * 2**30, 2**30, 1), 5 * 2**30 + 64),
        # A dimension of one element has no distance.
        ((1, 2, 64), (2**60, 128, 1), 192),
        ((2, 1, 64), (128, 2**60, 1), 192),
        # Broadcast and overlapping rows are only read.
        ((2**20, 64), (0, 1), 64),
        ((2**20, 64), (1, 1), 2**20 + 63),
        ((1, 64), (2**60, 1), 64),
    ],
)
def test_rows_at_one_distance_reach_as_far_as_they_lie(
    shape: tuple[int, ...], strides: tuple[int, ...], reach: int
) -> None:
    expected = None
    if reach > LIMIT:
        expected = (
            f"input.reach: input's rows must reach over at most {LIMIT} elements of memory, got "
            f"{reach} by strides {list(strides)} for shape {list(shape)}; pass a contiguous copy"
        )
    assert _violation(shape=shape, strides=strides) == expected


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((2, 64), (2**40, 2)),  # a row's elements apart
        ((2, 3, 64), (2**40, 64, 1)),  # two distances
        ((0, 64), (2**60, 1)),
        ((2, 0, 64), (2**60, 2**50, 1)),
    ],
)
def test_rows_that_are_copied_or_absent_reach_nowhere(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    assert _violation(shape=shape, strides=strides) is None


@pytest.mark.parametrize(
    ("shape", "strides", "step"),
    [
        ((4, 64), (64, 1), 64),
        ((4, 64), (576, 1), 576),
        ((4, 64), (0, 1), 0),
        ((64,), (1,), 64),
        ((64,), (2,), None),
        ((1, 1), (5, 7), 1),
        ((2, 3, 64), (192, 64, 1), 64),
        ((2, 3, 64), (64, 128, 1), None),
        ((2, 1, 3, 64), (300, 7, 100, 1), 100),
        ((2, 0, 64), (1, 1, 1), 64),
    ],
)
def test_row_step(shape: tuple[int, ...], strides: tuple[int, ...], step: int | None) -> None:
    assert TensorFacts(shape, strides, "float16", "npu:0").row_step == step


# ---------------------------------------------------------------- eps


@pytest.mark.parametrize("eps", [0.0, 1e-45, 1e-5, 1, FLOAT32_MAX])
def test_eps_of_a_float32_inside(eps: float) -> None:
    assert _violation(eps=eps) is None


@pytest.mark.parametrize("eps", [-1e-45, -1.0, math.nan, math.inf, 3.5e38])
def test_eps_outside_named(eps: float) -> None:
    sentence = "eps: eps must be finite, at least 0 and at most 3.40282e+38, got "
    assert _violation(eps=eps) == sentence + format(eps, "g")


# ---------------------------------------------------------------- the fake

# The adapter over doubles of what a device needs: its fake, schema and registration are real.
ADAPTER = """
import importlib, sys, types, torch
from torch._subclasses.fake_tensor import FakeTensorMode
torch.utils.rename_privateuse1_backend("npu")
sys.modules["torch_npu"] = types.ModuleType("torch_npu")
import xllm_kernel.ops.xlite_support as support
support.load_bridge = lambda who: (("a double",), ("a caveat",))
support.prove = lambda who, dtype, given, wanted, launch: None
library = torch.library.Library("xllm_kernel", "FRAGMENT")
library.define("xlite_rms_norm(Tensor input, Tensor weight, float eps) -> Tensor")
library.define("xlite_rms_norm_probe(Tensor(a!) o, Tensor i, Tensor w, float e) -> ()")
adapter = importlib.import_module("xllm_kernel.ops.rms_norm.xlite")
call = adapter.rms_norm
def new(shape, strides=None, dtype=torch.bfloat16, device="npu:0"):
    dense = torch.empty(shape, dtype=dtype, device=device)
    return dense if strides is None else torch.empty_strided(
        shape, strides, dtype=dtype, device=device)
def refused(clause, *arguments):
    try:
        call(*arguments)
    except RuntimeError as error:
        # An error of C++, as that of a built derivatives.cpp, has its clause in the text alone.
        assert getattr(error, "clause", clause) == clause, error
        assert f"(clause {clause})" in str(error), error
        assert str(error).startswith("rms_norm [npu.xlite.rms_norm]: "), error
    else:
        raise AssertionError(f"{clause} was not refused")
"""

FAKE = """
with FakeTensorMode(), torch.no_grad():
    for shape, strides in (((4, 128), None), ((4, 128), (576, 1)), ((2, 3, 64), (1, 2, 6)),
                           ((0, 64), None), ((64,), None)):
        given = new(shape, strides)
        output = call(given, new(shape[-1:]), 1e-5)
        assert (output.shape, output.dtype, output.device) == (
            given.shape, given.dtype, given.device)
        assert output.is_contiguous()
    refused("input.width", new((4, 100)), new((100,)), 1e-5)
    refused("input.dtype", new((4, 64), dtype=torch.float32), new((64,)), 1e-5)
    refused("weight.device", new((4, 64)), new((64,), device="npu:1"), 1e-5)
    refused("input.device", new((4, 64), device="cpu"), new((64,), device="cpu"), 1e-5)
    refused("input.reach", new((2, 64), (2**32, 1)), new((64,)), 1e-5)
    refused("eps", new((4, 64)), new((64,)), -1.0)
print("as the domain says")
"""

GRADIENT = """
with FakeTensorMode():
    refused("weight.gradient", new((4, 64)), new((64,)).requires_grad_(), 1e-5)
    with torch.no_grad():
        call(new((4, 64)), new((64,)).requires_grad_(), 1e-5)
print("by name")
"""

REGISTERED = """
from xllm_kernel.registry import KernelRegistry
(spec,) = (s for s in KernelRegistry.get().specs("rms_norm") if s.solution == "xlite")
print(spec.name, spec.device, spec.execution_modes, spec.priority, spec.build,
      spec.caveats)
assert spec.input_domain == adapter.XLITE_DOMAIN.text
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (FAKE, "as the domain says"),
        (GRADIENT, "by name"),
        (REGISTERED, "npu.xlite.rms_norm npu ('eager', 'aclgraph') 0 ('a double',) ('a caveat',)"),
    ],
    ids=["fake", "gradient", "registered"],
)
def test_the_adapter_over_doubles(run_python, code: str, said: str) -> None:
    # PyTorch must not load a real torch_npu, which may be installed where no device is.
    done = run_python("-c", ADAPTER + code, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert done.stdout.strip() == said, done.stderr
