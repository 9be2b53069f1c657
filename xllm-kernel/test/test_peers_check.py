"""The comparison times nobody unchecked: wrong and failing libraries are named with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import need
from side_modules import load_bench

need("torch")
torch = pytest.importorskip("torch")

operation = load_bench("peers.operation")
check = load_bench("peers.check")
run = load_bench("peers.run")
ceilings = load_bench("peers.ceilings")
OPERATIONS = load_bench("peers.__main__").OPERATIONS

Call, Case, Form, PeerError = operation.Call, operation.Case, operation.Form, operation.PeerError


@pytest.fixture(autouse=True)
def _same_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


class Doubled:
    """Buffers of an operator that doubles."""

    def __init__(self) -> None:
        self.x = torch.tensor([[1.0, -2.0, 0.0], [0.5, 3.0, 8.0]])
        self.out = torch.empty_like(self.x)

    def reset(self) -> None:
        self.out.fill_(torch.nan)

    def expected(self) -> tuple[torch.Tensor, ...]:
        return (2.0 * self.x.double(),)

    def read(self) -> torch.Tensor:
        return self.x

    def written(self) -> torch.Tensor:
        return self.out


def largest_error(function: Callable[[torch.Tensor, torch.Tensor], object]) -> float:
    b = Doubled()
    call = Call(lambda: function(b.out, b.x), operation.standing(b.out))
    return float(check.check(call, b, b.expected()))


def one_wrong(out: torch.Tensor, x: torch.Tensor, value: float, place: tuple[int, int]) -> None:
    out.copy_(2.0 * x)
    out[place] = value


def test_a_right_result_passes_and_says_how_far_off_it_is() -> None:
    assert largest_error(lambda out, x: out.copy_(2.0 * x)) == 0.0
    step = torch.finfo(torch.float32).eps
    off = largest_error(lambda out, x: one_wrong(out, x, 2.0 * (1 + step), (0, 0)))
    assert off == 1.0


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (lambda out, x: None, "inf"),
        (lambda out, x: out.copy_(2.0001 * x), "steps"),
        (lambda out, x: out[:1].copy_(2.0 * x[:1]), "inf"),
        (lambda out, x: one_wrong(out, x, 1e-30, (0, 2)), "inf"),
        (lambda out, x: one_wrong(out, x, torch.inf, (1, 2)), "inf"),
        (lambda out, x: one_wrong(out, x, torch.nan, (0, 2)), "inf"),
    ],
    ids=["nothing written", "inaccurate", "half written", "not zero", "infinite", "NaN for zero"],
)
def test_a_wrong_result_is_refused(function: Callable[..., object], seen: str) -> None:
    with pytest.raises(PeerError, match=f"wrong: .*{seen}"):
        largest_error(function)


@pytest.mark.parametrize(
    ("results", "seen"),
    [
        (lambda b: (), "must give 1 outputs, gave 0"),
        (lambda b: (2.0 * b.x, b.x), "must give 1 outputs, gave 2"),
        (lambda b: (2.0 * b.x[:1],), r"shape must be \[2, 3\], got \[1, 3\]"),
    ],
)
def test_outputs_of_another_structure_are_refused(
    results: Callable[[Doubled], Any], seen: str
) -> None:
    b = Doubled()
    with pytest.raises(PeerError, match=seen):
        check.check(Call(lambda: results(b), operation.returned), b, b.expected())


def broken() -> object:
    raise ImportError("libwhatever.so: no such file\nand much more")


def absent() -> object:
    raise PeerError("not installed: whatever")


def test_a_library_that_does_not_load_is_named_with_the_reason() -> None:
    loaded, missing = run.load({"good": lambda: 7, "broken": broken, "absent": absent})
    assert loaded == {"good": 7}
    assert missing == {
        "broken": "ImportError: libwhatever.so: no such file",
        "absent": "not installed: whatever",
    }


def form_of_stubs(threads_seen: list[tuple[int, int]]) -> Any:
    def right(_library: object, b: Doubled, threads: int) -> Any:
        threads_seen.append((threads, torch.get_num_threads()))
        return Call(lambda: torch.mul(b.x, 2.0, out=b.out), operation.standing(b.out))

    def wrong(_library: object, b: Doubled, threads: int) -> Any:
        function = b.out.zero_ if threads == 2 else lambda: torch.mul(b.x, 2.0, out=b.out)
        return Call(function, operation.standing(b.out))

    def raising(_library: object, b: Doubled, _threads: int) -> Any:
        return Call(lambda: b.x @ b.x, operation.standing(b.out))

    calls = {"right": right, "wrong on 2": wrong, "raising": raising}
    return Form(name="out", meaning="", mutates=False, calls=calls)


def test_every_library_takes_part_or_is_left_out_with_the_reason() -> None:
    threads_seen: list[tuple[int, int]] = []
    form = form_of_stubs(threads_seen)
    stub = SimpleNamespace(name="double", forms=(form,), buffers=lambda _case: Doubled())
    names = [*form.calls, "formless"]
    rule = load_bench("peers.blocks").Rule(wanted=1, enough=1, budget_s=0.01, window_s=0.001)
    (group,) = run.groups(
        stub, [Case("float32", 2, 3)], dict.fromkeys(names), ceilings.of_torch, rule, 1
    )
    assert threads_seen == [(1, 1), (2, 2)]
    libraries = {key for key, one in group.contenders.items() if not one.ceiling}
    assert libraries == {("right", 1), ("right", 2), ("wrong on 2", 1)}
    assert libraries | set(group.left_out) == {(name, on) for name in names for on in (1, 2)}
    assert group.left_out["wrong on 2", 2].startswith("wrong: ")
    assert group.left_out["raising", 1].startswith("RuntimeError: ")
    assert group.left_out["formless", 2] == "has no such form"
    assert group.bytes_moved == 2 * 6 * 4
    assert all(group.blocks[key] for key in group.contenders)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_torch_passes_the_check_in_every_form(name: str, dtype: str) -> None:
    for form in OPERATIONS[name].forms:
        buffers = OPERATIONS[name].buffers(Case(dtype, 5, 96))
        call = form.calls["torch eager"](None, buffers, 1)
        assert check.check(call, buffers, buffers.expected()) > 0.0


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_call_that_does_nothing_is_refused_after_one_that_was_right(name: str) -> None:
    form = OPERATIONS[name].forms[-1]  # the one that writes to the caller's memory
    buffers = OPERATIONS[name].buffers(Case("bfloat16", 5, 96))
    right = form.calls["torch eager"](None, buffers, 1)
    check.check(right, buffers, buffers.expected())
    with pytest.raises(PeerError, match="wrong"):
        check.check(Call(lambda: None, right.results), buffers, buffers.expected())


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_values_stay_normal_however_often_calls_repeat(name: str, dtype: str) -> None:
    smallest = torch.finfo(getattr(torch, dtype)).smallest_normal
    for form in OPERATIONS[name].forms:
        buffers = OPERATIONS[name].buffers(Case(dtype, 2, 32))
        call = form.calls["torch eager"](None, buffers, 1)
        buffers.reset()
        made = buffers.read().clone()
        # Longer than any block, and until the sum no longer moves.
        for _ in range(20000 if form.mutates else 3):
            results = call.results(call.run())
        for result in (*results, buffers.read()):
            size = result.float().abs()
            assert size.max() < torch.finfo(torch.float16).max
            assert size[size > 0].min() >= smallest
        assert torch.equal(buffers.read(), made) is not form.mutates
        buffers.reset()
        assert torch.equal(buffers.read(), made)
