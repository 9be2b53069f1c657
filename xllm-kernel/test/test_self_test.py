"""The mutation score: what is planted is wrong, what kills it is the check that says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xllm_kernel.numerics import arguments, case_run, catalog, compare, memory
from xllm_kernel.numerics.case_run import CaseRun
from xllm_kernel.numerics.faults import GENERAL, faults
from xllm_kernel.numerics.planted.run import FaultRun
from xllm_kernel.numerics.storage import ArgumentGuard

SUITES = catalog.suites()


def run(implementation: str, only: str, *options: str) -> dict[str, Any] | None:
    """Plant one fault; return how it was killed, or None where nobody noticed.

    A suite that breaks because a check let something through has not noticed it either.
    """
    argv = ["--implementation", implementation, *options]
    request = arguments.parse("numerics", argv)
    try:
        results = FaultRun(request, (only,)).results()
    except case_run.CaseEndedError:
        return None
    assert results["honest_failure"] is None
    (line,) = results["faults"]
    assert line["status"] in ("killed", "survived"), line
    return line if line["status"] == "killed" else None


# ---- the catalogue of faults ----------------------------------------------------------------


def test_every_suite_has_at_least_forty_faults_with_names_of_their_own() -> None:
    assert len(GENERAL) >= 40
    for suite in SUITES.values():
        names = [fault.name for fault in faults(suite)]
        assert len(names) == len(set(names))
        assert len(names) > len(GENERAL)
        assert all(fault.text for fault in faults(suite))


@pytest.mark.parametrize("operation", SUITES)
def test_every_fault_of_a_suite_is_killed(run_python, tmp_path: Path, operation: str) -> None:
    """The score, as the command prints it, for the implementation that needs no build."""
    report = tmp_path / "score.json"
    done = run_python(
        *("-m", "xllm_kernel.numerics", "--self-test", "--operation", operation),
        *("--implementation", f"cpu.torch.{operation}", "--output", str(report)),
    )
    score = json.loads(report.read_text())
    (suite,) = score["suites"]
    survivors = [f["fault"] for f in suite["faults"] if f["status"] == "survived"]
    assert (done.returncode, survivors) == (0, []), done.stdout
    assert f"{score['applicable']} of {score['applicable']} killed, 100.0 %" in done.stdout
    assert all(f["reason"] for f in suite["faults"] if f["status"] == "not_applicable")


# ---- every check earns its place ------------------------------------------------------------


def blind(owner: Any, name: str, answer: Any = None) -> Callable[[pytest.MonkeyPatch], None]:
    """Make a check find nothing."""
    return lambda patch: patch.setattr(owner, name, lambda *arguments, **options: answer)


def leaving_out(check: str) -> Callable[[pytest.MonkeyPatch], None]:
    kept = tuple(pair for pair in compare._CHECKS_BY_TENSOR if pair[0] != check)
    return lambda patch: patch.setattr(compare, "_CHECKS_BY_TENSOR", kept)


def one_side(patch: pytest.MonkeyPatch, side: str) -> None:
    guarded = memory.guarded
    patch.setattr(memory, "guarded", lambda _: guarded(side))
    patch.setattr("xllm_kernel.numerics.planted.run.guarded", lambda _: guarded(side))


def of(*regimes: str, dtype: str = "float32") -> tuple[str, ...]:
    return ("--rows", "3", "--widths", "65", "--dtypes", dtype, "--regimes", *regimes)


NORM, FUSED, OUT = "cpu.torch.rms_norm", "cpu.torch.fused_add_rms_norm", "cpu.torch.rms_norm_out"
SMALL = of("none")

# Check or step: the fault that only it sees, how to remove it, implementation, options.
ABLATIONS = {
    "structure": ("subclass", blind(compare, "_structure"), NORM, SMALL),
    "shape": ("row_missing", leaving_out("shape"), NORM, SMALL),
    "dtype": ("other_dtype", leaving_out("dtype"), NORM, SMALL),
    "layout": ("rows_apart", leaving_out("layout"), NORM, SMALL),
    "nonfinite": ("nonfinite_dropped", leaving_out("nonfinite"), NORM, of("nonfinite")),
    "values": ("negated", blind(compare, "_values"), NORM, SMALL),
    "mutation": ("input_as_scratch", blind(ArgumentGuard, "mutation"), NORM, SMALL),
    "aliasing": ("one_storage", blind(ArgumentGuard, "alias"), FUSED, SMALL),
    "memory": ("gaps_written", blind(ArgumentGuard, "stray"), OUT, of("strided")),
    "other data": ("stale", blind(CaseRun, "_validate_other_data"), NORM, SMALL),
    "captured": ("wrong_later", blind(CaseRun, "_validate_captured"), NORM, SMALL),
    "held results": ("buffer_reused", blind(case_run, "_check_fresh"), NORM, SMALL),
    "guard at the end": ("read_past_the_end", lambda p: one_side(p, "start"), NORM, SMALL),
    "guard at the start": ("read_before_the_start", lambda p: one_side(p, "end"), NORM, SMALL),
}


@pytest.mark.parametrize("check", ABLATIONS)
def test_without_a_check_its_fault_survives(
    fresh: object, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    fault, remove, implementation, options = ABLATIONS[check]
    killed = run(implementation, fault, *options)
    assert killed is not None
    with monkeypatch.context() as patch:
        remove(patch)
        assert run(implementation, fault, *options) is None
