"""What people see of a benchmark, made from a report's document alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xllm_kernel.benchmark.report.columns import microseconds
from xllm_kernel.benchmark.report.markdown import markdown
from xllm_kernel.benchmark.report.page import page
from xllm_kernel.benchmark.report.terminal import terminal
from xllm_kernel.numerics.report import replace_text, uninterrupted

__all__ = ["markdown", "microseconds", "page", "terminal", "write_all"]


def write_all(document: Mapping[str, Any], path: Path) -> None:
    """Write JSON and, beside it, Markdown and HTML; each replaces its predecessor in one step.

    An interrupt waits until all are there.

    Args:
        document: the report's JSON value, finite numbers only.
        path: the JSON's; the others have its name with their own ending.

    Raises:
        OSError: where a file cannot be written.
    """
    place = path.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        place: json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n",
        place.with_suffix(".md"): markdown(document),
        place.with_suffix(".html"): page(document),
    }
    with uninterrupted():
        for file, text in texts.items():
            replace_text(file, text)
