"""The rows of a run that say which stated guarantees hold, one a guarantee."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from functools import partial

from xllm_kernel.errors import RAISED, DependencyBrokenError
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.guarantees import CHECKS, Subject
from xllm_kernel.numerics.levels import level_invariant
from xllm_kernel.numerics.report import Row
from xllm_kernel.numerics.suite import NotTriedError, Trial
from xllm_kernel.registry import PreparedKernel

_STAGE = "guarantee"


def rows(request: Request, plan: PreparedKernel, evidence: str | None) -> list[Row]:
    """Return a row for each guarantee that the implementation states, to be filled in."""
    return [
        Row(
            f"{request.suite.operation}/{name}",
            {"guarantee": name, "text": GUARANTEES[name]},
            evidence,
        )
        for name in plan.spec.guarantees
    ]


def fill_in(row: Row, request: Request, plan: PreparedKernel) -> bool:
    """Try a row's guarantee; return whether the implementation raised."""
    name = row.parameters["guarantee"]
    begin = time.perf_counter()
    try:
        trials = list(request.suite.trials(request.options))
        if not trials:
            raise NotTriedError("the suite has no trials for these options")
        reason = _levels(row, request, plan, trials) if name == "level_invariant" else None
        if name in CHECKS:
            words = map(partial(_word, name, plan), trials)
            reason = next((word for word in words if word is not None), None)
    except NotTriedError as error:
        row.end("not_applicable", _STAGE, str(error))
    except RAISED as error:
        row.end("error", _STAGE, f"{type(error).__name__}: {error}")
        row.traceback = traceback.format_exc()
        return not isinstance(error, DependencyBrokenError)
    else:
        if reason is None:
            row.status = "passed"
        else:
            row.end("failed", _STAGE, reason)
    finally:
        row.add_duration("guarantee_s", time.perf_counter() - begin)
    return False


def _word(name: str, plan: PreparedKernel, trial: Trial) -> str | None:
    reason = CHECKS[name](Subject(plan, trial))
    return None if reason is None else f"{trial.name}: {reason}"


def _levels(
    row: Row, request: Request, plan: PreparedKernel, trials: Sequence[Trial]
) -> str | None:
    reason, compared = level_invariant(plan, trials, request.arguments)
    row.metadata = {"compared_with": compared}
    if not compared:
        raise NotTriedError("this machine has no other level to compare with")
    return reason
