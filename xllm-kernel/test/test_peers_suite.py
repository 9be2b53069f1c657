"""Each operator of the comparison in each form: its cases, buffers, references, torch's calls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import PACKAGE_ROOT, need
from side_modules import load_bench

from xllm_kernel.errors import DependencyAbsentError
from xllm_kernel.numerics.case_run import CaseEndedError

need("torch")
torch = pytest.importorskip("torch")

operations = load_bench("peers.operations").operations()
operation = load_bench("peers.operation")
peer = load_bench("peers.peer")
suites = load_bench("peers.suite")

PEERS = list(peer.discover().values())
FORMS = [(name, form.name) for name, found in operations.items() for form in found.forms]
EAGER = "torch eager"


def suite(name: str, form: str, dtype: str = "bfloat16", *, peers: list | None = None) -> Any:
    sizes = {form: [operation.Dimensions(dtype, 5, 96)]}
    return suites.PeerSuite(operations[name], peers or PEERS, sizes)


def prepared(name: str, form: str, dtype: str = "bfloat16", implementation: str = EAGER) -> Any:
    made = suite(name, form, dtype)
    plan = made.prepare("cpu", "eager", implementation)
    (case,) = made.cases(None)
    return case.prepare(plan)


def test_every_file_of_the_folder_is_a_library_ours_first() -> None:
    stems = {path.stem for path in (PACKAGE_ROOT / "bench/peers/libraries").glob("*.py")}
    found = peer.discover()
    assert set(found) == stems - {"__init__"}
    assert next(iter(found)) == "ours"
    assert len({one.name for one in found.values()}) == len(found)
    assert all(one.calls for one in found.values())  # a file with an error has none


def test_a_file_without_a_peer_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    (found,) = peer.discover(tmp_path).values()
    with pytest.raises(peer.PeerError, match=r"empty\.py must define PEER"):
        found.load()


def test_every_call_is_of_an_operator_and_a_form_that_exist() -> None:
    assert {key for one in PEERS for key in one.calls} == set(FORMS)


def test_operators_are_found_by_their_files() -> None:
    assert list(operations) == ["fused_add_rms_norm", "rms_norm"]


def test_cases_say_form_dtype_and_shape() -> None:
    (case,) = suite("rms_norm", "out").cases(None)
    assert case.case_id == "out/bfloat16/5x96"
    assert case.parameters == {"form": "out", "dtype": "bfloat16", "shape": [5, 96]}


def test_a_library_without_the_form_is_not_applicable() -> None:
    formless = peer.Peer("formless", lambda: peer.Library(None, ("1.0",)), {})
    made = suite("rms_norm", "out", peers=[formless])
    (case,) = made.cases(None)
    assert case.unsupported_reason(made.prepare("cpu", "eager", "formless")) == "has no such form"


def test_a_library_that_refuses_a_case_makes_it_not_applicable() -> None:
    def refuse(_api: object, _arguments: object) -> None:
        raise peer.PeerError("only float64")

    picky = peer.Peer("picky", lambda: peer.Library(None, ("1.0",)), {("rms_norm", "out"): refuse})
    made = suite("rms_norm", "out", peers=[picky])
    (case,) = made.cases(None)
    plan = made.prepare("cpu", "eager", "picky")
    assert case.unsupported_reason(plan) is None
    with pytest.raises(CaseEndedError, match="only float64") as caught:
        case.prepare(plan)
    assert caught.value.status == "not_applicable"


def broken() -> object:
    raise ImportError("libwhatever.so: no such file\nand much more")


def test_a_library_that_does_not_load_says_why_in_one_line() -> None:
    made = suite("rms_norm", "out", peers=[peer.Peer("broken", broken, {})])
    with pytest.raises(DependencyAbsentError) as caught:
        made.prepare("cpu", "eager", "broken")
    assert str(caught.value) == "ImportError: libwhatever.so: no such file"


def test_a_library_that_is_not_installed_says_so() -> None:
    with pytest.raises(peer.PeerError, match="not installed: no-such-thing"):
        peer.version("no-such-thing")


@pytest.mark.parametrize(("name", "form"), FORMS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_torch_passes_in_every_form_on_other_data_too(name: str, form: str, dtype: str) -> None:
    made = prepared(name, form, dtype)
    for number in (0, 1, 2):
        made.refresh(number)
        if made.reset is not None:
            made.reset.function()
        verdict = made.validate(made.function)
        assert verdict["status"] == "passed"
        assert verdict["max_error_steps"] > 0.0


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_call_that_does_nothing_fails_after_one_that_was_right(name: str, form: str) -> None:
    made = prepared(name, form)
    value = made.function()
    if made.reset is None:
        made.refresh(1)  # what was returned is of the data before
    else:
        made.reset.function()
    assert made.validate(lambda: value)["status"] == "failed"


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_reset_puts_back_whatever_a_form_writes_to(name: str, form: str) -> None:
    made = prepared(name, form)
    tensors = {key: a for key, a in made.arguments.items() if isinstance(a, torch.Tensor)}
    before = {key: tensor.clone() for key, tensor in tensors.items()}
    made.function()
    written = [key for key, tensor in tensors.items() if not tensor.equal(before[key])]
    assert bool(written) is (made.reset is not None)
    if made.reset is not None:
        made.reset.function()
        read = [key for key in written if key != "output"]
        assert all(tensors[key].equal(before[key]) for key in read)
        assert made.reset.every_call is bool(read)
        assert "output" not in tensors or tensors["output"].isnan().all()


def test_only_the_form_with_an_output_has_memory_for_one() -> None:
    assert set(prepared("rms_norm", "allocating").arguments) == {"input", "weight", "eps"}
    assert set(prepared("rms_norm", "out").arguments) == {"input", "weight", "eps", "output"}


def buffers(name: str, form: str, **values: list[float]) -> Any:
    """Return buffers of one row in which hand-made values stand."""
    found = operations[name]
    width = len(next(iter(values.values())))
    made = found.buffers(found.form(form), operation.Dimensions("bfloat16", 1, width))
    for key, value in values.items():
        target = made.arguments["weight"] if key == "weight" else getattr(made, f"_{key}").block
        target.copy_(torch.tensor(value))
    return made


def test_the_norm_is_that_of_the_formula() -> None:
    made = buffers("rms_norm", "out", input=[3.0, -4.0], weight=[0.5, 2.0])
    (norm,) = made.expected()
    root = math.sqrt(12.5 + 1e-5)
    assert norm[0].tolist() == pytest.approx([1.5 / root, -8.0 / root], rel=1e-14)


def test_the_sum_is_exact_and_the_norm_is_that_of_the_rounded_sum() -> None:
    # Between 256 and 512 bfloat16 has even numbers only: 257.0078125 is rounded to 258.
    values = {"input": [256.0, 3.0], "residual": [1.0078125, 1.0], "weight": [1.0, 1.0]}
    norm, total = buffers("fused_add_rms_norm", "in-place", **values).expected()
    assert total[0].tolist() == [257.0078125, 4.0]
    root = math.sqrt((258.0**2 + 16.0) / 2 + 1e-5)
    assert norm[0].tolist() == pytest.approx([258.0 / root, 4.0 / root], rel=1e-14)


@pytest.mark.parametrize(
    ("name", "form", "read", "written", "operations_", "in_place"),
    [
        ("rms_norm", "allocating", 6 * 96 * 2, 5 * 96 * 2, 4 * 480 + 20, False),
        ("rms_norm", "out", 6 * 96 * 2, 5 * 96 * 2, 4 * 480 + 20, False),
        ("fused_add_rms_norm", "allocating", 11 * 96 * 2, 10 * 96 * 2, 5 * 480 + 20, False),
        ("fused_add_rms_norm", "in-place", 11 * 96 * 2, 10 * 96 * 2, 5 * 480 + 20, True),
    ],
)
def test_work_counts_every_byte_once(
    name: str, form: str, read: int, written: int, operations_: int, in_place: bool
) -> None:
    work = prepared(name, form).work
    assert (work.read_bytes, work.written_bytes) == (read, written)
    assert (work.operations, work.in_place) == (operations_, in_place)
