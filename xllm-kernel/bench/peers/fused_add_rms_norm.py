"""Residual addition and RMSNorm: how each library is called, allocating and in place."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its common name)

from peers.libraries import inductor, onnxruntime, ours, torch_eager, vllm, zentorch
from peers.libraries.onnxruntime import Node
from peers.norm_data import EPS, rows, weight
from peers.operation import Call, Case, Form, Operation, Tensors, returned, standing
from xllm_kernel.numerics.rms_norm_reference import reference, rounded_sum

# Two of its outputs exist for training only.
_NODE = Node(
    "SkipSimplifiedLayerNormalization",
    "com.microsoft",
    ("x", "residual", "w"),
    ("norm", "", "", "sum"),
    {"epsilon": EPS},
)


class _Buffers:
    """Input, residual and weight of a case."""

    def __init__(self, case: Case) -> None:
        self._made = rows(case, 2)
        self._both = self._made.clone()
        self.x, self.residual = self._both
        self.weight = weight(case)
        self._apart = torch.empty_like(self._both)

    def reset(self) -> None:
        self._both.copy_(self._made)

    def expected(self) -> Tensors:
        x, residual = self._made
        norm = reference(rounded_sum(x, residual), self.weight, EPS)
        return norm, x.double() + residual.double()

    def read(self) -> torch.Tensor:
        return self._both

    def written(self) -> torch.Tensor:
        return self._apart


def _composed(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    total = x + residual
    return F.rms_norm(total, weight.shape, weight, EPS), total


def _add(x: torch.Tensor, residual: torch.Tensor) -> None:
    residual.add_(x)


def _norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> None:
    x.copy_(F.rms_norm(residual, weight.shape, weight, EPS))


# Fresh outputs.


def _ours(library: Any, b: _Buffers, _threads: int) -> Call:
    function = library.function("fused_add_rms_norm")
    return Call(partial(function, b.x, b.residual, b.weight, EPS), returned)


def _eager(_library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(_composed, b.x, b.residual, b.weight), returned)


def _compiled(library: Any, b: _Buffers, threads: int) -> Call:
    function = library.compiled(_composed, threads)
    return Call(partial(function, b.x, b.residual, b.weight), returned)


def _onnx(library: Any, b: _Buffers, threads: int) -> Call:
    inputs = {"x": b.x, "residual": b.residual, "w": b.weight}
    run, results = library.bound(_NODE, inputs, None, threads)
    return Call(run, lambda _value: tuple(results()))


# In place.


def _ours_inplace(library: Any, b: _Buffers, _threads: int) -> Call:
    function = library.function("fused_add_rms_norm_inplace")
    return Call(partial(function, b.x, b.residual, b.weight, EPS), standing(b.x, b.residual))


def _eager_inplace(_library: Any, b: _Buffers, _threads: int) -> Call:
    def run() -> None:
        _add(b.x, b.residual)
        _norm(b.x, b.residual, b.weight)

    return Call(run, standing(b.x, b.residual))


def _compiled_inplace(library: Any, b: _Buffers, threads: int) -> Call:
    # As two functions: Inductor 2.13 cannot compile one that writes to both (pytorch#196570). It
    # is faster than one function with fresh outputs, and copies.
    add, norm = library.compiled(_add, threads), library.compiled(_norm, threads)
    x, residual, weight = b.x, b.residual, b.weight

    def run() -> None:
        add(x, residual)
        norm(x, residual, weight)

    return Call(run, standing(x, residual))


def _zentorch_inplace(library: Any, b: _Buffers, _threads: int) -> Call:
    function = library.ops.zentorch_add_rms_norm_
    return Call(partial(function, b.x, b.weight, b.residual, EPS), standing(b.x, b.residual))


def _vllm_inplace(library: Any, b: _Buffers, _threads: int) -> Call:
    function = library.ops.fused_add_rms_norm
    return Call(partial(function, b.x, b.residual, b.weight, EPS), standing(b.x, b.residual))


def _onnx_inplace(library: Any, b: _Buffers, threads: int) -> Call:
    inputs = {"x": b.x, "residual": b.residual, "w": b.weight}
    run, _ = library.bound(_NODE, inputs, {"norm": b.x, "sum": b.residual}, threads)
    return Call(run, standing(b.x, b.residual))


OPERATION = Operation(
    name="fused_add_rms_norm",
    forms=(
        Form(
            name="allocating",
            meaning="each call returns a fresh norm and a fresh sum, and the last one's are freed",
            mutates=False,
            calls={
                ours.NAME: _ours,
                torch_eager.NAME: _eager,
                inductor.NAME: _compiled,
                onnxruntime.NAME: _onnx,
            },
        ),
        Form(
            name="in place",
            meaning="the input becomes the norm, the residual the sum; torch.compile as two "
            "functions, ONNX Runtime with outputs bound to its inputs' memory",
            mutates=True,
            calls={
                ours.NAME: _ours_inplace,
                torch_eager.NAME: _eager_inplace,
                inductor.NAME: _compiled_inplace,
                zentorch.NAME: _zentorch_inplace,
                vllm.NAME: _vllm_inplace,
                onnxruntime.NAME: _onnx_inplace,
            },
        ),
    ),
    buffers=_Buffers,
    note="In place, input and residual are restored before each block, outside of its time. Within "
    "a block each call adds its predecessor's norm: residuals grow by less than 1 a call and stop "
    "where half a step of the dtype exceeds that (bfloat16 at some hundreds, float16 at some "
    "thousands), so that every value stays normal.",
)
