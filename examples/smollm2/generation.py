"""Generate greedily, and look at the norms of a forward pass while doing so."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from capture import NormCall, Recorder
from model import Cache, Norm, SmolLM2
from torch.profiler import ProfilerActivity, profile


@dataclass(frozen=True, slots=True)
class Generated:
    """Hold a greedy continuation.

    Attributes:
        tokens: the ids that were chosen.
        smallest_margin: least distance between the best and the second-best logit: how far the
            arithmetic may drift before the text changes.
    """

    tokens: tuple[int, ...]
    smallest_margin: float


def generate(model: SmolLM2, prompt: list[int], count: int, norm: Norm) -> Generated:
    """Append the likeliest token, again and again; an end-of-text token does not stop it.

    Args:
        model: the model.
        prompt: at least one token id.
        count: how many tokens to append.
        norm: the norm to run the model with.

    Returns:
        The continuation.
    """
    cache = Cache(model.config, len(prompt) + count)
    step = torch.tensor(prompt)
    tokens: list[int] = []
    margins: list[float] = []
    while len(tokens) < count:
        best = model.forward(step, cache, norm).topk(2)
        margins.append(float(best.values[0] - best.values[1]))
        step = best.indices[:1]
        tokens.append(int(step))
    return Generated(tuple(tokens), min(margins))


def record_norm_calls(model: SmolLM2, prompt: list[int], norm: Norm) -> list[NormCall]:
    """Record all norm calls of a prefill and of the first decode step after it."""
    recorder = Recorder(norm, model.config.norm_names)
    cache = Cache(model.config, len(prompt) + 1)
    recorder.begin("prefill")
    logits = model.forward(torch.tensor(prompt), cache, recorder)
    recorder.begin("decode")
    model.forward(logits.argmax(keepdim=True), cache, recorder)
    return recorder.calls


def count_norm_operators(model: SmolLM2, prompt: list[int], norm: Norm) -> dict[str, int]:
    """Count the operators of one forward pass that are norms, as torch's profiler sees them.

    Returns:
        Calls by qualified operator name, e.g. `{"xllm_kernel::simd_rms_norm": 61}`.
    """
    cache = Cache(model.config, len(prompt))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model.forward(torch.tensor(prompt), cache, norm)
    return {e.key: e.count for e in profiler.key_averages() if "rms_norm" in e.key}
