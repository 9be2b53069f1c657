"""Executable domains: each kind of clause on both sides of its boundary."""

from __future__ import annotations

import dataclasses
import math
import pickle
import sys

import pytest
import torch

from xllm_kernel.clauses import (
    Apart,
    DeviceIs,
    DtypeIn,
    ElementsAtMost,
    Extent,
    ExtentMultiple,
    FloatIn,
    FormatIn,
    Rank,
    RowsApart,
    RowsReach,
    SameDevice,
    SameDtype,
    SameExtent,
    SameShape,
    UnitStride,
)
from xllm_kernel.domain import FLOAT32_MAX, Domain, TensorFacts
from xllm_kernel.errors import DomainError


def _located(first: int, rows: int = 2, where: int = 0) -> TensorFacts:
    """Rows of four float32 values from an address on."""
    dense = TensorFacts.contiguous((rows, 4), "float32", "cpu")
    return dataclasses.replace(dense, memory=(where, first), itemsize=4)


def _facts(shape=(2, 4), dtype="float32", device="cpu", strides=None) -> TensorFacts:
    dense = TensorFacts.contiguous(shape, dtype, device)
    return dense if strides is None else TensorFacts(shape, strides, dtype, device)


@pytest.mark.parametrize(
    ("clause", "inside", "outside", "sentence"),
    [
        (Rank("x", 1), {"x": _facts((4,))}, {"x": _facts(())}, "at least 1 dimension, got 0"),
        (
            Rank("x", 2, exact=True),
            {"x": _facts((4, 4))},
            {"x": _facts((4, 4, 4))},
            "exactly 2 dimensions, got 3",
        ),
        (
            DtypeIn("x", ("float32", "float16")),
            {"x": _facts(dtype="float16")},
            {"x": _facts(dtype="int8")},
            "x.dtype must be one of float32, float16, got int8",
        ),
        (
            SameDtype("x", "y"),
            {"x": _facts(), "y": _facts()},
            {"x": _facts(), "y": _facts(dtype="float16")},
            "x.dtype must equal y.dtype (float16), got float32",
        ),
        (
            Extent("x", -1, "width", 1),
            {"x": _facts((0, 1))},
            {"x": _facts((3, 0))},
            "x.shape[-1] must be at least 1, got 0",
        ),
        (
            SameExtent("x", 0, "y", -1, "width"),
            {"x": _facts((4,)), "y": _facts((9, 4))},
            {"x": _facts((5,)), "y": _facts((9, 4))},
            "x.shape[0] must equal y.shape[-1] (4), got 5",
        ),
        (
            DeviceIs("x", "npu"),
            {"x": _facts(device="npu:1")},
            {"x": _facts(device="cpu")},
            "x must be on device npu, got cpu",
        ),
        (
            SameDevice("x", "y"),
            {"x": _facts(device="npu:0"), "y": _facts(device="npu:0")},
            {"x": _facts(device="npu:0"), "y": _facts(device="npu:1")},
            "x must be on y's device (npu:1), got npu:0",
        ),
        (
            UnitStride("x"),
            {"x": _facts((2, 4), strides=(0, 1))},
            {"x": _facts((2, 4), strides=(1, 2))},
            "x.stride(-1) must be 1, got 2; pass a contiguous copy",
        ),
        (
            UnitStride("x"),
            {"x": _facts((2, 1), strides=(1, 7))},
            {"x": _facts((2, 2), strides=(2, 0))},
            "x.stride(-1) must be 1, got 0",
        ),
        (
            SameShape("x", "y"),
            {"x": _facts((0, 4)), "y": _facts((0, 4))},
            {"x": _facts((2, 4)), "y": _facts((1, 2, 4))},
            "x.shape must equal y.shape ([1, 2, 4]), got [2, 4]",
        ),
        (
            RowsApart("x"),
            {"x": _facts((3, 2, 4), strides=(4, 12, 1))},
            {"x": _facts((3, 2, 4), strides=(4, 11, 1))},
            "x's rows must lie apart in memory, got strides [4, 11, 1] for shape [3, 2, 4]",
        ),
        (
            RowsApart("x"),
            {"x": _facts((1, 4), strides=(0, 1))},
            {"x": _facts((2, 4), strides=(0, 1))},
            "got strides [0, 1]",
        ),
        (
            RowsApart("x"),
            {"x": _facts((0, 2, 4), strides=(0, 0, 1))},
            {"x": _facts((2, 4), strides=(3, 1))},
            "got strides [3, 1]",
        ),
        (
            Apart("x", "y"),
            {"x": _located(1000), "y": _located(1032)},
            {"x": _located(1000), "y": _located(1028)},
            "x must lie apart from y in memory, got 4 bytes that both span",
        ),
        (
            Apart("x", "y"),
            {"x": _located(1000, where=7), "y": _located(1000, where=8)},
            {"x": _located(1000, where=7), "y": _located(996, where=7)},
            "got 28 bytes",
        ),
        (
            Apart("x", "y"),
            {"x": _located(1000, rows=0), "y": _located(1000)},
            {"x": _located(1000), "y": _located(1000)},
            "got 32 bytes",
        ),
        *(
            (
                ExtentMultiple("x", 1, "width", 8, 24),
                {"x": _facts((9, good))},
                {"x": _facts((9, bad))},
                f"a multiple of 8 from 8 to 24, got {bad}",
            )
            for good, bad in ((8, 0), (16, 12), (24, 32), (24, 25))
        ),
        (
            ElementsAtMost("x", 12),
            {"x": _facts((3, 4))},
            {"x": _facts((13,))},
            "x must have at most 12 elements, got 13",
        ),
        (
            RowsReach("x", 44),
            {"x": _facts((2, 3, 4), strides=(24, 8, 1))},
            {"x": _facts((2, 3, 5), strides=(24, 8, 1))},
            "got 45 by strides [24, 8, 1] for shape [2, 3, 5]; pass a contiguous copy",
        ),
        (
            RowsReach("x", 8),
            {"x": _facts((0, 9))},
            {"x": _facts((1, 9), strides=(99, 1))},
            "got 9 by",
        ),
        (
            RowsReach("x", 8),  # what has no one step is copied first
            {"x": _facts((2, 2, 4), strides=(99, 8, 1))},
            {"x": _facts((1, 2, 4), strides=(99, 8, 1))},
            "got 12 by",
        ),
        (
            FormatIn("x", ("ND", "NZ")),
            {"x": dataclasses.replace(_facts(), format="NZ")},
            {"x": dataclasses.replace(_facts(), format="NC1HWC0")},
            "x's format must be one of ND, NZ, got NC1HWC0",
        ),
        (
            FormatIn("x", ("ND",)),
            {"x": _facts()},
            {"x": dataclasses.replace(_facts(), format="A")},
            "got A",
        ),
        *(
            (
                SameDtype("x", "y", "float32"),
                {"x": _facts(dtype=good), "y": _facts(dtype="float16")},
                {"x": _facts(dtype=bad), "y": _facts(dtype="float16")},
                f"x.dtype must be float32 or equal y.dtype (float16), got {bad}",
            )
            for good, bad in (("float32", "bfloat16"), ("float16", "int8"))
        ),
        (
            SameDevice("x", "y"),
            {"x": _facts(), "y": _facts()},
            {"x": _facts(device="npu:1"), "y": _facts(device="npu:0")},
            "x must be on y's device (npu:0), got npu:1",
        ),
        (
            UnitStride("x"),
            {"x": _facts((2, 0), strides=(1, 9))},
            {"x": _facts((1, 2), strides=(1, -1))},
            "got -1",
        ),
        (FloatIn("e", 0.5, 1.0), {"e": 0.5}, {"e": 0.4}, "at least 0.5 and at most 1, got 0.4"),
        (FloatIn("e", 0.0, 1.0), {"e": 0.0}, {"e": -1e-300}, "at most 1, got -1e-300"),
        (FloatIn("e", 0.0, 1.0), {"e": 1.0}, {"e": math.nextafter(1.0, 2.0)}, "e must be finite"),
        (FloatIn("e", 0.0, FLOAT32_MAX), {"e": FLOAT32_MAX}, {"e": math.inf}, "got inf"),
        (FloatIn("e", 0.0, FLOAT32_MAX), {"e": 0}, {"e": math.nan}, "got nan"),
    ],
)
def test_clause_holds_inside_and_tells_what_it_saw_outside(
    clause, inside, outside, sentence
) -> None:
    assert clause.violation(inside) is None
    assert sentence in clause.violation(outside)
    assert clause.text.split(" must ")[0] in clause.violation(outside)
    assert clause.name


