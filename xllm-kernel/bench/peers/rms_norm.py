"""RMSNorm of rows: how each library is called, allocating and into the caller's buffer."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its common name)

from peers.libraries import inductor, onnxruntime, ours, torch_eager, vllm, zentorch
from peers.libraries.onnxruntime import Node
from peers.norm_data import EPS, rows, weight
from peers.operation import Call, Case, Form, Operation, Tensors, returned, standing
from xllm_kernel.numerics.rms_norm_reference import reference

_NODE = Node("RMSNormalization", "", ("x", "w"), ("y",), {"axis": -1, "epsilon": EPS})


class _Buffers:
    """Input, weight and output of a case."""

    def __init__(self, case: Case) -> None:
        self.x: torch.Tensor = rows(case, 1)[0]
        self.weight = weight(case)
        self.out = torch.empty_like(self.x)

    def reset(self) -> None:
        self.out.fill_(torch.nan)

    def expected(self) -> Tensors:
        return (reference(self.x, self.weight, EPS),)

    def read(self) -> torch.Tensor:
        return self.x

    def written(self) -> torch.Tensor:
        return self.out


def _composed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, weight.shape, weight, EPS)


def _composed_out(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    out.copy_(F.rms_norm(x, weight.shape, weight, EPS))


# Fresh output.


def _ours(library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(library.function("rms_norm"), b.x, b.weight, EPS), returned)


def _eager(_library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(F.rms_norm, b.x, b.weight.shape, b.weight, EPS), returned)


def _compiled(library: Any, b: _Buffers, threads: int) -> Call:
    return Call(partial(library.compiled(_composed, threads), b.x, b.weight), returned)


def _zentorch(library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(library.ops.zentorch_rms_norm, b.x, b.weight, EPS), returned)


def _vllm(library: Any, b: _Buffers, _threads: int) -> Call:
    norm, x, weight = library.ops.rms_norm, b.x, b.weight

    def run() -> torch.Tensor:
        out = torch.empty_like(x)
        norm(out, x, weight, EPS)
        return out

    return Call(run, returned)


def _onnx(library: Any, b: _Buffers, threads: int) -> Call:
    run, results = library.bound(_NODE, {"x": b.x, "w": b.weight}, None, threads)
    return Call(run, lambda _value: tuple(results()))


# Into the caller's buffer.


def _ours_out(library: Any, b: _Buffers, _threads: int) -> Call:
    function = library.function("rms_norm_out")
    return Call(partial(function, b.out, b.x, b.weight, EPS), standing(b.out))


def _eager_out(_library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(_composed_out, b.out, b.x, b.weight), standing(b.out))


def _compiled_out(library: Any, b: _Buffers, threads: int) -> Call:
    function = library.compiled(_composed_out, threads)
    return Call(partial(function, b.out, b.x, b.weight), standing(b.out))


def _vllm_out(library: Any, b: _Buffers, _threads: int) -> Call:
    return Call(partial(library.ops.rms_norm, b.out, b.x, b.weight, EPS), standing(b.out))


def _onnx_out(library: Any, b: _Buffers, threads: int) -> Call:
    run, _ = library.bound(_NODE, {"x": b.x, "w": b.weight}, {"y": b.out}, threads)
    return Call(run, standing(b.out))


OPERATION = Operation(
    name="rms_norm",
    forms=(
        Form(
            name="allocating",
            meaning="each call returns a fresh output, and the last one's is freed",
            mutates=False,
            calls={
                ours.NAME: _ours,
                torch_eager.NAME: _eager,
                inductor.NAME: _compiled,
                zentorch.NAME: _zentorch,
                vllm.NAME: _vllm,
                onnxruntime.NAME: _onnx,
            },
        ),
        Form(
            name="out",
            meaning="each call writes to one output of the caller's; torch by a copy",
            mutates=False,
            calls={
                ours.NAME: _ours_out,
                torch_eager.NAME: _eager_out,
                inductor.NAME: _compiled_out,
                vllm.NAME: _vllm_out,
                onnxruntime.NAME: _onnx_out,
            },
        ),
    ),
    buffers=_Buffers,
    note="Inputs are never written to: nothing needs a reset.",
)
