"""Every fault that is planted to see what a suite notices: the general ones, and a suite's own."""

from __future__ import annotations

from xllm_kernel.numerics.planted import conduct, results
from xllm_kernel.numerics.planted.fault import Fault
from xllm_kernel.numerics.suite import OperationSuite

GENERAL: tuple[Fault, ...] = (
    *results.VALUES,
    *results.FORM,
    *conduct.MEMORY,
    *conduct.MEMORY_OF_CALLS,
    *conduct.CAPTURED,
    *conduct.ENDING,
    *conduct.DEPENDENCE,
)


def faults(suite: OperationSuite) -> tuple[Fault, ...]:
    """Return the faults that a suite is tried with, the general ones first."""
    return (*GENERAL, *suite.faults)
