"""The two backends that an operation has on a processor, by the rules of their names.

Declarations only; an operation with others, or with more, writes its own.
"""

from __future__ import annotations

from xllm_kernel.artifacts import BUILD_COMMAND
from xllm_kernel.catalog import BackendModule


def cpu_backends(operation: str) -> tuple[BackendModule, BackendModule]:
    """Declare ``simd.py`` and ``torch.py`` of an operation's folder.

    Args:
        operation: name of the operation and of its folder.
    """
    folder = f"xllm_kernel.ops.{operation}"
    return (
        BackendModule(
            module=f"{folder}.simd",
            device="cpu",
            requires=("torch", "xllm_kernel._build.simd"),
            implementations=(f"cpu.simd.{operation}",),
            hint=f"in a source tree, build it with: {BUILD_COMMAND}; elsewhere install the "
            "package with XLLM_KERNEL_BUILD_SIMD=1 and pip's --no-build-isolation",
        ),
        BackendModule(
            module=f"{folder}.torch",
            device="cpu",
            requires=("torch",),
            implementations=(f"cpu.torch.{operation}",),
            hint="install PyTorch",
        ),
    )
