"""The report of a run: built up as cases finish, written whole, readable at any moment.

Generic: it records the operation per row and never looks into an operator's parameters. Results
and metadata live in fields of their own, so that no suite can overwrite what identifies a row.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import xllm_kernel
from xllm_kernel.numerics import reproduce
from xllm_kernel.numerics.arguments import Request
from xllm_kernel.numerics.processes.following import BAD
from xllm_kernel.platforms.evidence import disclaimer

SCHEMA_VERSION = 2
ROW_STATES = ("passed", "failed", "error", "not_applicable", "not_run")


@dataclass(slots=True)
class Row:
    """One case's line.

    Attributes:
        case_id: the case.
        parameters: its parameters.
        evidence: how what it says was obtained, the platform's word.
        status: one of ``ROW_STATES``.
        stage: where the case ended unless it passed: ``validate``, ``capture`` ...
        reason: why, unless it passed.
        metadata: what the suite says of the inputs.
        validation: verdicts by phase: ``function``, ``captured``, ``after_timing``.
        durations: seconds by step: ``preparation_s``, ``validation_s``, ``warmup_s`` ...
        timings: figures by regime, in a benchmark only.
        traceback: of the exception that ended the case.
        crashed: whether the implementation raised, or its process died.
        stderr: the last that a process which died wrote.
        implementation: whose the case is, where a run has several; None stands for the run's own.
        threads: inside an operator, where a run has several numbers of them.
        work: bytes and operations that a call takes, as the suite states them.
        rank: which rank ran the case, where several share a run.
        watch: is told of each step that begins; not part of the row.
    """

    case_id: str
    parameters: Mapping[str, Any]
    evidence: str | None = None
    status: str = "not_run"
    stage: str | None = None
    reason: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    validation: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    timings: Mapping[str, Any] | None = None
    traceback: str | None = None
    crashed: bool = False
    stderr: str | None = None
    implementation: str | None = None
    threads: int | None = None
    work: Mapping[str, Any] | None = None
    rank: int | None = None
    watch: Callable[[str], None] | None = None

    def enter(self, stage: str) -> None:
        """Say that a step begins, before anything of it can fail."""
        if self.watch is not None:
            self.watch(stage)

    def results(self) -> dict[str, Any]:
        """Return what running the case filled in, for another process to take."""
        return {name: getattr(self, name) for name in _RESULTS}

    def take(self, results: Mapping[str, Any]) -> None:
        """Fill in what another process found out."""
        for name in _RESULTS:
            setattr(self, name, results[name])

    def add_duration(self, step: str, seconds: float) -> None:
        """Add to the time spent in a step."""
        self.durations[step] = self.durations.get(step, 0.0) + seconds

    def end(self, status: str, stage: str, reason: str) -> None:
        """Record how the case ended."""
        self.status, self.stage, self.reason = status, stage, reason


# What is left of a simulated row's figures beside its samples.
_UNRANKED = ("calls_a_replay", "iterations", "repeats", "reset_before")

_RESULTS = (
    *("status", "stage", "reason", "metadata", "validation", "durations", "timings", "traceback"),
    *("crashed", "stderr", "work"),
)


@dataclass(slots=True)
class Processes:
    """What became of the processes that ran the cases.

    Attributes:
        isolated: whether cases ran in a process of their own; None before they did.
        restarts: how often another process was started to go on.
        deaths: of each process that did not end by itself: rank, case, step and how.
        lost: ranks that went away before their rows were done.
    """

    isolated: bool | None = None
    restarts: int = 0
    deaths: list[dict[str, Any]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """Everything a run found out, and its verdict."""

    request: Request
    settings: dict[str, Any]
    status: str = "not_run"
    reason: str | None = None
    exit_code: int | None = None
    evidence: str | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] | None = None
    preparation_s: float | None = None
    rows: list[Row] = field(default_factory=list)
    other_receipts: Mapping[str, Any] = field(default_factory=dict)
    missing: list[Mapping[str, Any]] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ranks: int = 1
    processes: Processes = field(default_factory=Processes)
    started: str = field(default_factory=lambda: _now())
    _begin: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.environment = {
            "xllm_kernel": xllm_kernel.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "cpu_count": os.cpu_count(),
        }

    def coverage(self) -> dict[str, int]:
        """Count the cases by state."""
        counts = dict.fromkeys(ROW_STATES, 0)
        for row in self.rows:
            counts[row.status] += 1
        return {"total": len(self.rows), **counts}

    def finish(self, status: str, exit_code: int, reason: str | None) -> None:
        """Record the verdict."""
        self.status, self.exit_code, self.reason = status, exit_code, reason

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values; nonfinite numbers are strings."""
        request = self.request
        document = {
            "schema_version": SCHEMA_VERSION,
            "kind": request.kind,
            "status": self.status,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "operation": request.suite.operation,
            "implementation": request.implementation,
            "device": request.device,
            "mode": request.mode,
            "evidence": self.evidence,
            "notice": disclaimer(self.evidence),
            "revision": request.revision,
            "command": list(request.command),
            "started": self.started,
            "duration_s": time.monotonic() - self._begin,
            "settings": self.settings,
            "environment": self.environment,
            "receipt": self.receipt,
            **self._of_several(),
            "ranks": self.ranks,
            "processes": asdict(self.processes),
            "coverage": self.coverage(),
            "preparation_s": self.preparation_s,
            "warmup_s": self._total("warmup_s"),
            "capture_s": self._total("capture_s"),
            "rows": [self._row(row) for row in self.rows],
        }
        clean: dict[str, Any] = json_value(document)
        return clean

    def write(self, markdown: str) -> None:
        """Write JSON and, beside it, Markdown; each replaces its predecessor in one step.

        An interrupt waits until both are there.
        """
        if self.request.output is None:
            return
        path = self.request.output.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_dict(), indent=2, allow_nan=False, ensure_ascii=False)
        with uninterrupted():
            replace_text(path, text + "\n")
            replace_text(path.with_suffix(".md"), markdown)

    def reproduction(self, row: Row) -> str | None:
        """Return the command that runs a failing row alone, or None for a row that did not fail."""
        return reproduce.line(self.request, row.case_id) if row.status in BAD else None

    def _row(self, row: Row) -> dict[str, Any]:
        line = {
            "operation": self.request.suite.operation,
            "implementation": row.implementation or self.request.implementation,
            "case_id": row.case_id,
            "parameters": row.parameters,
            "evidence": row.evidence,
            "status": row.status,
            "stage": row.stage,
            "reason": row.reason,
            "metadata": row.metadata,
            "validation": row.validation,
            "durations": row.durations,
            "traceback": row.traceback,
            "crashed": row.crashed,
            "stderr": row.stderr,
            "rank": row.rank,
            "reproduce": self.reproduction(row),
        }
        if self.request.kind == "benchmark":
            line |= {"threads": row.threads or self.environment.get("threads"), "work": row.work}
            line |= _timings(row)
        return line

    def _of_several(self) -> dict[str, Any]:
        """Return what a benchmark says of contenders and ceilings."""
        if self.request.kind != "benchmark":
            return {}
        return {**self.facts, "other_receipts": self.other_receipts, "missing": self.missing}

    def _total(self, step: str) -> float:
        return sum(row.durations.get(step, 0.0) for row in self.rows)


