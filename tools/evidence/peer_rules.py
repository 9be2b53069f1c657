"""Rules by which other projects' tests accept a result, written anew from their public sources.

Each states where it was read. What a rule does not look at, it lets through; plants no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Pair = tuple[Any, torch.Tensor]
"""What an output is, and what it should be, in the output's dtype."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One call, as far as any of these tests looks at it.

    Attributes:
        pairs: what was returned, then what stands in the arguments that a call may write.
        inputs_changed: whether elements of an argument changed that a call may only read.
        aliased: whether a returned tensor shares storage with an argument.
        behind_changed: whether memory behind the end of an argument changed.
        relaid: whether a returned tensor is not dense, row after row.
    """

    pairs: Sequence[Pair]
    inputs_changed: bool = False
    aliased: bool = False
    behind_changed: bool = False
    relaid: bool = False


Judge = Callable[[Sequence[Seen]], bool]
"""Says of calls on the same data, in order, whether a test accepts them; may raise to refuse."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one project accepts a result.

    Attributes:
        name: as the table shows it.
        source: repository, files and commit that it was read from.
        limits: its tolerances, for people.
        judge: decides.
        data_sets: how many inputs of one shape are tried.
        calls: how often each is called.
        dtypes: those that it has tolerances for; None: all.
    """

    name: str
    source: str
    limits: str
    judge: Judge
    data_sets: int = 1
    calls: int = 1
    dtypes: frozenset[torch.dtype] | None = None

    def accepts(self, calls: Sequence[Seen]) -> bool:
        """Judge calls; whatever a comparison raises is a refusal, as in a test."""
        try:
            return self.judge(calls)
        except Exception:  # noqa: BLE001 - tensors of any form end comparisons in any way
            return False

    def covers(self, calls: Sequence[Seen]) -> bool:
        """Say whether it has tolerances for the outputs' dtypes."""
        return self.dtypes is None or all(e.dtype in self.dtypes for c in calls for _, e in c.pairs)


Limits = Mapping[torch.dtype, tuple[float, float]]
"""Relative and absolute tolerance by dtype."""

_F32, _F16, _BF16 = torch.float32, torch.float16, torch.bfloat16


def _same(rtol: float, atol: float) -> Limits:
    return dict.fromkeys((_F32, _F16, _BF16), (rtol, atol))


def _assert_close(limits: Limits, equal_nan: bool = False) -> Judge:
    """Compare by ``torch.testing.assert_close``: shape, dtype, device, then values."""

    def judge(calls: Sequence[Seen]) -> bool:
        for actual, expected in calls[0].pairs:
            rtol, atol = limits[expected.dtype]
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        return True

    return judge


def _defaults(calls: Sequence[Seen]) -> bool:
    for actual, expected in calls[0].pairs:
        torch.testing.assert_close(actual, expected)
    return True


def _and_schema(judge: Judge) -> Judge:
    """Add what ``torch.library.opcheck`` sees of a schema: writes to inputs, aliases of them."""
    return lambda calls: (
        judge(calls) and not any(call.inputs_changed or call.aliased for call in calls)
    )


def _and_again_exactly(judge: Judge) -> Judge:
    """Add a second call on the same data, whose values must be the first one's."""

    def both(calls: Sequence[Seen]) -> bool:
        for (first, _), (second, _) in zip(calls[0].pairs, calls[1].pairs, strict=True):
            torch.testing.assert_close(second, first, rtol=0.0, atol=0.0)
        return judge(calls)

    return both


def _matched(ratio: float) -> Judge:
    """Accept where so many elements are within 1e-2, absolutely or relatively."""

    def judge(calls: Sequence[Seen]) -> bool:
        for result, expected in calls[0].pairs:
            actual = result
            if isinstance(actual, (tuple, list)):
                (actual,) = actual
            actual = actual.to(expected.device)
            if actual.shape != expected.shape or actual.dtype != expected.dtype:
                return False
            if not bool(actual.isfinite().all()):
                return False
            error = (actual.float() - expected.float()).abs()
            far = (error > 1e-2) & (error / (expected.float().abs() + 1e-8) > 1e-2)
            if error.numel() and 1.0 - int(far.sum()) / error.numel() < ratio:
                return False
        return True

    return judge


