"""Show the demo's results: the same sections for the terminal and as Markdown.

Compute nothing: everything shown is in the summary that `demo.py` writes as JSON.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from terminal import Style

_INDENT = "  "
_COLUMNS = 92
_PROMPT_COLUMNS = 72


@dataclass(frozen=True, slots=True)
class Section:
    """Hold one part of the report.

    Attributes:
        title: its heading.
        lines: preformatted lines.
        table: a header row and rows below it, or nothing.
        note: a sentence below, or nothing.
    """

    title: str
    lines: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()
    note: str = ""


def sections(summary: Mapping[str, Any]) -> Iterator[Section]:
    """Lay the summary out; a part that was not reached is left out.

    Args:
        summary: the demo's JSON summary.

    Yields:
        Sections in reading order.
    """
    if summary.get("text"):
        yield _text(summary["text"])
        yield _profiler(summary["text"])
    if summary.get("receipts"):
        yield _receipts(summary["receipts"])
    if summary.get("validation"):
        yield _validation(summary["validation"])
    if summary.get("timing"):
        yield _timing(summary["timing"])


def to_terminal(summary: Mapping[str, Any], style: Style) -> str:
    """Return the sections as text for a terminal."""
    out: list[str] = []
    for section in sections(summary):
        out += ["", style.bold(section.title)]
        out += [f"{_INDENT}{line}" for line in section.lines]
        out += [f"{_INDENT}{line}" for line in _aligned(section.table)]
        out += [f"{_INDENT}{style.dim(line)}" for line in textwrap.wrap(section.note, _COLUMNS)]
    return "\n".join(out)


def to_markdown(summary: Mapping[str, Any]) -> str:
    """Return the summary as a Markdown page."""
    out = [
        "# RMSNorm on a CPU, inside a language model",
        "",
        f"Status: **{summary['status']}**. Model: {summary['model']}. Machine: "
        f"{summary['machine']}. Revision: `{summary['revision']}`.",
    ]
    if summary["failures"]:
        out += ["", *(f"- failed: {reason}" for reason in summary["failures"])]
    for section in sections(summary):
        out += ["", f"## {section.title}", ""]
        if section.lines:
            out += ["```text", *section.lines, "```"]
        if section.table:
            header, *rows = section.table
            out += [_markdown_row(header), _markdown_row(["---"] * len(header))]
            out += [_markdown_row(row) for row in rows]
        if section.note:
            out += ["", section.note]
    out += ["", "## Commands", "", "```sh", *summary["commands"], "```", ""]
    return "\n".join(out)


def _text(text: Mapping[str, Any]) -> Section:
    lines = []
    for row in text["prompts"]:
        differing = [name for name, same in row["same"].items() if not same]
        lines += [_end_of(row["prompt"]), f"  -> {row['text']!r}"]
        lines += [f"  DIFFERS with {name}: {row['other'][name]!r}" for name in differing]
    same = sum(all(row["same"].values()) for row in text["prompts"])
    total = len(text["prompts"])
    return Section(
        f"Text: {text['tokens']} greedy tokens after each prompt",
        lines,
        note=f"{same} of {total} continuations are the same, token for token, with "
        f"{', '.join(text['norms'])} and {text['reference']}.",
    )


def _profiler(text: Mapping[str, Any]) -> Section:
    header = ["norm", "operator that the profiler saw", "calls in one forward pass"]
    rows = [
        [norm, operator, str(count)]
        for norm, counts in text["operators"].items()
        for operator, count in counts.items()
    ]
    return Section(
        "Profiler", table=[header, *rows], note=f"The model has {text['norms_per_forward']} norms."
    )


def _receipts(receipts: Mapping[str, Any]) -> Section:
    lines = []
    for asked, receipt in receipts.items():
        lines += [f"{asked}: {receipt['implementation']}, a {receipt['entry']}"]
        for other in receipt["excluded"]:
            lines.append(f"  passed over {other['name']} ({other['code']}): {other['reason']}")
    return Section(
        "Receipts: what a worker is given",
        lines,
        note="In full: python -m xllm_kernel explain --device cpu",
    )


def _validation(validation: Sequence[Mapping[str, Any]]) -> Section:
    header = ["implementation", "status", "passed", "failed", "not applicable", "worst error, ULP"]
    rows = [
        [
            row["implementation"],
            row["status"],
            str(row["coverage"]["passed"]),
            str(row["coverage"]["failed"]),
            str(row["coverage"]["not_applicable"]),
            f"{row['worst']['ulp']:.3g} of {row['worst']['limit_ulp']:.3g}" if row["worst"] else "",
        ]
        for row in validation
    ]
    return Section(
        "Validation on the captured activations",
        table=[header, *rows],
        note="The worst error is the one nearest to its limit; the limit is earned case by case. "
        "Guarantees that an implementation states are counted with the cases.",
    )


def _timing(timing: Mapping[str, Any]) -> Section:
    candidate, baseline = timing["candidate"], timing["baseline"]
    header = ["phase", "shape", candidate, baseline, "ratio", f"in {timing['rounds']} rounds"]
    rows = [
        [
            phase["phase"],
            " x ".join(map(str, phase["shape"])),
            f"{phase['candidate_us']:.2f} us",
            f"{phase['baseline_us']:.2f} us",
            f"{phase['ratio_median']:.2f}",
            f"{phase['ratio_min']:.2f} to {phase['ratio_max']:.2f}",
        ]
        for phase in timing["phases"]
    ]
    taken = sum(phase["calls"] for phase in timing["phases"]) * 2 * timing["rounds"]
    unstable = sum(phase["unstable"] for phase in timing["phases"])
    return Section(
        "Time of a norm call",
        table=[header, *rows],
        note=f"The ratio is {candidate} over {baseline}: the median of rounds run in alternation "
        "on this machine, as busy as it was; it is no figure for another. The benchmark calls "
        f"{unstable} of its {taken} timings unstable.",
    )


def _end_of(prompt: str) -> str:
    """Quote a prompt, and only the end of a long one, where its continuation begins."""
    quoted = repr(prompt)
    return quoted if len(quoted) <= _PROMPT_COLUMNS else f"... {quoted[-_PROMPT_COLUMNS:].lstrip()}"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    if not table:
        return []
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
