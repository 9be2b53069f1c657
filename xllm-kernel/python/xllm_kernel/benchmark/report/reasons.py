"""Why rows have no figures, or figures not to rely on; and what became of processes.

Plain sentences from the document, for every form of a report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xllm_kernel.benchmark.report.lines import Document, Line


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing to know of a line.

    Attributes:
        line: the line.
        text: what to know.
        reproduce: shell command that runs the row alone, for a row that failed.
        stderr: the last words of a process that died.
    """

    line: Line
    text: str
    reproduce: str | None = None
    stderr: str | None = None

    @property
    def place(self) -> str:
        """Name the row as far as others could be taken for it."""
        line = self.line
        parts = [line.case, line.implementation]
        parts += [] if line.threads is None else [f"threads {line.threads}"]
        return ", ".join([*parts, *([line.regime] if line.regime else [])])


def reasons(found: Sequence[Line]) -> list[Reason]:
    """Return what is to be known of lines: ended early, impossible, unstable, dropped samples."""
    return [reason for line in found for reason in _of(line)]


def _of(line: Line) -> list[Reason]:
    row = line.row
    said = []
    if row["reason"]:
        text = row["reason"] if row["stage"] is None else f"{row['stage']}: {row['reason']}"
        said.append(Reason(line, text, row["reproduce"], row["stderr"]))
    if line.impossible and line.roofline:
        said.append(Reason(line, _beyond(line.roofline)))
    if line.unstable:
        said.append(Reason(line, f"UNSTABLE: {'; '.join(line.unstable)}"))
    if line.doubt:
        said.append(Reason(line, f"no ratio: {line.doubt}"))
    return said


def _beyond(roofline: Mapping[str, Any]) -> str:
    binding = roofline["binding"]
    return (
        f"IMPOSSIBLE: {100 * roofline['share']:.0f} % of the ceiling '{binding}', which takes "
        f"{roofline['ceilings_us'][binding]:.3f} us for the same work; an error of measurement, so "
        "no figure is shown"
    )


def dropped(found: Sequence[Line]) -> list[Reason]:
    """Return of which lines samples do not count, how many, and why."""
    return [
        Reason(line, ", ".join(f"{count} for '{why}'" for why, count in counts.items()))
        for line in found
        if line.figures is not None and (counts := line.figures["dropped"])
    ]


def processes(document: Document) -> list[str]:
    """Return a sentence for each process that did not end by itself, and how the run went on."""
    known = document["processes"]
    ranks = document["ranks"] > 1
    said = [
        f"at {death['case_id'] or 'no case'}, step '{death['stage']}': {death['ending']}"
        + (f" (rank {death['rank']})" if ranks else "")
        for death in known["deaths"]
    ]
    if known["restarts"]:
        said.append(f"processes started again to go on: {known['restarts']}")
    return said + [f"rank {rank} went away" for rank in known["lost"]]
