"""ONNX Runtime on models of one node, whose inputs and outputs are bound to torch's memory."""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from peers.peer import Call, Library, Peer, PeerError, reason, standing, version

if TYPE_CHECKING:
    import torch

_OPSET = 23
_IR_VERSION = 11  # the one that came with the opset
_TYPES = {"torch.float16": "FLOAT16", "torch.float32": "FLOAT", "torch.bfloat16": "BFLOAT16"}


@dataclass(frozen=True, slots=True)
class _Node:
    """An ONNX operator; an output without a name is left out."""

    operator: str
    domain: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Runtime:
    """Makes sessions; a session keeps its own threads."""

    runtime: Any
    onnx: Any

    def bound(
        self,
        node: _Node,
        inputs: Mapping[str, torch.Tensor],
        outputs: Mapping[str, torch.Tensor] | None,
    ) -> tuple[Callable[[], None], Callable[[], tuple[torch.Tensor, ...]]]:
        """Return what runs the node, and what returns copies of its outputs.

        Args:
            node: the operator.
            inputs: dense tensors of one dtype, by name.
            outputs: dense tensors to write to, by name; None lets the runtime allocate.
        """
        dtype = next(iter(inputs.values())).dtype
        kind = getattr(self.onnx.TensorProto, _TYPES[str(dtype)])
        session = self._session(node, kind)
        binding = session.io_binding()
        for name, tensor in inputs.items():
            binding.bind_input(name, "cpu", 0, kind, list(tensor.shape), tensor.data_ptr())
        for name in filter(None, node.outputs):
            if outputs is None:
                binding.bind_output(name, "cpu")
            else:
                to = outputs[name]
                binding.bind_output(name, "cpu", 0, kind, list(to.shape), to.data_ptr())

        def results() -> tuple[torch.Tensor, ...]:
            return tuple(_copied(value, dtype) for value in binding.get_outputs())

        return partial(session.run_with_iobinding, binding), results

    def _session(self, node: _Node, kind: int) -> Any:
        import torch

        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what fails is raised as well
        model = self._model(node, kind).SerializeToString()
        try:
            return self.runtime.InferenceSession(model, options, ["CPUExecutionProvider"])
        except Exception as error:  # its classes have no common base but this
            raise PeerError(reason(error)) from error

    def _model(self, node: _Node, kind: int) -> Any:
        helper = self.onnx.helper
        used = [name for name in node.outputs if name]
        made = helper.make_node(
            node.operator, node.inputs, node.outputs, domain=node.domain, **node.attributes
        )
        graph = helper.make_graph(
            [made],
            node.operator,
            [helper.make_tensor_value_info(name, kind, None) for name in node.inputs],
            [helper.make_tensor_value_info(name, kind, None) for name in used],
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _copied(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a copy of the runtime's memory; by way of NumPy there is no bfloat16."""
    import torch

    shape = value.shape()
    memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(value.data_ptr())
    return torch.frombuffer(memory, dtype=dtype).reshape(shape).clone()


def _load() -> Library:
    """Import the runtime and what makes its models."""
    found = version("onnxruntime"), version("onnx")
    runtime = importlib.import_module("onnxruntime")
    return Library(_Runtime(runtime, importlib.import_module("onnx")), found)


def _norm_node(eps: float) -> _Node:
    attributes = {"axis": -1, "epsilon": eps}
    return _Node("RMSNormalization", "", ("input", "weight"), ("output",), attributes)


def _add_norm_node(eps: float) -> _Node:
    # Two of its outputs exist for training only.
    return _Node(
        "SkipSimplifiedLayerNormalization",
        "com.microsoft",
        ("input", "residual", "weight"),
        ("norm", "", "", "sum"),
        {"epsilon": eps},
    )


def _norm(runtime: Any, a: Mapping[str, Any]) -> Call:
    run, results = runtime.bound(_norm_node(a["eps"]), _tensors(a, "input", "weight"), None)
    return Call(run, lambda _value: results())


def _norm_out(runtime: Any, a: Mapping[str, Any]) -> Call:
    node, inputs = _norm_node(a["eps"]), _tensors(a, "input", "weight")
    run, _ = runtime.bound(node, inputs, _tensors(a, "output"))
    return Call(run, standing(a["output"]))


def _add_norm(runtime: Any, a: Mapping[str, Any]) -> Call:
    node, inputs = _add_norm_node(a["eps"]), _tensors(a, "input", "residual", "weight")
    run, results = runtime.bound(node, inputs, None)
    return Call(run, lambda _value: results())


def _add_norm_in_place(runtime: Any, a: Mapping[str, Any]) -> Call:
    # There is no such operator: its outputs are bound to its inputs' memory, which the runtime's
    # documentation does not promise to work, and which gives right results.
    node, inputs = _add_norm_node(a["eps"]), _tensors(a, "input", "residual", "weight")
    run, _ = runtime.bound(node, inputs, {"norm": a["input"], "sum": a["residual"]})
    return Call(run, standing(a["input"], a["residual"]))


def _tensors(a: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: a[name] for name in names}


PEER = Peer(
    "ONNX Runtime",
    _load,
    {
        ("rms_norm", "allocating"): _norm,
        ("rms_norm", "out"): _norm_out,
        ("fused_add_rms_norm", "allocating"): _add_norm,
        ("fused_add_rms_norm", "in-place"): _add_norm_in_place,
    },
)
