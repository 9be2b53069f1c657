"""What tells implementations apart in plots: a shape, a colour's number and a name each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xllm_kernel.benchmark.report.html import Markup, number, tag

COLORS = 8
"""As many as the style sheet has."""

_SHAPES = (
    "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",  # circle
    "M-3.2 -3.2h6.4v6.4h-6.4z",  # square
    "M0 -4.2L4 3H-4z",  # triangle
    "M0 -4.6L4 0L0 4.6L-4 0z",  # diamond
    "M0 4.2L4 -3H-4z",  # triangle, point down
    "M-1.4 -4h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6v-2.8h2.6z",  # plus
    "M0 -4.4L4.2 -1.3L2.6 3.6H-2.6L-4.2 -1.3z",  # pentagon
    "M-4 -4L0 -1.6L4 -4L1.6 0L4 4L0 1.6L-4 4L-1.6 0z",  # star of four
)


def styles(names: Sequence[str]) -> Mapping[str, int]:
    """Number the implementations; the number decides colour and shape."""
    return {name: i for i, name in enumerate(names)}


def color(style: int) -> str:
    """Return the class that gives a colour."""
    return f"c{style % COLORS}"


def mark(style: int, x: float, y: float, hollow: bool = False, title: str | None = None) -> Markup:
    """Draw a marker.

    Args:
        style: which; colours repeat after ``COLORS``, and then meet other shapes.
        x: its centre.
        y: its centre.
        hollow: for a figure that should not be relied on.
        title: what it says when pointed at.
    """
    return tag(
        "path",
        None if title is None else tag("title", title),
        d=_SHAPES[(style + style // COLORS) % len(_SHAPES)],
        transform=f"translate({number(x)} {number(y)})",
        class_=f"mark {color(style)}" + (" hollow" if hollow else ""),
    )


def key(names: Sequence[str], styles_of: Mapping[str, int]) -> Markup:
    """Return the list that says which mark is which implementation."""
    items = [
        tag(
            "li",
            tag(
                "svg",
                tag("path", d="M0 7H24", class_=f"curve {color(styles_of[name])}"),
                mark(styles_of[name], 12, 7),
                viewBox="0 0 24 14",
                aria_hidden="true",
                class_="sign",
            ),
            name,
        )
        for name in names
    ]
    return tag("ul", *items, class_="key")
