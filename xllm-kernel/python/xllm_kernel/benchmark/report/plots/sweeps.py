"""Time against bytes moved, on logarithmic axes, with what the machine allows.

One plot for each regime, dtype and number of threads; nothing here ranks or judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xllm_kernel.benchmark.report.html import Markup, joined, number, tag
from xllm_kernel.benchmark.report.lines import Line, regimes_of
from xllm_kernel.benchmark.report.plots.marks import color, mark
from xllm_kernel.benchmark.report.plots.scales import Log, bytes_, microseconds, spanning

WIDTH, HEIGHT = 380, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 8, 40


@dataclass(frozen=True, slots=True)
class Panel:
    """What one plot holds.

    Attributes:
        name: its caption.
        lines: all with a result and a size.
    """

    name: str
    lines: Sequence[Line]


def panels(found: Sequence[Line]) -> list[Panel]:
    """Sort the lines that have a result and a size into plots."""
    sized = [line for line in found if line.median is not None and line.bytes_moved]
    sorted_: dict[str, list[Line]] = {}
    for regime in regimes_of(sized):
        for line in sized:
            if line.regime == regime:
                sorted_.setdefault(panel_name(line), []).append(line)
    return [Panel(name, lines) for name, lines in sorted_.items()]


def panel_name(line: Line) -> str:
    """Name the plot that a line belongs to."""
    threads = f"{line.threads} thread{'s' * (line.threads != 1)}" if line.threads else ""
    return ", ".join(part for part in (line.regime, line.dtype, threads) if part)


def sweep(panel: Panel, alike: Sequence[Panel], styles: Mapping[str, int]) -> Markup:
    """Draw a plot.

    Args:
        panel: what it shows.
        alike: plots that share its axes, itself among them.
        styles: of implementations.
    """
    lines = [line for each in alike for line in each.lines]
    across = spanning((line.bytes_moved or 1 for line in lines), _LEFT, WIDTH - _RIGHT)
    times = [line.median or 0.0 for line in lines] + [us for line in lines for us in _least(line)]
    upward = spanning(times, HEIGHT - _BOTTOM, _TOP)
    curves = [
        _curve([line for line in panel.lines if line.implementation == name], across, upward, style)
        for name, style in styles.items()
    ]
    return tag(
        "svg",
        tag("title", f"Time against bytes moved: {panel.name}"),
        _grid(across, upward),
        _ceiling(panel, across, upward),
        *curves,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        class_="plot",
    )


def _least(line: Line) -> list[float]:
    """Return the time that the pass which binds takes for a line's work, if it is known."""
    found = line.roofline
    return [] if found is None else [float(found["ceilings_us"][found["binding"]])]


def _grid(across: Log, upward: Log) -> Markup:
    bottom = HEIGHT - _BOTTOM
    parts = []
    for value in across.ticks(4):  # more would run into one another
        x = number(across(value))
        parts.append(tag("path", d=f"M{x} {_TOP}V{bottom}", class_="grid"))
        parts.append(tag("text", bytes_(value), x=x, y=bottom + 15, class_="tick middle"))
    for value in upward.ticks(7):
        y = upward(value)
        parts.append(tag("path", d=f"M{_LEFT} {number(y)}H{WIDTH - _RIGHT}", class_="grid"))
        text = microseconds(value)
        parts.append(tag("text", text, x=_LEFT - 5, y=number(y + 3.5), class_="tick end"))
    middle = number((_LEFT + WIDTH - _RIGHT) / 2)
    parts.append(tag("text", "bytes moved a call", x=middle, y=HEIGHT - 6, class_="axis middle"))
    return joined(*parts)


def _ceiling(panel: Panel, across: Log, upward: Log) -> Markup | None:
    least: dict[int, float] = {}
    for line in panel.lines:
        for us in _least(line):
            size = line.bytes_moved or 1
            least[size] = min(us, least.get(size, us))
    if not least:
        return None
    points = [f"{number(across(size))} {number(upward(us))}" for size, us in sorted(least.items())]
    drawn = "M" + "L".join(points)
    ends = [number(across(size)) for size in (max(least), min(least))]
    area = f"{drawn}V{HEIGHT - _BOTTOM}H{ends[1]}z" if len(least) > 1 else ""
    return joined(
        tag("path", d=area, class_="beyond") if area else None,
        tag("path", tag("title", "what the machine allows"), d=drawn, class_="ceiling"),
        *(tag("path", d=f"M{point}m-5 0h10", class_="ceiling solid") for point in points),
    )


def _curve(lines: Sequence[Line], across: Log, upward: Log, style: int) -> Markup:
    placed = sorted(
        ((line.bytes_moved or 1, line.median or 0.0, line) for line in lines),
        key=lambda point: point[:2],
    )
    points = [f"{number(across(size))} {number(upward(us))}" for size, us, _ in placed]
    curve = tag("path", d="M" + "L".join(points), class_=f"curve {color(style)}")
    marks = [
        mark(
            *(style, across(size), upward(us), bool(line.unstable)),
            title=f"{line.implementation}, {line.case}: {microseconds(us)}",
        )
        for size, us, line in placed
    ]
    return joined(curve if len(points) > 1 else None, *marks)
