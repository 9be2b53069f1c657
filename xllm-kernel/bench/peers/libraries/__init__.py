"""The libraries that take part; knows no operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from peers.libraries import inductor, onnxruntime, ours, torch_eager, vllm, zentorch

OURS = ours.NAME

LOADERS: Mapping[str, Callable[[], Any]] = {
    ours.NAME: ours.load,
    torch_eager.NAME: torch_eager.load,
    inductor.NAME: inductor.load,
    zentorch.NAME: zentorch.load,
    vllm.NAME: vllm.load,
    onnxruntime.NAME: onnxruntime.load,
}
"""What loads each library and returns what binders take, in the order of the columns.

A loader raises PeerError, or whatever the library raises, where it cannot take part.
"""
