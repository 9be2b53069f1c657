"""Elements of HTML and SVG as text; whatever is not markup made here is escaped.

Knows no page and no report.
"""

from __future__ import annotations

import html
import json


class Markup(str):
    """Text that is markup already, because it was made by ``tag`` or ``joined``."""

    __slots__ = ()


Child = str | float | None
"""Markup, or text that is escaped; None is nothing."""

_VOID = {"meta", "link", "input", "br"}


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element.

    Args:
        name: the element's.
        children: what it holds.
        attributes: without those that are None or False; True is an attribute without a value. A
            trailing underscore is dropped and others become hyphens: ``class_``, ``data_value``.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key.rstrip("_").replace("_", "-")
        words.append(shown if value is True else f'{shown}="{_escape(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return Markup(opened if name in _VOID else f"{opened}{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Return elements and texts one after the other."""
    return Markup("".join(_child(child) for child in children if child is not None))


def data(value: object) -> Markup:
    """Return JSON that can stand inside of a script element: nothing in it can end that."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def number(value: float) -> str:
    """Return a coordinate with one decimal, without zeros that say nothing."""
    return f"{value:.1f}".removesuffix(".0")


def _child(child: str | float) -> str:
    return child if isinstance(child, Markup) else _escape(str(child))


def _escape(text: str) -> str:
    """Escape markup, and characters that no HTML may hold."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return html.escape(text, quote=True)
