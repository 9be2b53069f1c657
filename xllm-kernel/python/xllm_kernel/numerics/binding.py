"""Bind exactly the implementation that was asked for, through the worker's own initializer."""

from __future__ import annotations

import os

from xllm_kernel.errors import ConfigurationError
from xllm_kernel.registry import PreparedKernel
from xllm_kernel.runtime import initialize
from xllm_kernel.selection import environment_key


def bind(operation: str, device: str, mode: str, implementation: str) -> PreparedKernel:
    """Initialise the process for one implementation and return its plan.

    Args:
        operation: name of the operation.
        device: device type.
        mode: execution mode.
        implementation: full name.

    Raises:
        ConfigurationError: when the environment chooses another implementation, or the
            implementation does not fit device and mode.
        KernelError: as ``initialize``.
    """
    plans = initialize(device=device, execution_mode=mode, overrides={operation: implementation})
    plan = plans.get(operation)
    if plan is not None and plan.spec.name == implementation:
        return plan
    variable = environment_key(operation)
    chosen = "nothing" if plan is None else plan.spec.name
    cause = f"{variable}={os.environ[variable]}" if variable in os.environ else "the registry"
    raise ConfigurationError(
        f"{operation}: '{implementation}' was requested, but {cause} chose {chosen}; unset "
        f"{variable} or request that implementation"
    )
