"""The first parts of the HTML page: heading, summary, and plots.

Markup only; what is said and drawn comes from ``summary`` and ``plots``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xllm_kernel.benchmark.report.html import Markup, joined, tag
from xllm_kernel.benchmark.report.lines import (
    UNSTABLE,
    VERDICTS,
    Document,
    Line,
    implementations_of,
)
from xllm_kernel.benchmark.report.plots import intervals, sweeps
from xllm_kernel.benchmark.report.plots.marks import key, styles
from xllm_kernel.benchmark.report.plots.sweeps import Panel
from xllm_kernel.benchmark.report.summary import (
    Standing,
    headline,
    notices,
    sentences,
    standings,
    title,
    where,
)
from xllm_kernel.numerics.render import NOTHING

SIGNS = {
    "FASTER": "▲",
    "SLOWER": "▼",
    "SAME": "=",
    "AMBIGUOUS": "?",
    "UNSTABLE": "~",
    "IMPOSSIBLE": "✕",
    "failed": "✕",
    "error": "✕",
}
"""A sign beside each word, so that nothing is told by colour alone."""

_OPEN = 6
"""Plots of a kind that are open; further ones are behind a click."""

_SWEEPS = (
    "Median time of a call against the bytes that it must move, both axes logarithmic. Dashes mark "
    "what the machine's best pass takes for the same work; the shaded side is out of reach. Hollow "
    "marks are unstable."
)
_RATIOS = (
    "Time over the baseline's in the same rounds, with its 95 % interval: left of 1 is faster. "
    "Shaded is the band of noise: what two processes of the same code differ by, and 0.95 %. "
    "Hollow marks are unstable."
)
Draw = Callable[[Panel, Sequence[Panel], Mapping[str, int]], Markup]


def badge(word: str) -> Markup:
    """Return a verdict or a state, with its sign."""
    sign = SIGNS.get(word)
    kind = f"badge {word.lower().replace(' ', '-').replace('/', '')}"
    return tag(
        "span", *([tag("i", sign, aria_hidden="true"), " "] if sign else []), word, class_=kind
    )


def section(name: str, heading: str, *children: Markup | str | None) -> Markup:
    """Return a part of the page that links reach by name."""
    return tag(
        "section",
        tag("h2", heading, id=f"{name}-heading"),
        *children,
        id=name,
        aria_labelledby=f"{name}-heading",
    )


def header(document: Document, found: Sequence[Line]) -> Markup:
    """Return the heading: the status, what ran, and what must be known before any figure."""
    word, _, counts = headline(document).partition("  ")
    facts = [where(document), document["started"]]
    facts += [f"revision {document['revision']}"] if document["revision"] else []
    return tag(
        "header",
        tag("h1", title(document, found)),
        tag(
            "p",
            tag("strong", word, class_=f"status {document['status'].replace('_', '-')}"),
            f" {counts}",
        ),
        tag("p", " · ".join(facts), class_="muted"),
        tag("p", f"Reason: {document['reason']}") if document["reason"] else None,
        *(tag("p", notice, class_="notice", role="note") for notice in notices(document)),
        id="top",
    )


def summary(document: Document, found: Sequence[Line]) -> Markup:
    """Return the summary: a few sentences, and each implementation in one row."""
    known = standings(found)
    said = [tag("li", sentence) for sentence in sentences(document, found)]
    several = len(known) > 1
    return section(
        "summary",
        "Summary",
        _tiles(document, known),
        tag("ul", *said, class_="sentences"),
        _standings(known) if several else None,
    )


def _tiles(document: Document, known: Sequence[Standing]) -> Markup | None:
    """Return the figures of the run's own implementation, in the first regime that has them."""
    ours = next((each for each in known if each.implementation == document["implementation"]), None)
    if ours is None:
        return None
    tiles = []
    if ours.ratio is not None:
        tiles.append((f"{ours.ratio:.2f}", f"of the time of {document['baseline']}, median"))
    if ours.share is not None:
        tiles.append((f"{100 * ours.share:.0f} %", "of what the machine allows, median"))
    counts = [f"{ours.verdicts[word]} {word}" for word in VERDICTS if ours.verdicts[word]]
    if counts:
        tiles.append((counts[0], ", ".join(counts[1:]) or "and no other verdict"))
    tiles.append((str(ours.rows), f"rows of {ours.implementation}, {ours.regime}"))
    return tag(
        "div",
        *(
            tag("div", tag("b", figure), tag("span", words), class_="tile")
            for figure, words in tiles
        ),
        class_="tiles",
    )


def _standings(known: Sequence[Standing]) -> Markup:
    words = [word for word in (*VERDICTS, UNSTABLE) if any(each.verdicts[word] for each in known)]
    head = ["implementation", "regime", "rows", "median ratio", "of ceiling", *words]
    rows = []
    for each in known:
        ratio = "baseline" if each.is_baseline else _or_dash(each.ratio, "{:.2f}")
        share = _or_dash(None if each.share is None else 100 * each.share, "{:.0f} %")
        figures = [str(each.rows), ratio, share, *(str(each.verdicts[word]) for word in words)]
        rows.append(
            tag(
                "tr",
                tag("th", each.implementation, scope="row"),
                tag("td", each.regime),
                *(tag("td", text, class_="num") for text in figures),
            )
        )
    cells = [tag("th", t, scope="col", class_="num" if i > 1 else None) for i, t in enumerate(head)]
    return scrolled(
        "Implementations, by regime", tag("thead", tag("tr", *cells)), tag("tbody", *rows)
    )


def scrolled(caption: str, *parts: Markup, kind: str | None = None, tall: bool = False) -> Markup:
    """Return a table that scrolls by itself, also by keyboard.

    Args:
        caption: the table's.
        parts: its head and body.
        kind: its class.
        tall: whether it may be long, so that it scrolls downward too.
    """
    return tag(
        "div",
        tag("table", tag("caption", caption), *parts, class_=kind),
        class_="scroll tall" if tall else "scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def plots(found: Sequence[Line]) -> Markup:
    """Return both kinds of plots; a kind that has nothing to draw says so."""
    names = implementations_of(line for line in found if line.times is not None)
    of = styles(names)
    return joined(
        section(
            "sweeps",
            "Time against size",
            *_figures(sweeps.panels(found), names, of, sweeps.sweep, _SWEEPS),
        ),
        section(
            "ratios",
            "Ratios to the baseline",
            *_figures(intervals.panels(found), names, of, intervals.intervals, _RATIOS),
        ),
    )


def _figures(
    panels: Sequence[Panel], names: Sequence[str], of: Mapping[str, int], draw: Draw, says: str
) -> list[Markup]:
    if not panels:
        return [tag("p", "No row has what would be drawn here.", class_="muted")]
    drawn = []
    for panel in panels:
        regime = panel.lines[0].regime
        alike = [other for other in panels if other.lines[0].regime == regime]
        caption = tag("figcaption", panel.name)
        drawn.append(tag("figure", caption, draw(panel, alike, of)))
    inside = {line.implementation for panel in panels for line in panel.lines}
    more = drawn[_OPEN:]
    rest = tag("summary", f"{len(more)} more plots"), tag("div", *more, class_="plots")
    return [
        tag("p", says, class_="muted"),
        key([name for name in names if name in inside], of),
        tag("div", *drawn[:_OPEN], class_="plots"),
        *([tag("details", *rest)] if more else []),
    ]


def _or_dash(value: float | None, form: str) -> str:
    return NOTHING if value is None else form.format(value)
