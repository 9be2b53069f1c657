"""Ratios to the baseline with their intervals, before the band of noise; nothing here judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xllm_kernel.benchmark.names import shortened
from xllm_kernel.benchmark.report.columns import ratio_text
from xllm_kernel.benchmark.report.html import Markup, joined, number, tag
from xllm_kernel.benchmark.report.lines import Line
from xllm_kernel.benchmark.report.plots.marks import color, mark
from xllm_kernel.benchmark.report.plots.scales import Log, spanning
from xllm_kernel.benchmark.report.plots.sweeps import Panel, panel_name

WIDTH = 380
_SIDE, _TOP, _BOTTOM = 10, 34, 22
_NAME, _LANE, _GAP = 15, 11, 7
_LETTERS = 48


def panels(found: Sequence[Line]) -> list[Panel]:
    """Sort the lines that have a ratio into plots, as sweeps are."""
    sorted_: dict[str, list[Line]] = {}
    for line in found:
        if line.against is not None:
            sorted_.setdefault(panel_name(line), []).append(line)
    return [Panel(name, lines) for name, lines in sorted_.items()]


def intervals(panel: Panel, alike: Sequence[Panel], styles: Mapping[str, int]) -> Markup:
    """Draw a plot.

    Args:
        panel: what it shows.
        alike: plots that share its axis, itself among them.
        styles: of implementations.
    """
    across = spanning(
        [1.0, *(value for each in alike for line in each.lines for value in _values(line))],
        _SIDE,
        WIDTH - _SIDE,
    )
    short = shortened([line.case for line in panel.lines]).names
    cases: dict[str, list[Line]] = {}
    for line in panel.lines:
        cases.setdefault(line.case, []).append(line)
    y, bands, parts = float(_TOP), [], []
    for case, lines in cases.items():
        bands += _bands(lines, y, across)
        parts.append(_case(short[case], lines, y, across, styles))
        y += _NAME + _LANE * len(lines) + _GAP
    return tag(
        "svg",
        tag("title", f"Ratios to the baseline: {panel.name}"),
        *bands,
        _axis(across, y),
        *parts,
        viewBox=f"0 0 {WIDTH} {number(y + _BOTTOM)}",
        role="img",
        class_="plot",
    )


def _values(line: Line) -> list[float]:
    """Return the ends of an interval that are numbers above zero, and its middle."""
    known = [float(value) for value in (line.against or {})["ratio"].values()]
    return [value for value in known if 0 < value < float("inf")]


def _axis(across: Log, bottom: float) -> Markup:
    parts = []
    for value in across.ticks(6):
        x = number(across(value))
        parts.append(tag("path", d=f"M{x} {_TOP - 6}V{number(bottom)}", class_="grid"))
        for y in (_TOP - 10, bottom + 13):
            parts.append(tag("text", f"{value:.4g}", x=x, y=number(y), class_="tick middle"))
    one = number(across(1.0))
    parts.append(tag("path", d=f"M{one} {_TOP - 6}V{number(bottom)}", class_="one"))
    parts.append(tag("text", "◂ faster", x=_SIDE, y=11, class_="axis"))
    parts.append(tag("text", "slower ▸", x=WIDTH - _SIDE, y=11, class_="axis end"))
    return joined(*parts)


def _bands(lines: Sequence[Line], top: float, across: Log) -> list[Markup]:
    """Draw the noise of each line, behind everything else."""
    bands = []
    for i, line in enumerate(lines):
        band = float((line.against or {})["band"])
        left, right = across(max(1 - band, across.low)), across(1 + band)
        place = {"x": number(left), "y": number(top + _NAME + _LANE * i)}
        size = {"width": number(right - left), "height": _LANE}
        bands.append(tag("rect", **place, **size, class_="band"))
    return bands


def _case(
    name: str, lines: Sequence[Line], top: float, across: Log, styles: Mapping[str, int]
) -> Markup:
    shown = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    parts = [tag("text", tag("title", name), shown, x=_SIDE, y=number(top + 10), class_="case")]
    for i, line in enumerate(lines):
        y = top + _NAME + _LANE * (i + 0.5)
        parts.append(_whisker(line, y, across, styles[line.implementation]))
    return joined(*parts)


def _whisker(line: Line, y: float, across: Log, style: int) -> Markup:
    against = line.against or {}
    ratio = against["ratio"]
    left, right = (across(float(ratio[end])) for end in ("low", "high"))
    caps = "".join(
        f"M{number(x)} {number(y - 3)}v6"
        for x, end in ((left, "low"), (right, "high"))
        if across.low <= float(ratio[end]) <= across.high
    )
    says = f"{line.implementation}, {line.case}: {ratio_text(ratio)} {line.verdict}"
    return joined(
        tag(
            "path",
            d=f"M{number(left)} {number(y)}H{number(right)}{caps}",
            class_=f"whisker {color(style)}",
        ),
        mark(style, across(float(ratio["middle"])), y, bool(line.unstable), says),
    )
