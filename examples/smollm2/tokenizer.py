"""Build SmolLM2's tokenizer from the metadata of its GGUF file.

Convert nothing through a model library: a general GGUF conversion overlooks that this vocabulary
was trained with every digit on its own (`tokenizer.ggml.pre = smollm`), and gives other tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_PRE_TOKENIZER = "smollm"
_CONTROL = 3  # tokenizer.ggml.token_type of a token that text never contains


def build_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """Build the byte-level BPE tokenizer that the metadata describes.

    Args:
        metadata: GGUF key-value pairs, arrays as lists.

    Returns:
        A tokenizer that adds no token of its own when it encodes.

    Raises:
        ValueError: the file asks for another kind of tokenizer than this one.
    """
    kind = (metadata["tokenizer.ggml.model"], metadata["tokenizer.ggml.pre"])
    if kind != ("gpt2", _PRE_TOKENIZER):
        raise ValueError(f"tokenizer must be ('gpt2', '{_PRE_TOKENIZER}'), got {kind}")
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = metadata["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(t, special=True)
            for t, kind in zip(tokens, types, strict=True)
            if kind == _CONTROL
        ]
    )
    return tokenizer
