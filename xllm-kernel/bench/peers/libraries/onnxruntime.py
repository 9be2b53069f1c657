"""ONNX Runtime on models of one node, whose inputs and outputs are bound to torch's memory."""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from peers.libraries.installed import version

NAME = "ONNX Runtime"

_OPSET = 23
_IR_VERSION = 11  # the one that came with the opset
_TYPES = {torch.float16: "FLOAT16", torch.float32: "FLOAT", torch.bfloat16: "BFLOAT16"}


@dataclass(frozen=True, slots=True)
class Node:
    """An ONNX operator.

    Attributes:
        operator: its name.
        domain: "" is ONNX itself.
        inputs: their names.
        outputs: their names; an empty one is left out.
        attributes: of the operator.
    """

    operator: str
    domain: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OnnxRuntime:
    """Makes sessions; a session keeps its own threads."""

    version: str
    runtime: Any
    onnx: Any

    def bound(
        self,
        node: Node,
        inputs: Mapping[str, torch.Tensor],
        outputs: Mapping[str, torch.Tensor] | None,
        threads: int,
    ) -> tuple[Callable[[], None], Callable[[], list[torch.Tensor]]]:
        """Return what runs the node, and what returns copies of its outputs.

        Args:
            node: the operator.
            inputs: dense tensors of one dtype, by name.
            outputs: dense tensors to write to, by name; None lets the runtime allocate.
            threads: of the session.
        """
        dtype = next(iter(inputs.values())).dtype
        kind = getattr(self.onnx.TensorProto, _TYPES[dtype])
        session = self._session(node, kind, threads)
        binding = session.io_binding()
        for name, tensor in inputs.items():
            binding.bind_input(name, "cpu", 0, kind, list(tensor.shape), tensor.data_ptr())
        for name in filter(None, node.outputs):
            if outputs is None:
                binding.bind_output(name, "cpu")
            else:
                to = outputs[name]
                binding.bind_output(name, "cpu", 0, kind, list(to.shape), to.data_ptr())

        def results() -> list[torch.Tensor]:
            return [_copied(value, dtype) for value in binding.get_outputs()]

        return partial(session.run_with_iobinding, binding), results

    def _session(self, node: Node, kind: int, threads: int) -> Any:
        helper = self.onnx.helper
        used = [name for name in node.outputs if name]
        graph = helper.make_graph(
            [
                helper.make_node(
                    node.operator,
                    node.inputs,
                    node.outputs,
                    domain=node.domain,
                    **node.attributes,
                )
            ],
            node.operator,
            [helper.make_tensor_value_info(name, kind, None) for name in node.inputs],
            [helper.make_tensor_value_info(name, kind, None) for name in used],
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what fails is raised as well
        providers = ["CPUExecutionProvider"]
        return self.runtime.InferenceSession(model.SerializeToString(), options, providers)


def _copied(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a copy of the runtime's memory; by way of NumPy there is no bfloat16."""
    shape = value.shape()
    memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(value.data_ptr())
    return torch.frombuffer(memory, dtype=dtype).reshape(shape).clone()


def load() -> OnnxRuntime:
    """Import the runtime and what makes its models."""
    found = version("onnxruntime")
    version("onnx")
    runtime = importlib.import_module("onnxruntime")
    return OnnxRuntime(found, runtime, importlib.import_module("onnx"))
