"""Which library holds the host's operators: the named one, or under the simulator the stand-in."""

from __future__ import annotations

import os
from pathlib import Path

from processes import REPOSITORY_ROOT

VARIABLE = "XLLM_KERNEL_HOST_LIBRARY"
STAND_IN = REPOSITORY_ROOT / "build/ascend-sim/host/libxllm_ops_host.so"


def host_library(*, simulated: bool) -> Path:
    """Return the library to load.

    Raises:
        FileNotFoundError: for none named on hardware, and for one that is not there.
    """
    named = os.environ.get(VARIABLE)
    if named is None and not simulated:
        raise FileNotFoundError(
            f"{VARIABLE} must name the library with the host's operators, it is unset; the "
            "command lines of 'python -m xllm_kernel' need no host"
        )
    library, remedy = STAND_IN, "build the stand-in host: ./dev npu-sim"
    if named is not None:
        library, remedy = Path(named), f"correct {VARIABLE}"
    if not library.is_file():
        raise FileNotFoundError(f"the host's library must exist, there is no {library}; {remedy}")
    return library
