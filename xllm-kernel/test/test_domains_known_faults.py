"""What operators of this kind were publicly reported to get wrong, asked of every implementation.

Missing arguments, mixed dtypes, no rows, no columns, very wide rows, wrong types.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import xllm_kernel
from domains.agreement import Judge
from domains.arguments import Made
from domains.maker import Maker
from domains.subjects import subjects
from domains.voices import Subject
from xllm_kernel.clauses import SameDtype
from xllm_kernel.errors import DomainError
from xllm_kernel.ops.rms_norm.domain import XLITE_DOMAIN
from xllm_kernel.registry import KernelRegistry

DTYPES = ("float32", "float16", "bfloat16", "float64")


@pytest.fixture
def every(fresh: KernelRegistry) -> list[Subject]:
    """The processor's implementations, those of them that were built."""
    xllm_kernel.initialize(device="cpu")
    return subjects()[0]


def _verdict(subject: Subject, judge: Judge, *made: Any, **options: Any) -> str | None:
    heard = judge.hear(Maker(subject.domain).make(*made, **options))
    assert not heard.wrong, (subject.name, heard.wrong)
    return heard.clause


def test_none_for_a_tensor_is_refused_by_all_alike(every: list[Subject]) -> None:
    for subject in every:
        judge = Judge(subject)
        for name in subject.domain.tensors:
            assert _verdict(subject, judge, {name: None}) == f"{name}.type"


def test_mixed_dtypes_are_right_or_named(every: list[Subject]) -> None:
    for subject in every:
        judge, names = Judge(subject), subject.domain.tensors
        for dtypes in itertools.product(DTYPES, repeat=len(names)):
            given = dict(zip(names, dtypes, strict=True))
            clause = _verdict(subject, judge, {n: {"dtype": d} for n, d in given.items()})
            fits = given["input"] != "float64" and all(
                given[c.argument] in (given[c.other], c.always)
                for c in subject.domain.clauses
                if isinstance(c, SameDtype)
            )
            assert (clause is None) == fits, (subject.name, given)
            assert fits or str(clause).endswith(".dtype"), (subject.name, given)


def test_no_rows_are_a_result_and_no_columns_are_named(every: list[Subject]) -> None:
    for subject in every:
        judge = Judge(subject)
        for leading in ((0,), (3, 0), (0, 2)):
            for width in (1, 40):
                assert _verdict(subject, judge, leading=leading, width=width) is None
            assert _verdict(subject, judge, leading=leading, width=0) == "input.width"
        assert _verdict(subject, judge, width=0) == "input.width"


@pytest.mark.parametrize("width", [16384, 32768, 65536, 131072])
def test_very_wide_rows_are_right_or_named_with_the_limit(every: list[Subject], width: int) -> None:
    for subject in every:
        arguments = Maker(subject.domain).make(leading=(1,), width=width)
        subject.domain.check(subject.name, **Made(arguments).values)
        with torch.no_grad():
            subject.calls["call"](*Made(arguments).values.values())
    facts = {n: v.facts for n, v in Maker(XLITE_DOMAIN).make(width=width).items() if n != "eps"}
    violation = XLITE_DOMAIN.violation(facts | {"eps": 1e-5})
    assert violation is not None
    assert violation.sentence.endswith(f"a multiple of 64 from 64 to 8192, got {width}")


@pytest.mark.parametrize(
    ("argument", "value"),
    [("input", [1.0]), ("weight", 1.0), ("eps", None), ("eps", "1"), ("eps", 10**400), ("eps", 1j)],
)
def test_a_value_of_another_type_is_refused_by_all(
    every: list[Subject], argument: str, value: Any
) -> None:
    # An operator's schema speaks before we do, and in PyTorch's words.
    errors = (DomainError, RuntimeError, TypeError, OverflowError)
    for subject in every:
        values = Made(Maker(subject.domain).make({argument: value})).values
        for call in subject.calls.values():
            with torch.no_grad(), pytest.raises(errors, match=r"type|float|tensor|number"):
                call(*values.values())
