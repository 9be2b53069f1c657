"""The list of built-in suites."""

from __future__ import annotations

import importlib

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.numerics.suite import OperationSuite

_BUILTINS: tuple[str, ...] = (
    "xllm_kernel.numerics.rms_norm",
    "xllm_kernel.numerics.rms_norm_out",
    "xllm_kernel.numerics.fused_add_rms_norm",
    "xllm_kernel.numerics.fused_add_rms_norm_inplace",
)


def suites() -> dict[str, OperationSuite]:
    """Return every built-in suite by operation; importing them needs no framework.

    Raises:
        ConfigurationError: when a module exports no suite, or when two suites claim one operation
            or one implementation.
    """
    found: dict[str, OperationSuite] = {}
    owners: dict[str, str] = {}
    for path in _BUILTINS:
        suite: OperationSuite | None = getattr(importlib.import_module(path), "SUITE", None)
        if suite is None:
            raise ConfigurationError(f"suite catalog: {path} must export SUITE; add it")
        if suite.operation in found:
            raise ConfigurationError(
                f"suite catalog: operation '{suite.operation}' must have one suite, but {path} is "
                "another; merge them"
            )
        for name in suite.implementations:
            if name in owners:
                raise ConfigurationError(
                    f"suite catalog: implementation '{name}' must belong to one suite, but "
                    f"{owners[name]} and {path} both list it"
                )
            owners[name] = path
        found[suite.operation] = suite
    return found