def test_clauses_are_named_by_what_they_are_about() -> None:
    named = {
        "x.rank": Rank("x", 1),
        "x.dtype": DtypeIn("x", ("float32",)),
        "y.dtype": SameDtype("y", "x"),
        "x.width": Extent("x", -1, "width", 1),
        "x.columns": ExtentMultiple("x", -1, "columns", 8, 16),
        "x.elements": ElementsAtMost("x", 9),
        "x.reach": RowsReach("x", 9),
        "x.format": FormatIn("x", ("ND",)),
        "y.width": SameExtent("y", 0, "x", -1, "width"),
        "x.device": DeviceIs("x", "cpu"),
        "y.device": SameDevice("y", "x"),
        "x.stride": UnitStride("x"),
        "y.shape": SameShape("y", "x"),
        "x.rows": RowsApart("x"),
        "y.apart_from_x": Apart("y", "x"),
        "e": FloatIn("e", 0.0, 1.0),
    }
    assert [clause.name for clause in named.values()] == list(named)
    assert [name for name, clause in named.items() if clause.needs_memory] == ["y.apart_from_x"]


DOMAIN = Domain(
    "scale", ("x",), ("e",), (Rank("x", 1), Extent("x", -1, "width", 1), FloatIn("e", 0.0, 1.0))
)