def _mostly_close(calls: Sequence[Seen]) -> bool:
    """Call up to 5 % of elements beyond the tolerance a warning; broadcasts, as isclose does."""
    for actual, expected in calls[-1].pairs:
        close = torch.isclose(expected, actual, rtol=1e-2, atol=1e-2)
        if not bool(close.all()) and int((~close).sum()) / expected.numel() > 0.05:
            return False
    return True


def _scaled(by_width: bool) -> Judge:
    """Compare with a relative tolerance by dtype, and 1e-4 times what was summed."""
    relative = {_F32: 1.3e-6, _F16: 1e-3, _BF16: 0.016}

    def judge(calls: Sequence[Seen]) -> bool:
        for actual, expected in calls[0].pairs:
            if actual.dtype != expected.dtype:
                return False
            atol = 1e-4 * (expected.shape[-1] if by_width else 1)
            torch.testing.assert_close(actual, expected, rtol=relative[expected.dtype], atol=atol)
        return True

    return judge


def _hand_picked(calls: Sequence[Seen]) -> bool:
    """Compare shapes, then values by dtype; the tolerance scales with the result."""
    limits = {_F32: (1e-6, 1e-4), _BF16: (2e-2, 2e-1)}
    for actual, expected in calls[0].pairs:
        if actual.shape != expected.shape:
            return False
        rtol, atol = limits[expected.dtype]
        wrong = (expected - actual).abs() > atol + rtol * actual.abs()
        for kind in (torch.isnan, torch.isposinf, torch.isneginf):
            wrong |= kind(expected) ^ kind(actual)
        if bool(wrong.any()):
            return False
    return True


def _allclose(calls: Sequence[Seen]) -> bool:
    """Compare shapes, then by ``torch.allclose``, which wants one dtype."""
    for actual, expected in calls[0].pairs:
        tolerance = 1e-4 if expected.dtype == _F32 else 1e-2
        if actual.shape != expected.shape:
            return False
        if not torch.allclose(expected, actual, atol=tolerance, rtol=tolerance):
            return False
    return True


def _threshold(calls: Sequence[Seen]) -> bool:
    """Compare relative errors with 5e-7, times 2 for each bit that the dtype lacks.

    Buffers have one form there, by their descriptors: another one is refused. Bytes behind a buffer
    are looked at.
    """
    if calls[0].relaid or calls[0].behind_changed:
        return False
    for actual, expected in calls[0].pairs:
        if type(actual) is not torch.Tensor or actual.device != expected.device:
            return False
        if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            return False
        limit = 5e-7 * torch.finfo(expected.dtype).eps / torch.finfo(_F32).eps
        mine, true = actual.float(), expected.float()
        error, size = (mine - true).abs(), true.abs()
        tiny = size <= 1e-5
        good = (mine == true) | (tiny & (error < torch.finfo(_F32).eps))
        smallest = torch.finfo(_F32).tiny
        relative = error / torch.where(size > smallest, size, torch.ones_like(size))
        good |= torch.where(tiny, error, relative) <= limit
        if expected.dtype == _F16:
            good |= (mine.isnan() & true.isnan()) | (mine.isinf() & (mine == true))
        if not bool(good.all()):
            return False
        # Too many zeros where the comparison found nothing wrong: not trusted.
        if mine.numel() >= 10 and int((mine == 0).sum()) > 0.3 * mine.numel():
            return False
    return True


_VLLM_TABLE: Limits = {_F32: (1.3e-6, 1e-5), _F16: (2e-3, 1e-2), _BF16: (1.6e-2, 1e-3)}

