"""Stands where an operator does, to show which calls its builtin takes by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from xllm_kernel import fastcall


class Spy:
    """Binds an operator's builtin around itself, and counts what that hands on to it."""

    def __init__(self, operation: str) -> None:
        from xllm_kernel._build import fastcall as marker

        self.calls = 0
        name = f"simd_{operation}"
        self.operator: Any = getattr(torch.ops.xllm_kernel, name).default
        native: Any = fastcall._load(marker.MANIFEST, Path(marker.__file__).parent)
        self.builtin: Any = native.bind(name, self)

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        self.calls += 1
        return self.operator(*arguments, **keywords)

    def takes(self, *arguments: object, **keywords: object) -> bool:
        """Call the builtin and say whether it did the work itself."""
        before = self.calls
        self.builtin(*arguments, **keywords)
        return self.calls == before
