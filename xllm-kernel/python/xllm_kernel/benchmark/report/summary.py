"""What a report comes to, in a few sentences: counts and medians computed from its document.

States facts of one regime at a time; simulated rows are counted and never ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from xllm_kernel.benchmark.report.lines import (
    IMPOSSIBLE,
    UNSTABLE,
    VERDICTS,
    Document,
    Line,
    implementations_of,
    regimes_of,
)
from xllm_kernel.platforms.evidence import disclaimer

_STATES = (("failed", "failed"), ("error", "ended in an error"), ("n/a", "are not applicable"))


@dataclass(frozen=True, slots=True)
class Standing:
    """One implementation in one regime.

    Attributes:
        regime: the regime.
        implementation: its name.
        is_baseline: whether the others are divided by it.
        rows: how many rows have figures.
        verdicts: how many rows have which verdict.
        ratio: median of its ratios to the baseline, of rows with a verdict of ``VERDICTS``.
        share: median share of the ceiling that binds.
    """

    regime: str
    implementation: str
    is_baseline: bool
    rows: int
    verdicts: Counter[str]
    ratio: float | None
    share: float | None


def standings(found: Sequence[Line]) -> list[Standing]:
    """Return every implementation's standing by regime, in order of appearance."""
    result = []
    for regime in regimes_of(found):
        inside = [line for line in found if line.regime == regime]
        for name in implementations_of(inside):
            mine = [line for line in inside if line.implementation == name]
            ratios = [
                float(line.against["ratio"]["middle"])
                for line in mine
                if line.against is not None and line.verdict in VERDICTS
            ]
            shares = [share for line in mine if (share := _share(line)) is not None]
            result.append(
                Standing(
                    regime,
                    name,
                    any(line.is_baseline for line in mine),
                    len(mine),
                    Counter(line.verdict for line in mine),
                    median(ratios) if ratios else None,
                    median(shares) if shares else None,
                )
            )
    return result


def _share(line: Line) -> float | None:
    """Return the share of the ceiling, of a line whose figures can be relied on."""
    if line.times is None or line.unstable or line.roofline is None:
        return None
    return float(line.roofline["share"])


def headline(document: Document) -> str:
    """Return the status and the counts behind it: ``PASSED  6 of 6 cases passed``."""
    counts = document["coverage"]
    sorts = {(row["implementation"], row.get("threads")) for row in document["rows"]}
    noun = "rows" if len(sorts) > 1 else "cases"
    shown = [f"{counts['passed']} of {counts['total']} {noun} passed"]
    words = {"not_applicable": "n/a", "not_run": "not run"}
    shown += [
        f"{counts[state]} {words.get(state, state)}"
        for state in ("failed", "error", "not_applicable", "not_run")
        if counts[state]
    ]
    word = str(document["status"]).upper().replace("_", " ")
    kind = "" if disclaimer(document["evidence"]) is None else f" ({document['evidence']})"
    return f"{word}{kind}  {', '.join(shown)}"


def title(document: Document, found: Sequence[Line]) -> str:
    """Return the report's heading."""
    names = implementations_of(found) or [document["implementation"]]
    return f"Benchmark: {names[0] if len(names) == 1 else document['operation']}"


def where(document: Document) -> str:
    """Say on what the run ran."""
    environment = document["environment"]
    facts = [f"{document['device']} {document['mode']}"]
    facts += [str(environment["device_name"])] if environment.get("device_name") else []
    facts += [f"torch {environment['torch']}"] if environment.get("torch") else []
    return ", ".join(facts)


def notices(document: Document) -> list[str]:
    """Return what a reader must know before any figure: evidence that is none, and caveats."""
    receipt = document["receipt"] or {}
    said = disclaimer(document["evidence"])
    return [*([] if said is None else [said]), *map(str, receipt.get("caveats", ()))]


def sentences(document: Document, found: Sequence[Line]) -> list[str]:
    """Return what was measured and what came out, in a few sentences of plain fact."""
    return [
        _measured(found),
        *_compared(document, found),
        *_ratios(found),
        *_noise(found),
        *_ceilings(document, found),
        *_troubles(document, found),
    ]