def _timings(row: Row) -> dict[str, Any]:
    """Return a row's timings; a simulated row's bare samples under a name that says so."""
    notice = disclaimer(row.evidence)
    if notice is None or row.timings is None:
        return {"timings": row.timings}
    return {"timings": None, "simulated_timings": {"notice": notice, **_samples_alone(row.timings)}}


def _samples_alone(timings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave of every column its samples: without a median there is nothing to rank by."""
    return {
        "regimes": {
            regime: {
                key: value["samples"] if isinstance(value, Mapping) else value
                for key, value in figures.items()
                if key in _UNRANKED or (isinstance(value, Mapping) and "samples" in value)
            }
            for regime, figures in timings["regimes"].items()
        }
    }


def json_value(value: object, nonfinite: Callable[[float], object] = str) -> Any:
    """Return a value that JSON can hold: nonfinite floats and unknown objects become strings.

    Args:
        value: anything.
        nonfinite: what becomes of a float that JSON has no number for.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else nonfinite(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): json_value(item, nonfinite) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_value(item, nonfinite) for item in value]
    return str(value)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part.

    Raises:
        OSError: where the path is no regular file, which a replacement would destroy.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' must be a regular file or not exist yet")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold interrupts back: one between a file's creation and its name would leave litter.

    The handlers wait, not the signals: a signal that is blocked here finds another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run on the main thread alone
        return
    come: list[int] = []
    before = {
        number: signal.signal(number, lambda come_now, frame: come.append(come_now))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for missed in come:
            signal.raise_signal(missed)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
