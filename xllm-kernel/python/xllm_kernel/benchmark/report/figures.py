"""The HTML page's tables of figures, the controls that filter them, and the samples of a row.

Written so that everything but filtering, sorting and the samples' plot works without a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xllm_kernel.benchmark.names import shortened
from xllm_kernel.benchmark.report.columns import (
    CASE,
    REGIME_MEANINGS,
    VERDICT,
    Column,
    groups,
    table,
)
from xllm_kernel.benchmark.report.front import badge, scrolled, section
from xllm_kernel.benchmark.report.html import Markup, tag
from xllm_kernel.benchmark.report.lines import Line, implementations_of, regimes_of

PAGE_LINES = 3000
"""Lines that a page shows: with more it would be too large to send around."""

_WITHOUT = "without figures"


def tables(found: Sequence[Line]) -> Markup:
    """Return a table for each regime, and one for rows without figures."""
    shown = found[:PAGE_LINES]
    numbers = {id(line): i for i, line in enumerate(shown)}
    over = len(found) - len(shown)
    drawn = [_table(regime, some, numbers) for regime, some in groups(shown)]
    return section(
        "figures",
        "Figures",
        _filters(shown) if shown else tag("p", "No rows.", class_="muted"),
        tag("p", f"{over} more rows are in the JSON alone.", class_="notice") if over else None,
        *drawn,
    )


def _table(regime: str | None, some: Sequence[Line], numbers: Mapping[int, int]) -> Markup:
    columns, cells = table(some)
    short = shortened([line.case for line in some]).names
    name = _WITHOUT if regime is None else regime
    meaning = REGIME_MEANINGS.get(name)
    head = [
        tag(
            "th",
            _heading(column),
            scope="col",
            class_=None if column.words else "num",
            title=None if column is VERDICT else column.meaning,
            data_key=column.heading,
            data_kind="number" if column.value else "text",
        )
        for column in columns
    ]
    rows = [
        _row(line, numbers[id(line)], short[line.case], columns, texts)
        for line, texts in zip(some, cells, strict=True)
    ]
    return tag(
        "div",
        scrolled(
            f"{name}: {meaning}" if meaning else name,
            tag("thead", tag("tr", *head)),
            tag("tbody", *rows),
            kind="figures",
            tall=True,
        ),
        class_="regime",
        data_regime=name,
    )


def _heading(column: Column) -> str:
    return column.heading.replace(" us", " µs")


def _row(
    line: Line, number: int, case: str, columns: Sequence[Column], texts: Sequence[str]
) -> Markup:
    cells = []
    for column, text in zip(columns, texts, strict=True):
        value = column.value(line) if column.value else None
        if column is CASE:
            link = tag("a", case, title=text, href=f"#row={number}", data_row=number)
            cells.append(tag("th", link, scope="row"))
            continue
        cells.append(
            tag(
                "td",
                badge(text) if column.heading in ("verdict", "result") and text != "-" else text,
                class_=None if column.words else "num",
                data_value=value,
            )
        )
    return tag(
        "tr",
        *cells,
        id=f"row={number}",
        data_implementation=line.implementation,
        data_dtype=line.dtype,
        data_threads="" if line.threads is None else line.threads,
        data_verdict=line.verdict,
    )


def _filters(found: Sequence[Line]) -> Markup:
    regimes = regimes_of(found) + [_WITHOUT] * any(line.regime is None for line in found)
    choices = {
        "implementation": implementations_of(found),
        "dtype": _sorted(line.dtype for line in found),
        "threads": [str(n) for n in sorted({line.threads for line in found if line.threads})],
        "regime": regimes,
        "verdict": _sorted(line.verdict for line in found),
    }
    return tag(
        "form",
        *(_choice(name, values) for name, values in choices.items()),
        tag("label", "text", tag("input", type="search", name="text", autocomplete="off")),
        tag("button", "show all", type="reset"),
        tag("output", role="status", id="shown"),
        id="filters",
        aria_label="Filter the figures",
        hidden=True,
    )


def _choice(name: str, values: Sequence[str]) -> Markup:
    options = [tag("option", "all", value=""), *(tag("option", v, value=v) for v in values)]
    return tag("label", name, tag("select", *options, name=name))


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted({value for value in values if value})


def samples(drawn: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Return the place where the samples of a chosen row are drawn.

    Args:
        drawn: what is drawn of each line, by its number.
    """
    if not drawn:
        return section("samples", "Samples of a row", tag("p", "No row has any.", class_="muted"))
    few = sum("stretches" in each for each in drawn.values())
    note = (
        f"Of {few} of the {len(drawn)} rows there are too many samples for a page: it has the "
        "least, the median and the greatest of each stretch of rounds. The JSON has every sample."
    )
    options = [tag("option", each["name"], value=number) for number, each in drawn.items()]
    return section(
        "samples",
        "Samples of a row",
        tag("p", note, class_="notice") if few else None,
        tag("noscript", tag("p", "Samples are drawn by a script; the JSON has them all.")),
        tag(
            "div",
            tag("label", "row", tag("select", *options, id="sample-row")),
            tag("div", id="sample-plot"),
            tag("p", id="sample-facts", aria_live="polite"),
            id="sample",
            hidden=True,
        ),
        _dropped(drawn),
    )


def _dropped(drawn: Mapping[str, Mapping[str, Any]]) -> Markup | None:
    rows = [
        tag("tr", tag("th", each["name"], scope="row"), tag("td", why), tag("td", n, class_="num"))
        for each in drawn.values()
        for why, n in each["dropped"].items()
    ]
    if not rows:
        return None
    head = [tag("th", text, scope="col") for text in ("row", "reason", "samples")]
    parts = (tag("thead", tag("tr", *head)), tag("tbody", *rows))
    return tag(
        "details",
        tag("summary", "Samples that do not count, by row and reason"),
        scrolled("Samples that do not count", *parts),
    )