RULES: tuple[Rule, ...] = (
    Rule(
        "torch.testing.assert_close, defaults; tritonbench",
        "torch 2.13.0 torch/testing/_comparison.py; meta-pytorch/tritonbench "
        "tritonbench/utils/triton_op.py, parser.py @ db2155c8",
        "bf16 0.016, fp16 1e-3, fp32 1.3e-6; + 1e-5",
        _defaults,
    ),
    Rule(
        "vLLM, layernorm test",
        "vllm-project/vllm tests/kernels/core/test_layernorm.py @ 2e1874a6",
        "1e-2 + 1e-2; opcheck",
        _and_schema(_assert_close(_same(1e-2, 1e-2))),
    ),
    Rule(
        "vLLM, IR table",
        "vllm-project/vllm vllm/ir/tolerances.py @ 0f17ee06, fp16 overridden by later states of "
        "vllm/ir/ops/layernorm.py, tests/kernels/ir/test_layernorm.py @ e3227db8",
        "bf16 0.016 + 1e-3, fp16 2e-3 + 1e-2, fp32 1.3e-6 + 1e-5; opcheck; a second call equals "
        "the first",
        _and_schema(_and_again_exactly(_assert_close(_VLLM_TABLE))),
        calls=2,
    ),
    Rule(
        "FlashInfer; SGLang",
        "flashinfer-ai/flashinfer tests/utils/test_norm.py @ fb28d724; sgl-project/sglang "
        "sgl-kernel/tests/test_norm.py @ 5a7255c6",
        "1e-3 + 1e-3; no bf16",
        _assert_close(_same(1e-3, 1e-3)),
        dtypes=frozenset({_F32, _F16}),
    ),
    Rule(
        "flashinfer-bench",
        "flashinfer-ai/flashinfer-bench flashinfer_bench/bench/{config,utils}.py, "
        "evaluators/default.py @ 40e6ca78",
        "relative 1e-2 or absolute 1e-2, all elements; 3 inputs",
        _matched(1.0),
        data_sets=3,
    ),
    Rule(
        "flashinfer-bench, matched ratio 0.95",
        "as above, bench/eval_config.yaml and evaluators/lowbit.py",
        "the same, 95 % of the elements",
        _matched(0.95),
        data_sets=3,
    ),
    Rule(
        "aiter",
        "ROCm/aiter aiter/test_common.py, op_tests/test_rmsnorm2d.py @ e4048607",
        "1e-2 + 1e-2, 95 % of the elements; last of several calls",
        _mostly_close,
        calls=3,
    ),
    Rule(
        "FlagGems, RMSNorm test",
        "FlagOpen/FlagGems src/flag_gems/testing/__init__.py, tests/test_norm_ops.py @ 532ff438",
        "bf16 0.016, fp16 1e-3, fp32 1.3e-6; + 1e-4",
        _scaled(by_width=False),
    ),
    Rule(
        "FlagGems, scaled by reduction",
        "as above",
        "the same relative ones; + 1e-4 x width",
        _scaled(by_width=True),
    ),
    Rule(
        "Liger",
        "linkedin/Liger-Kernel test/utils.py, test/transformers/test_{,fused_add_}rms_norm.py "
        "@ ead96b61",
        "hand-picked: bf16 2e-2 + 2e-1, fp32 1e-6 + 1e-4; no fp16",
        _hand_picked,
        dtypes=frozenset({_F32, _BF16}),
    ),
    Rule(
        "BackendBench",
        "meta-pytorch/BackendBench BackendBench/eval.py @ 66e0dbc0",
        "1e-2 + 1e-2, whatever is asked for; NaN equal",
        _assert_close(_same(1e-2, 1e-2), equal_nan=True),
    ),
    Rule(
        "KernelBench",
        "ScalingIntelligence/KernelBench src/kernelbench/eval.py, scripts/run_and_check.py "
        "@ 423217d9",
        "bf16 and fp16 1e-2 + 1e-2, fp32 1e-4 + 1e-4; 5 inputs",
        _allclose,
        data_sets=5,
    ),
    Rule(
        "benchdnn",
        "uxlfoundation/oneDNN tests/benchdnn/lnorm/lnorm.cpp, utils/compare.cpp, dnnl_memory.cpp "
        "@ 3f27bec2",
        "relative: bf16 0.033, fp16 4e-3, fp32 5e-7; canary behind buffers",
        _threshold,
    ),
)