def test_domain_reports_the_first_violated_clause() -> None:
    assert DOMAIN.violation({"x": _facts((4,)), "e": 0.5}) is None
    assert DOMAIN.violation({"x": _facts(()), "e": 2.0}).clause == "x.rank"
    assert DOMAIN.violation({"x": _facts((0,)), "e": 2.0}).clause == "x.width"
    assert DOMAIN.violation({"x": _facts((4,)), "e": 2.0}).clause == "e"


def test_domain_check_raises_who_what_and_clause() -> None:
    DOMAIN.check("cpu.a.scale", x=torch.ones(3), e=1)
    with pytest.raises(DomainError) as caught:
        DOMAIN.check("cpu.a.scale", x=torch.ones(3, 0), e=1)
    assert str(caught.value) == (
        "scale [cpu.a.scale]: x.shape[-1] must be at least 1, got 0 (clause x.width)"
    )
    assert caught.value.clause == "x.width"
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "clause", "seen"),
    [
        ({"x": [1.0], "e": 0.5}, "x.type", "x must be a tensor, got list"),
        ({"x": None, "e": 0.5}, "x.type", "got NoneType"),
        ({"x": torch.ones(2), "e": "1"}, "e.type", "e must be a number, got str"),
        ({"x": torch.ones(2), "e": None}, "e.type", "got NoneType"),
        ({"x": torch.ones(2), "e": True}, "e.type", "got bool"),
        ({"x": torch.ones(2), "e": 10**400}, "e.type", "e must fit a float"),
    ],
)
def test_domain_check_of_a_wrong_type_names_it(arguments, clause, seen) -> None:
    with pytest.raises(DomainError, match=seen) as caught:
        DOMAIN.check("cpu.a.scale", **arguments)
    assert caught.value.clause == clause


def test_domain_error_survives_pickling() -> None:
    error = DomainError("scale [cpu.a.scale]: no (clause x.rank)", clause="x.rank")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.clause) == (str(error), "x.rank")


