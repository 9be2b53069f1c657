"""Certificates: every circumstance is looked at for every implementation, each dependency found."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_guarantees import Kernel, _flaw, honest, plan_of, trial_of

from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.numerics.__main__ import main
from xllm_kernel.numerics.invariants import checks as invariance
from xllm_kernel.numerics.invariants.certificates import CIRCUMSTANCES
from xllm_kernel.numerics.invariants.checks import Subject, covered
from xllm_kernel.numerics.rms_norm_out import SUITE
from xllm_kernel.numerics.suite import NotTriedError
from xllm_kernel.platforms.captured import Captured
from xllm_kernel.platforms.cpu import CpuPlatform
from xllm_kernel.registry import OpContract, PreparedKernel


class Device(CpuPlatform):
    """A processor that has a second stream and a mode of its own."""

    aside = False

    def other_stream(self) -> Any:
        @contextmanager
        def stream() -> Any:
            self.aside = True
            yield
            self.aside = False

        return stream()

    def capture(self, function: Callable[[], Any], mode: str) -> Captured:
        outputs: list[Any] = []

        def replay() -> None:
            self.aside = True
            outputs[:] = [function()]
            self.aside = False

        return Captured(calls=1, replay=replay, outputs=lambda: outputs)


def word(circumstance: str, kernel: Kernel, device: Device, **changes: Any) -> str | None:
    subject = Subject(plan_of(kernel, **changes), trial_of(torch.float32))
    return CIRCUMSTANCES[circumstance].difference(subject, device, "graph")


def _counting(number: int) -> Kernel:
    calls = itertools.count(1)
    return _flaw(lambda x, w: next(calls) == number)


def _last_of(rows: int) -> Kernel:
    return _flaw(lambda x, w: len(x) == rows, row=-1)


# Kernels that are wrong in one circumstance alone; the others must not see it.
DEPENDENT: dict[str, dict[str, Callable[[Device], Kernel]]] = {
    "batch_size": {
        f"{size} rows": lambda device, size=size: _flaw(lambda x, w: len(x) == size)
        for size in (1, 2, 255, 256, 257, 1000)
    },
    "batch_position": {
        "last place": lambda device: _flaw(lambda x, w: bool(x[-1].equal(_ROWS[0])), row=-1),
        "first place": lambda device: _flaw(lambda x, w: bool(x[0].equal(_ROWS[39])), row=0),
    },
    "other_rows": {
        "NaN": lambda device: _flaw(lambda x, w: bool(x.isnan().any()), row=3),
        "infinities": lambda device: _flaw(lambda x, w: bool(x.isinf().any()), row=3),
        "zeros": lambda device: _flaw(lambda x, w: bool((x == 0).any()), row=3),
    },
    "threads": {
        f"{count} threads": lambda device, count=count: _flaw(
            lambda x, w: torch.get_num_threads() == count and len(x) == 257
        )
        for count in (1, 2, 4, 8)
    },
    "alignment": {
        "input": lambda device: _flaw(lambda x, w: x.data_ptr() % 64 == 4),
        "what is shared": lambda device: _flaw(lambda x, w: w.data_ptr() % 64 == 60),
    },
    "stream": {"aside": lambda device: _flaw(lambda x, w: device.aside)},
    "mode": {"replayed": lambda device: _flaw(lambda x, w: device.aside)},
    "repetition": {
        "second": lambda device: _counting(2),
        "twentieth": lambda device: _counting(20),
    },
}
_ROWS = trial_of(torch.float32).make()["x"]
FAULTS = [(name, fault) for name, faults in DEPENDENT.items() for fault in faults]


def test_every_circumstance_has_a_fault_and_promises_are_guarantees() -> None:
    assert set(DEPENDENT) == set(CIRCUMSTANCES)
    promised = {c.ruled_out_by for c in CIRCUMSTANCES.values()} - {None}
    assert promised <= set(GUARANTEES)


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
def test_honest_kernel_depends_on_nothing(circumstance: str) -> None:
    before = torch.get_num_threads()
    assert word(circumstance, honest, Device()) is None
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("circumstance", "fault"), FAULTS)
def test_dependency_found(circumstance: str, fault: str) -> None:
    device = Device()
    assert word(circumstance, DEPENDENT[circumstance][fault](device), device) is not None


def test_mode_puts_written_arguments_back_before_the_replay() -> None:
    def kernel(x: torch.Tensor, w: torch.Tensor) -> None:
        x.copy_(honest(x, w))

    class Calling(Device):
        def capture(self, function: Callable[[], Any], mode: str) -> Captured:
            function()
            return super().capture(function, mode)

    contract = OpContract("scale", mutates=("x",))
    assert word("mode", kernel, Calling(), contract=contract) is None


def test_mode_that_makes_several_calls_cannot_be_tried_on_what_writes() -> None:
    class Several(Device):
        def capture(self, function: Callable[[], Any], mode: str) -> Captured:
            return Captured(calls=64, replay=function, outputs=lambda: [None] * 64)

    contract = OpContract("scale", mutates=("x",))
    with pytest.raises(NotTriedError, match="runs 64 calls that write"):
        word("mode", lambda x, w: None, Several(), contract=contract)


def test_every_replayed_output_is_compared() -> None:
    class Several(Device):
        def capture(self, function: Callable[[], Any], mode: str) -> Captured:
            outputs = [function(), function()]
            outputs[1][3, 3] += 1
            return Captured(calls=2, replay=lambda: None, outputs=lambda: outputs)

    assert str(word("mode", honest, Several())).startswith("output[3, 3] is 0x")


def test_first_trial_of_a_name_within_the_domain_is_tried() -> None:
    trial = trial_of(torch.float32)
    outside = replace(trial, unsupported_reason=lambda plan: "x.width: too odd")
    plan, other = plan_of(honest), trial_of(torch.float16)
    assert covered([outside, trial, trial_of(torch.float32), other], plan) == [trial, other]
    with pytest.raises(NotTriedError, match="too odd"):
        covered([outside], plan)


# ---------------------------------------------------------------- on the command line

QUICK = ("--rows", "2", "--widths", "64", "--dtypes", "bfloat16")


def _run(folder: Path, capsys: pytest.CaptureFixture) -> tuple[int, dict[str, Any], str]:
    path = folder / "r.json"
    argv = ["--implementation", "cpu.torch.rms_norm_out", *QUICK, "--output", str(path)]
    code = main(argv)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    found = {r["parameters"]["certificate"]: r for r in rows if "certificate" in r["parameters"]}
    return code, found, capsys.readouterr().out


def _plant(monkeypatch: pytest.MonkeyPatch, *guarantees: str) -> None:
    """Make PyTorch's implementation depend on the number of rows."""
    prepare = SUITE.prepare

    def planted(device: str, mode: str, implementation: str) -> PreparedKernel:
        plan = prepare(device, mode, implementation)

        def function(output: torch.Tensor, *others: Any) -> None:
            plan.function(output, *others)
            if len(output) == 256:
                output[9, 7] *= 1.25

        return replace(plan, function=function, spec=replace(plan.spec, guarantees=guarantees))

    monkeypatch.setattr(SUITE, "prepare", planted)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """On the command line the threads that are tried make the time; two numbers are enough."""
    if "capsys" in request.fixturenames:
        monkeypatch.setattr(invariance, "THREADS", (1, 2))


