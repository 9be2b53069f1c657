"""What backends share: loading the package's own C++ kernels, their promises, gradients refused.

Names no operation. Imports PyTorch and the build's marker module only when called.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xllm_kernel import artifacts
from xllm_kernel.domain import is_traced
from xllm_kernel.errors import ConfigurationError, DomainError

if TYPE_CHECKING:
    import torch

# Of an operation on rows: a row's result depends on that row and the shared arguments alone.
ROW_GUARANTEES = (
    "batch_invariant",
    "thread_invariant",
    "layout_invariant",
    "level_invariant",
    "repeatable",
    "subnormals_kept",
    "canonical_nan",
)


def load_kernels(who: str) -> tuple[str, ...]:
    """Load the library and fix the process's SIMD level, so that no call has to.

    Args:
        who: operation and implementation, for messages.

    Returns:
        What was loaded, for the receipt: SIMD level, library digest, compiler, torch built with.

    Raises:
        ArtifactError: for a build that is damaged, or not of these sources.
        ConfigurationError: for a forced level that does not exist here.
    """
    import torch

    import xllm_kernel._build.simd as build

    artifacts.load(
        build.MANIFEST,
        Path(build.__file__).parent,
        torch_version=torch.__version__,
        load_library=torch.ops.load_library,
    )
    try:
        level = torch.ops.xllm_kernel.simd_level.default()
    except RuntimeError as error:
        raise ConfigurationError(f"{who}: {error}") from error
    manifest: Mapping[str, Any] = build.MANIFEST
    return (
        f"SIMD level {level} of {', '.join(manifest['levels'])}",
        f"library sha256 {manifest['library_sha256']}",
        f"compiler {manifest['compiler']}",
        f"built with torch {manifest['torch_built_with']}",
    )


def refuse_inference_tensors(who: str, **tensors: torch.Tensor) -> None:
    """Refuse to write to inference tensors outside of inference mode, as PyTorch itself does.

    A compiler that traces the caller cannot ask: there PyTorch's own operators have the word.

    Args:
        who: operation and implementation, for the message.
        **tensors: those that are written, by argument name, in the order of the checks.

    Raises:
        DomainError: naming the argument.
    """
    import torch

    if is_traced():
        return
    for name, tensor in tensors.items():
        if tensor.is_inference() and not torch.is_inference_mode_enabled():
            raise DomainError(
                f"{who}: {name} must not be an inference tensor outside of inference mode, for "
                f"torch lets nobody write to one there; call it under torch.inference_mode() "
                f"(clause {name}.inference)",
                clause=f"{name}.inference",
            )


def refuse_gradients(who: str, **tensors: torch.Tensor) -> None:
    """Refuse tensors for which a call would have to record a gradient.

    Args:
        who: operation and implementation, for the message.
        **tensors: by argument name, in the order in which they are checked.

    Raises:
        DomainError: naming the argument.
    """
    import torch

    for name, tensor in tensors.items():
        if torch.is_grad_enabled() and tensor.requires_grad:
            raise DomainError(
                f"{who}: {name} must not require a gradient in grad mode, for there is no "
                f"backward; call it under torch.no_grad() (clause {name}.gradient)",
                clause=f"{name}.gradient",
            )