def test_domain_text_lists_every_clause() -> None:
    assert DOMAIN.text == (
        "x must have at least 1 dimension; x.shape[-1] must be at least 1; "
        "e must be finite, at least 0 and at most 1"
    )


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(3, 4),
        torch.empty(0, 4),
        torch.empty(4, 3).t(),
        torch.empty(17, 576, dtype=torch.bfloat16)[1:, 8:520],
        torch.empty(5, device="meta").expand(3, 5),
        torch.empty(()),
    ],
)
def test_tensor_facts_describe_the_tensor(tensor: torch.Tensor) -> None:
    facts = TensorFacts.of(tensor, located=True)
    assert facts.shape == tuple(tensor.shape)
    assert facts.strides == tensor.stride()
    assert f"torch.{facts.dtype}" == str(tensor.dtype)
    assert (facts.device, facts.offset) == (str(tensor.device), tensor.storage_offset())


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0, 4), (0,)])
def test_tensor_facts_contiguous_has_torchs_strides(shape: tuple[int, ...]) -> None:
    assert TensorFacts.contiguous(shape, "float32", "cpu") == TensorFacts.of(torch.empty(shape))


def test_apart_without_a_place_in_memory_says_nothing() -> None:
    assert Apart("x", "y").violation({"x": _facts(), "y": _facts()}) is None


def test_tensor_facts_locate_real_fake_and_meta_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    whole = torch.empty(4, 6)
    part = whole[1:, 2:]
    facts = TensorFacts.of(part, located=True)
    assert facts.memory == (0, part.data_ptr())
    assert facts.span == (part.data_ptr(), whole.data_ptr() + 4 * 6 * 4)
    assert TensorFacts.of(part).memory is None
    with FakeTensorMode() as mode:
        alive = [mode.from_tensor(t) for t in (whole, part)]  # or their storage would be made anew
        fakes = [TensorFacts.of(fake, located=True) for fake in alive]
    assert fakes[0].memory is not None
    assert fakes[1].memory == (fakes[0].memory[0], part.storage_offset() * 4)
    meta = torch.empty(2, 3, device="meta")
    assert TensorFacts.of(meta, located=True).span[1] == 24


@pytest.mark.parametrize(
    ("shape", "strides", "step"),
    [
        ((5,), (1,), 5),
        ((3, 4), (4, 1), 4),
        ((3, 4), (9, 1), 9),
        ((3, 4), (0, 1), 0),
        ((1, 4), (77, 1), 4),
        ((0, 4), (77, 1), 4),
        ((3, 4), (12, 2), None),
        ((3, 1), (2, 7), 2),
        ((2, 3, 4), (24, 8, 1), 8),
        ((2, 3, 4), (25, 8, 1), None),
        ((2, 1, 3, 4), (24, 99, 8, 1), 8),
        ((2, 2, 3, 4), (48, 24, 8, 1), 8),
        ((2, 2, 3, 4), (24, 24, 8, 1), None),
        ((2, 1, 4), (6, 99, 1), 6),
    ],
)
def test_row_step_is_the_one_distance_between_rows(
    shape: tuple[int, ...], strides: tuple[int, ...], step: int | None
) -> None:
    assert _facts(shape, strides=strides).row_step == step


@pytest.mark.parametrize(
    ("shape", "strides", "bytes_"),
    [
        ((2, 4), (4, 1), 32),
        ((2, 4), (9, 1), 52),
        ((3, 2), (0, 1), 8),
        ((), (), 4),
        ((2, 0), (1, 1), 0),
    ],
)
def test_span_is_from_the_first_byte_to_past_the_last(
    shape: tuple[int, ...], strides: tuple[int, ...], bytes_: int
) -> None:
    placed = dataclasses.replace(_facts(shape, strides=strides), memory=(0, 1000), itemsize=4)
    assert placed.span == ((1000, 1000 + bytes_) if bytes_ else (0, 0))
    assert _facts(shape, strides=strides).span == (0, 0)


def test_largest_float32_is_torchs() -> None:
    assert torch.finfo(torch.float32).max == FLOAT32_MAX


def test_number_as_large_as_a_float_can_hold_is_one() -> None:
    largest = int(sys.float_info.max)
    any_number = Domain("scale", (), ("e",), ())
    for value in (largest, -largest, 0):
        any_number.check("cpu.a.scale", e=value)
    for value in (largest + 2**970, -largest - 2**970):
        with pytest.raises(DomainError, match="must fit a float"):
            any_number.check("cpu.a.scale", e=value)