def test_every_circumstance_is_reported_for_who_states_nothing(
    fresh: object, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    code, rows, _ = _run(tmp_path, capsys)
    assert (code, list(rows)) == (0, list(CIRCUMSTANCES))
    held = {name for name, row in rows.items() if row["metadata"].get("holds")}
    assert held == set(CIRCUMSTANCES) - {"stream", "mode"}
    for name in held:
        facts: Mapping[str, Any] = rows[name]["metadata"]
        assert facts["compared"] == CIRCUMSTANCES[name].compared
        assert (facts["on"], facts["difference"]) == (["bfloat16"], None)
    assert rows["stream"]["reason"] == "device cpu has no streams"
    assert rows["mode"]["reason"].startswith("this run is eager")
    assert {rows[n]["status"] for n in ("stream", "mode")} == {"not_applicable"}


def test_dependency_of_who_promises_nothing_is_said_and_no_failure(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    _plant(monkeypatch)
    code, rows, out = _run(tmp_path, capsys)
    facts = rows["batch_size"]["metadata"]
    assert (code, rows["batch_size"]["status"], facts["holds"]) == (0, "passed", False)
    assert facts["difference"].startswith("bfloat16: argument 'output'[9, 7] is 0x")
    (line,) = (text for text in out.splitlines() if "certificate/batch_size" in text)
    assert "does not hold" in line
    assert rows["other_rows"]["metadata"]["holds"] is True


def test_dependency_that_a_stated_guarantee_rules_out_is_a_failure(
    fresh: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    _plant(monkeypatch, "batch_invariant")
    code, rows, _ = _run(tmp_path, capsys)
    assert (code, rows["batch_size"]["status"]) == (1, "failed")
    assert rows["batch_size"]["metadata"]["promised_by"] == "batch_invariant"
    assert rows["threads"]["metadata"]["promised_by"] is None
    assert rows["threads"]["status"] == "passed"