def _measured(found: Sequence[Line]) -> str:
    cases = len({(line.row["operation"], line.case) for line in found})
    names = len(implementations_of(found))
    dtypes = sorted({line.dtype for line in found if line.dtype})
    threads = sorted({line.threads for line in found if line.threads is not None})
    figures = sum(line.figures is not None for line in found)
    parts = [f"{_count(cases, 'case')} of {_count(names, 'implementation')}"]
    parts += [f"in {_listed(dtypes)}"] if dtypes else []
    parts += [f"on {_listed(list(map(str, threads)))} thread{'s' * (threads != [1])}"] * bool(
        threads
    )
    regimes = regimes_of(found)
    inside = f", {_listed(regimes)}" if regimes else ""
    return f"{' '.join(parts)}{inside}: {_count(figures, 'row')} with figures."


def _compared(document: Document, found: Sequence[Line]) -> list[str]:
    said = []
    for regime in regimes_of(found):
        rows = [line for line in found if line.regime == regime and line.against is not None]
        counts = Counter(line.verdict for line in rows)
        shown = [f"{counts[word]} {word}" for word in (*VERDICTS, UNSTABLE) if counts[word]]
        untold = sum(line.regime == regime and line.doubt is not None for line in found)
        shown += [f"{untold} without a ratio"] if untold else []
        if shown:
            said.append(f"Against {document['baseline']}, {regime}: {', '.join(shown)}.")
    return said


def _ratios(found: Sequence[Line]) -> list[str]:
    """Return the median ratios, the quickest first; lines without a verdict do not enter."""
    said = []
    for regime in regimes_of(found):
        ranked = sorted(
            (standing.ratio, standing.implementation)
            for standing in standings(found)
            if standing.ratio is not None and standing.regime == regime
        )
        if ranked:
            listed = ", ".join(f"{name} {ratio:.2f}" for ratio, name in ranked)
            said.append(f"Median time over the baseline's, {regime} (below 1 is faster): {listed}.")
    return said


def _noise(found: Sequence[Line]) -> list[str]:
    """Say by how much the same thing measured twice differs."""
    said = []
    for regime in regimes_of(found):
        inside = [line.noise for line in found if line.regime == regime and not line.unstable]
        bands = [100 * band for band in inside if band is not None]
        if bands:
            said.append(
                f"The same thing measured twice differs by up to {max(bands):.1f} %, "
                f"{median(bands):.1f} % at the median row, {regime}."
            )
    return said


def _ceilings(document: Document, found: Sequence[Line]) -> list[str]:
    said = []
    for regime in regimes_of(found):
        ours = [
            line
            for line in found
            if line.regime == regime and line.implementation == document["implementation"]
        ]
        shares = [100 * share for line in ours if (share := _share(line)) is not None]
        if shares:
            least, most = f"{min(shares):.0f}", f"{max(shares):.0f}"
            part = f"{least} %" if least == most else f"{least} to {most} %"
            middle = "" if least == most else f", {median(shares):.0f} % at the median"
            said.append(
                f"{document['implementation']} reaches {part} of what the machine allows{middle}, "
                f"{regime}."
            )
    about = document.get("ceilings") or {}
    if about.get("absent"):
        return [*said, f"No ceilings: {about['absent']}."]
    unknown = sum(
        line.times is not None and line.bytes_moved is not None and line.roofline is None
        for line in found
        if line.regime != "enqueue"  # no work is done there
    )
    if about.get("level") and unknown:
        said.append(
            f"No ceiling is known for {_count(unknown, 'row')}: one of its passes was disturbed in "
            "every round, or more threads took part than the probe has."
        )
    return said


def _troubles(document: Document, found: Sequence[Line]) -> list[str]:
    counts = Counter(line.verdict for line in found)
    ended = [f"{word}: {counts[state]}" for state, word in _STATES if counts[state]]
    said = [f"Rows that {'; '.join(ended)}."] if ended else []
    if counts["not run"]:
        said.append(f"The run did not end: {_count(counts['not run'], 'row')} did not run.")
    if counts[IMPOSSIBLE]:
        said.append(
            f"{_count(counts[IMPOSSIBLE], 'figure')} beyond what the machine allows: errors of "
            "measurement, not shown."
        )
    if counts[UNSTABLE]:
        said.append(f"Nothing is concluded from {_count(counts[UNSTABLE], 'UNSTABLE row')}.")
    missing = document.get("missing") or ()
    if missing:
        said.append(f"Not there: {_listed([str(other['name']) for other in missing])}.")
    return said


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " * (len(words) > 1) + words[-1] if words else "none"
