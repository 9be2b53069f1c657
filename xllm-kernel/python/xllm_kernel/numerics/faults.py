"""Every fault that is planted to see what a suite notices: the general ones, and a suite's own."""

from __future__ import annotations

from xllm_kernel.numerics import planted_conduct, planted_results
from xllm_kernel.numerics.planting import Fault
from xllm_kernel.numerics.suite import OperationSuite

GENERAL: tuple[Fault, ...] = (
    *planted_results.VALUES,
    *planted_results.FORM,
    *planted_conduct.MEMORY,
    *planted_conduct.MEMORY_OF_CALLS,
    *planted_conduct.ENDING,
    *planted_conduct.DEPENDENCE,
)


def faults(suite: OperationSuite) -> tuple[Fault, ...]:
    """Return the faults that a suite is tried with, the general ones first."""
    return (*GENERAL, *suite.faults)
