"""The rows of a run on guarantees and certificates: which stated promises hold, what holds anyway.

A certificate's row passes either way, and says which; only where a stated guarantee rules the
dependency out does one that was found fail.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Sequence

from xllm_kernel.errors import RAISED, DependencyBrokenError
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.invariants.certificates import CIRCUMSTANCES
from xllm_kernel.numerics.invariants.checks import Subject, covered
from xllm_kernel.numerics.invariants.guarantees import CHECKS
from xllm_kernel.numerics.invariants.levels import level_invariant
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.suite import NotTriedError, Trial
from xllm_kernel.platforms import get_platform
from xllm_kernel.registry import PreparedKernel

_GUARANTEE, _CERTIFICATE = "guarantee", "certificate"


def case_ids(operation: str) -> list[str]:
    """Return the identifiers that rows of an operation can have, whatever is bound to it."""
    return [
        *(f"{operation}/{name}" for name in GUARANTEES),
        *(f"{operation}/{_CERTIFICATE}/{name}" for name in CIRCUMSTANCES),
    ]


def rows(request: Request, plan: PreparedKernel, evidence: str | None) -> list[Row]:
    """Return rows to be filled in: one for each stated guarantee, one for each circumstance.

    A suite without trials has no certificates.
    """
    operation = request.suite.operation
    found = [
        Row(f"{operation}/{name}", {_GUARANTEE: name, "text": GUARANTEES[name]}, evidence)
        for name in plan.spec.guarantees
    ]
    if list(request.suite.trials(request.options)):
        found += [
            Row(
                f"{operation}/{_CERTIFICATE}/{name}",
                {_CERTIFICATE: name, "text": f"bits do not depend on {c.text}"},
                evidence,
            )
            for name, c in CIRCUMSTANCES.items()
        ]
    return found


def fill_in(row: Row, request: Request, plan: PreparedKernel) -> bool:
    """Try what a row is about; return whether the implementation raised."""
    stage = _GUARANTEE if _GUARANTEE in row.parameters else _CERTIFICATE
    begin = time.perf_counter()
    try:
        trials = covered(request.suite.trials(request.options), plan)
        attempt = _guarantee if stage == _GUARANTEE else _certificate
        reason = attempt(row, request, plan, trials)
    except NotTriedError as error:
        row.end("not_applicable", stage, str(error))
    except RAISED as error:
        row.end("error", stage, f"{type(error).__name__}: {error}")
        row.traceback = traceback.format_exc()
        return not isinstance(error, DependencyBrokenError)
    else:
        if reason is None:
            row.status = "passed"
        else:
            row.end("failed", stage, reason)
    finally:
        row.add_duration(f"{stage}_s", time.perf_counter() - begin)
    return False


def _guarantee(
    row: Row, request: Request, plan: PreparedKernel, trials: Sequence[Trial]
) -> str | None:
    """Return how a guarantee is broken, or None."""
    name = row.parameters[_GUARANTEE]
    if name == "level_invariant":
        reason, compared = level_invariant(plan, trials, request.arguments)
        row.metadata = {"compared_with": compared}
        if not compared:
            raise NotTriedError("this machine has no other level to compare with")
        return reason
    return _first((trial, CHECKS[name](Subject(plan, trial))) for trial in trials)


def _certificate(
    row: Row, request: Request, plan: PreparedKernel, trials: Sequence[Trial]
) -> str | None:
    """Say whether a certificate holds; return the dependency where a guarantee rules it out."""
    circumstance = CIRCUMSTANCES[row.parameters[_CERTIFICATE]]
    platform = get_platform(request.device)
    reason = _first(
        (trial, circumstance.difference(Subject(plan, trial), platform, request.mode))
        for trial in trials
    )
    promised = circumstance.ruled_out_by in plan.spec.guarantees
    row.metadata = {
        "holds": reason is None,
        "compared": circumstance.compared,
        "on": [trial.name for trial in trials],
        "difference": reason,
        "promised_by": circumstance.ruled_out_by if promised else None,
    }
    return reason if promised else None


def _first(words: Iterable[tuple[Trial, str | None]]) -> str | None:
    return next((f"{trial.name}: {word}" for trial, word in words if word is not None), None)
