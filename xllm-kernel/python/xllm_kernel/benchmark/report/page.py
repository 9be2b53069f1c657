"""The report as one HTML page that needs nothing else: no network, no other file.

Its policy allows the style sheet and the script written into it, by hash, and nothing besides.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from xllm_kernel.benchmark.report import back, figures, front
from xllm_kernel.benchmark.report.figures import PAGE_LINES
from xllm_kernel.benchmark.report.html import Markup, data, joined, tag
from xllm_kernel.benchmark.report.lines import Document, Line, lines
from xllm_kernel.benchmark.report.samples import drawn
from xllm_kernel.benchmark.report.summary import title

_PARTS = {
    "summary": "Summary",
    "sweeps": "Sizes",
    "ratios": "Ratios",
    "figures": "Figures",
    "samples": "Samples",
    "environment": "Environment",
    "receipts": "Receipts",
    "validation": "Validation",
    "reasons": "Reasons",
    "missing": "Not there",
    "legend": "Legend",
}


def page(document: Document) -> str:
    """Return the whole page.

    Args:
        document: the report's JSON value.
    """
    found = lines(document)
    style, script = _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title(document, found)),
        tag("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, _body(document, found, script), lang='en')}\n"


def _body(document: Document, found: Sequence[Line], script: str) -> Markup:
    samples = drawn(found[:PAGE_LINES])
    links = [tag("li", tag("a", text, href=f"#{name}")) for name, text in _PARTS.items()]
    return tag(
        "body",
        tag("a", "Skip to the figures", href="#figures", class_="skip"),
        front.header(document, found),
        tag("nav", tag("ul", *links), aria_label="Parts of the report"),
        tag(
            "main",
            joined(front.summary(document, found), front.plots(found)),
            joined(figures.tables(found), figures.samples(samples)),
            joined(back.facts(document), back.receipts(document), back.validation(found)),
            joined(back.why(document, found), back.missing(document), back.meanings(found)),
        ),
        tag("script", data(samples), type="application/json", id="samples-data"),
        tag("script", Markup(script)),
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what a policy knows a text by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
