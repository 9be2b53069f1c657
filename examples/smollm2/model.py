"""Run SmolLM2's forward pass in plain torch, fp32, batch 1, with every norm handed in.

Serve nobody: no batching, no paging, no sampling. It is the smallest model code around the
operator under test, so whatever changes its text is the norm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

Norm = Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]
"""`norm(input [tokens, hidden], weight [hidden], eps)` returns a fresh tensor like `input`."""


@dataclass(frozen=True, slots=True)
class Config:
    """Hold the sizes of a Llama-style decoder."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    rope_theta: float
    eps: float

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Config:
        """Read the sizes from GGUF metadata.

        Args:
            metadata: key-value pairs of a file whose architecture is `llama`.

        Returns:
            The sizes.
        """

        def read(name: str) -> Any:
            return metadata[f"llama.{name}"]

        hidden, heads = read("embedding_length"), read("attention.head_count")
        return cls(
            layers=read("block_count"),
            hidden=hidden,
            heads=heads,
            kv_heads=read("attention.head_count_kv"),
            head_size=hidden // heads,
            rope_theta=read("rope.freq_base"),
            eps=read("attention.layer_norm_rms_epsilon"),
        )

    @property
    def norm_names(self) -> tuple[str, ...]:
        """Name the norms of one forward pass in the order in which they are called."""
        names = [
            f"layers.{layer:02d}.{norm}"
            for layer in range(self.layers)
            for norm in ("attn_norm", "ffn_norm")
        ]
        return (*names, "output_norm")


class Cache:
    """Keep the keys and values of one sequence, `[layers, kv_heads, capacity, head_size]`."""

    def __init__(self, config: Config, capacity: int) -> None:
        """Allocate room for `capacity` tokens."""
        shape = (config.layers, config.kv_heads, capacity, config.head_size)
        self.keys, self.values = torch.zeros(shape), torch.zeros(shape)
        self.length = 0


class SmolLM2:
    """Compute logits; hold the weights, and leave the norm and the cache to the caller."""

    def __init__(self, config: Config, tensors: Mapping[str, torch.Tensor]) -> None:
        """Keep references to the weights.

        Args:
            config: the sizes.
            tensors: fp32 weights by GGUF name.
        """
        self.config = config
        self._tensors = tensors
        self._frequencies = config.rope_theta ** -(
            torch.arange(0, config.head_size, 2, dtype=torch.float32) / config.head_size
        )

    @torch.inference_mode()
    def forward(self, tokens: torch.Tensor, cache: Cache, norm: Norm) -> torch.Tensor:
        """Append tokens to a sequence and predict the next one.

        Args:
            tokens: token ids, int64 `[count]`: the whole prompt on an empty cache, then one by one.
            cache: keys and values so far; it grows by `count`.
            norm: the operator under test.

        Returns:
            Logits of the token after the last one, fp32 `[vocabulary]`.

        Raises:
            ValueError: several tokens for a cache that is not empty.
        """
        if tokens.numel() != 1 and cache.length:
            raise ValueError("several tokens at once need an empty cache: there is no mask here")
        embedding = self._tensors["token_embd.weight"]
        hidden = functional.embedding(tokens, embedding)
        rotation = self._rotation(cache.length, tokens.numel())
        for layer in range(self.config.layers):
            hidden = hidden + self._attention(layer, hidden, rotation, cache, norm)
            hidden = hidden + self._feed_forward(layer, hidden, norm)
        cache.length += tokens.numel()
        normed = norm(hidden, self._tensors["output_norm.weight"], self.config.eps)
        return functional.linear(normed[-1], embedding)

    def _rotation(self, start: int, count: int) -> torch.Tensor:
        """Compute rotary phases, complex `[count, head_size / 2]`."""
        angles = torch.outer(torch.arange(start, start + count).float(), self._frequencies)
        return torch.polar(torch.ones_like(angles), angles)

    def _attention(
        self, layer: int, hidden: torch.Tensor, rotation: torch.Tensor, cache: Cache, norm: Norm
    ) -> torch.Tensor:
        count, end = hidden.shape[0], cache.length + hidden.shape[0]
        normed = norm(hidden, self._weight(layer, "attn_norm"), self.config.eps)
        queries = _rotate(self._project(layer, "attn_q", normed), rotation)
        cache.keys[layer, :, cache.length : end] = _rotate(
            self._project(layer, "attn_k", normed), rotation
        )
        cache.values[layer, :, cache.length : end] = self._project(layer, "attn_v", normed)
        mixed = functional.scaled_dot_product_attention(
            queries[None],
            cache.keys[None, layer, :, :end],
            cache.values[None, layer, :, :end],
            is_causal=count > 1,
            enable_gqa=True,
        )
        return functional.linear(
            mixed[0].transpose(0, 1).reshape(count, -1), self._weight(layer, "attn_output")
        )

    def _feed_forward(self, layer: int, hidden: torch.Tensor, norm: Norm) -> torch.Tensor:
        normed = norm(hidden, self._weight(layer, "ffn_norm"), self.config.eps)
        gate = functional.silu(functional.linear(normed, self._weight(layer, "ffn_gate")))
        up = functional.linear(normed, self._weight(layer, "ffn_up"))
        return functional.linear(gate * up, self._weight(layer, "ffn_down"))

    def _project(self, layer: int, name: str, normed: torch.Tensor) -> torch.Tensor:
        """Project to heads, `[heads, count, head_size]`."""
        projected = functional.linear(normed, self._weight(layer, name))
        return projected.view(len(projected), -1, self.config.head_size).transpose(0, 1)

    def _weight(self, layer: int, name: str) -> torch.Tensor:
        return self._tensors[f"blk.{layer}.{name}.weight"]


def _rotate(heads: torch.Tensor, rotation: torch.Tensor) -> torch.Tensor:
    """Rotate neighbouring pairs: GGUF stores q and k rows permuted for the interleaved style."""
    pairs = torch.view_as_complex(heads.reshape(*heads.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation).flatten(-2)
