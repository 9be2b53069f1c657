"""The last parts of the HTML page: what stands behind the figures, and what words mean.

Markup only; the facts come from ``facts`` and ``reasons``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xllm_kernel.benchmark.report.columns import REGIME_MEANINGS, legend
from xllm_kernel.benchmark.report.facts import environment, other_builds, run_facts, worst_error
from xllm_kernel.benchmark.report.figures import PAGE_LINES
from xllm_kernel.benchmark.report.front import badge, scrolled, section
from xllm_kernel.benchmark.report.html import Markup, joined, tag
from xllm_kernel.benchmark.report.lines import Document, Line, regimes_of
from xllm_kernel.benchmark.report.reasons import processes, reasons
from xllm_kernel.numerics.render import NOTHING


def facts(document: Document) -> Markup:
    """Return how the run was made, and on what."""
    return section(
        "environment",
        "Environment",
        _facts("The run", run_facts(document)),
        _facts("The machine and its software", environment(document)),
    )


def _facts(caption: str, known: Mapping[str, str]) -> Markup:
    rows = [tag("tr", tag("th", key, scope="row"), tag("td", text)) for key, text in known.items()]
    head = tag("tr", tag("th", "fact", scope="col"), tag("th", "value", scope="col"))
    return scrolled(caption, tag("thead", head), tag("tbody", *rows), kind="facts")


def receipts(document: Document) -> Markup:
    """Return what was built and chosen, and which candidates were passed over."""
    receipt = document["receipt"]
    if receipt is None:
        return section("receipts", "Receipts", tag("p", "Nothing was chosen.", class_="muted"))
    built = [tag("li", str(fact)) for fact in receipt.get("build", ())]
    passed = [
        tag("li", tag("code", other["name"]), f": {other['code']}: {other['reason']}")
        for other in receipt["excluded"]
    ]
    return section(
        "receipts",
        "Receipts",
        tag(
            "p",
            f"Chosen: {receipt['implementation']}, priority {receipt['priority']}; plan ",
            tag("code", receipt["plan_hash"]),
        ),
        tag("h3", "Built as"),
        tag("ul", *built) if built else tag("p", "Nothing of ours was built.", class_="muted"),
        *_others(document),
        tag("h3", "Candidates passed over"),
        tag("ul", *passed) if passed else tag("p", "None.", class_="muted"),
    )


def _others(document: Document) -> list[Markup]:
    """Return what the other implementations of the run were built as."""
    builds = other_builds(document)
    return [
        part
        for name, built in builds.items()
        for part in (
            tag("h3", f"{name}: built as"),
            tag("ul", *(tag("li", fact) for fact in built)),
        )
    ]


def validation(found: Sequence[Line]) -> Markup:
    """Return the verdicts of validation by phase, and the worst error, of every row."""
    lines = list({id(line.row): line for line in found}.values())
    phases = list(dict.fromkeys(name for line in lines for name in line.row["validation"]))
    judged = [line for line in lines if line.row["validation"]][:PAGE_LINES]
    if not judged:
        return section("validation", "Validation", tag("p", "No row was judged.", class_="muted"))
    head = ["case", "implementation", "threads", *phases, "worst error"]
    rows = [_judged(line, phases) for line in judged]
    failed = sum(
        verdict["status"] != "passed"
        for line in lines
        for verdict in line.row["validation"].values()
    )
    total = sum(len(line.row["validation"]) for line in lines)
    parts = (
        tag("thead", tag("tr", *(tag("th", text, scope="col") for text in head))),
        tag("tbody", *rows),
    )
    return section(
        "validation",
        "Validation",
        tag(
            "p",
            f"{total} verdicts on outputs, {failed} of them failed. A row is timed only after it "
            "passed, and is judged again after timing.",
        ),
        tag(
            "details",
            tag("summary", f"Verdicts and errors of {len(judged)} rows"),
            scrolled("Verdicts by phase", *parts, tall=True),
        ),
    )


def _judged(line: Line, phases: Sequence[str]) -> Markup:
    verdicts = line.row["validation"]
    words = [verdicts[name]["status"] if name in verdicts else NOTHING for name in phases]
    cells = [
        line.implementation,
        NOTHING if line.threads is None else str(line.threads),
        *(badge(word) if word == "failed" else word for word in words),
        worst_error(line.row) or NOTHING,
    ]
    return tag("tr", tag("th", line.case, scope="row"), *(tag("td", cell) for cell in cells))


def why(document: Document, found: Sequence[Line]) -> Markup:
    """Return why rows have no figures, or figures not to rely on."""
    items = []
    for reason in reasons(found)[:PAGE_LINES]:
        quoted = [text for text in (reason.reproduce, reason.stderr) if text]
        blocks = [tag("pre", tag("code", text), tabindex="0") for text in quoted]
        items.append(tag("li", tag("strong", reason.place), ": ", reason.text, *blocks))
    items += [tag("li", sentence) for sentence in processes(document)]
    body = tag("ul", *items) if items else tag("p", "Every row has figures.", class_="muted")
    return section("reasons", "Reasons", body)


def missing(document: Document) -> Markup:
    """Return who is not there, and why."""
    items = [
        tag("li", tag("strong", other["name"]), ": ", other["reason"])
        for other in document.get("missing") or ()
    ]
    body = tag("ul", *items) if items else tag("p", "Nobody is missing.", class_="muted")
    return section("missing", "Not there", body)


def meanings(found: Sequence[Line]) -> Markup:
    """Return what columns, verdicts and regimes mean."""
    columns, verdicts = legend(found)
    known = {column.heading.replace(" us", " µs"): column.meaning for column in columns}
    regimes = {name: REGIME_MEANINGS.get(name, "") for name in regimes_of(found)}
    listed = [(tag("dt", name), tag("dd", means)) for name, means in {**known, **regimes}.items()]
    listed += [(tag("dt", badge(word)), tag("dd", means)) for word, means in verdicts.items()]
    pairs = (tag("div", term, meaning) for term, meaning in listed)
    return section("legend", "Legend", joined(tag("dl", *pairs, class_="legend")))
