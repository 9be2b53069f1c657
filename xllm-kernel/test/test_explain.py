"""``python -m xllm_kernel explain``: receipts in text and JSON, and its exit codes."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from operation_builder import Backend, OperationBuilder

from xllm_kernel import OpContract, PreparedKernel, explain
from xllm_kernel.explain import main
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.receipts import Excluded, Receipt
from xllm_kernel.registry import KernelSpec


@pytest.fixture
def operations(build_operations: OperationBuilder) -> OperationBuilder:
    build_operations.add(
        "alpha",
        Backend("fast", priority=10),
        Backend("plain"),
        Backend("absent", requires=("no_such_sdk",)),
    )
    build_operations.add("beta", Backend("vendor", device="npu", requires=("no_such_sdk",)))
    return build_operations


def test_explain_prints_choice_and_each_exclusion(operations, capsys) -> None:
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    assert "chosen      cpu.fast.alpha  (priority 10, modes: eager)" in shown
    assert "cpu.plain.alpha  priority: 0 is lower than 10 of cpu.fast.alpha" in shown
    assert "absent  missing: required module is absent: no_such_sdk" in shown
    assert "beta" not in shown


def test_explain_json_holds_the_receipts(operations, capsys) -> None:
    assert main(["explain", "alpha", "--device", "cpu", "--mode", "eager", "--json"]) == 0
    receipt = json.loads(capsys.readouterr().out)["alpha"]
    assert receipt["implementation"] == "cpu.fast.alpha"
    assert {e["code"] for e in receipt["excluded"]} == {"missing", "priority"}


def test_explain_keeps_what_backends_print_out_of_its_json(
    build_operations: OperationBuilder, capsys
) -> None:
    build_operations.add("alpha", Backend("loud", prologue="print('Warning: no home')"))
    assert main(["explain", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["alpha"]["implementation"] == "cpu.loud.alpha"
    assert "Warning: no home" in printed.err


def test_explain_shows_an_override(operations, capsys, monkeypatch) -> None:
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_ALPHA", "plain")
    assert main(["explain"]) == 0
    assert "override: XLLM_KERNEL_OVERRIDE_ALPHA chose 'plain'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gamma"], 2, "unknown operation 'gamma'; known operations are alpha, beta"),
        (["beta"], 2, "beta has no backend for device 'cpu'; it has backends for npu"),
        (["--device", "gpu"], 2, "device must be one of cpu, npu"),
        (["--mode", "aclgraph"], 2, "execution_mode must be one of eager, compile"),
        (["--device", "npu"], 3, "absent: torch_npu"),
    ],
)
def test_explain_failures_have_their_exit_code(
    operations, capsys, arguments, code, message
) -> None:
    assert main(["explain", *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_explain_a_broken_backend_exits_1_and_json_names_it(operations, capsys) -> None:
    operations.write("alpha", Backend("fast", prologue="raise OSError('truncated')"))
    assert main(["explain", "--json"]) == 1
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert document["error"] == "DependencyBrokenError"
    assert printed == json.dumps(document, indent=2) + "\n"


def test_explain_as_a_module_answers_for_this_installation(run_python) -> None:
    done = run_python("-m", "xllm_kernel", "explain", "rms_norm", "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    receipt = json.loads(done.stdout)["rms_norm"]
    others = {e["name"]: e["code"] for e in receipt["excluded"]}
    if receipt["implementation"] == "cpu.simd.rms_norm":
        assert others["cpu.torch.rms_norm"] == "priority"
    else:
        assert receipt["implementation"] == "cpu.torch.rms_norm"
        assert others["xllm_kernel.ops.rms_norm.simd"] == "missing"
        assert any("XLLM_KERNEL_BUILD_SIMD=1" in e["reason"] for e in receipt["excluded"])


def _receipt(function=abs, **declared) -> Receipt:
    spec = KernelSpec(
        **{
            "name": "cpu.held.alpha",
            "contract": OpContract("alpha", version=3),
            "device": "cpu",
            "execution_modes": ("eager", "compile"),
            "input_domain": "x must be a tensor; y must be a number",
            "solution": "held",
            "priority": 7,
            **declared,
        }
    )
    excluded = (("cpu.other.alpha", "priority: equal to cpu.held.alpha: by name"),)
    return Receipt.of(PreparedKernel(spec, function, 2, excluded))


class OpOverload:
    def __call__(self) -> None: ...

    def __str__(self) -> str:
        return "scale.default"


class Able:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "entry"),
    [
        (abs, "C builtin builtins.abs over module builtins.?"),
        (json.dumps, "function json.dumps"),
        (OpOverload(), "torch operator scale.default"),
        (Able(), f"Able {__name__}.?"),
        (functools.partial(abs), "partial functools.?"),
    ],
)
def test_receipt_says_what_kind_of_callable_is_bound(function, entry: str) -> None:
    assert _receipt(function).entry == entry


def test_receipt_holds_what_was_declared_as_plain_values() -> None:
    promise = next(iter(GUARANTEES))
    written = _receipt(guarantees=(promise,), build=("level avx2",), caveats=("unpinned",))
    facts = written.as_dict()
    assert len(bytes.fromhex(facts.pop("plan_hash"))) == 32
    assert facts == {
        "operation": "alpha",
        "contract_version": 3,
        "implementation": "cpu.held.alpha",
        "solution": "held",
        "device": "cpu",
        "execution_modes": ("eager", "compile"),
        "priority": 7,
        "input_domain": "x must be a tensor; y must be a number",
        "guarantees": (f"{promise}: {GUARANTEES[promise]}",),
        "build": ("level avx2",),
        "caveats": ("unpinned",),
        "entry": "C builtin builtins.abs over module builtins.?",
        "generation": 2,
        "excluded": (
            {
                "name": "cpu.other.alpha",
                "code": "priority",
                "reason": "equal to cpu.held.alpha: by name",
            },
        ),
    }


def test_plan_hash_tells_another_minor_python_but_no_other_patch(monkeypatch) -> None:
    receipts, hashes = sys.modules["xllm_kernel.receipts"], []
    for version in ((3, 11, 7), (3, 11, 9), (3, 12, 7)):
        seen = SimpleNamespace(version_info=version, modules=sys.modules)
        monkeypatch.setattr(receipts, "sys", seen)
        hashes.append(_receipt().plan_hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_explain_heads_the_first_candidate_passed_over_alone() -> None:
    more = tuple(Excluded(f"cpu.{n}.alpha", "mode", f"why {n}") for n in range(3))
    lines = explain._describe(dataclasses.replace(_receipt(), excluded=more)).splitlines()
    assert lines[-3:] == [
        "  passed over cpu.0.alpha  mode: why 0",
        "              cpu.1.alpha  mode: why 1",
        "              cpu.2.alpha  mode: why 2",
    ]


def test_explain_writes_each_sentence_on_a_line_of_its_own(monkeypatch) -> None:
    promises = {"a": "first", "b": "second"}
    monkeypatch.setattr(sys.modules["xllm_kernel.receipts"], "GUARANTEES", promises)
    described = _receipt(guarantees=("a", "b"), caveats=("unpinned",))
    assert explain._describe(described).splitlines() == [
        "alpha (contract version 3) on cpu",
        "  chosen      cpu.held.alpha  (priority 7, modes: eager, compile)",
        "  calls       C builtin builtins.abs over module builtins.?",
        "  built as    nothing of ours was built",
        "  caveat      unpinned",
        "  accepts     x must be a tensor",
        "              y must be a number",
        "  guarantees  a: first",
        "              b: second",
        f"  plan hash   {described.plan_hash}",
        "  passed over cpu.other.alpha  priority: equal to cpu.held.alpha: by name",
    ]
    plain = explain._describe(_receipt(build=("level avx2", "no pins")))
    assert "  guarantees  its contract alone" in plain
    assert "  built as    level avx2\n              no pins\n  accepts" in plain


def test_explain_says_first_what_its_evidence_is_worth(operations, capsys, monkeypatch) -> None:
    monkeypatch.setattr(explain, "disclaimer", lambda evidence: f"only {evidence}")
    assert main(["explain"]) == 0
    assert capsys.readouterr().out.startswith("only cpu\n\nalpha (contract")


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_explain_leaves_standard_output_as_it_was(build_operations, capfd) -> None:
    prologue = "import ctypes, os; os.write(1, b'raw;'); ctypes.CDLL(None).puts(b'from C')"
    build_operations.add("alpha", Backend("loud", prologue=prologue))
    opened = _open_files()
    assert main(["explain", "--json"]) == 0
    os.write(1, b"afterwards")
    printed = capfd.readouterr()
    assert json.loads(printed.out.removesuffix("afterwards"))["alpha"]["solution"] == "loud"
    assert "raw;" in printed.err
    assert "from C" in printed.err
    assert _open_files() == opened
