"""What backends over xlite's launchers share: loading the bridge, and a launch that proves itself.

Names no operation. Imports PyTorch, torch_npu and the build's marker module only when called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xllm_kernel import artifacts, launchers
from xllm_kernel.errors import DependencyBrokenError

# By the dtype that it launches.
LAUNCHERS = dict(zip(("bfloat16", "float16"), launchers.LIBRARIES, strict=True))


def load_bridge(who: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Load launchers and bridge, and ask which processor they are to work on.

    Args:
        who: operation and implementation, for messages.

    Returns:
        What was loaded, for the receipt: processor, digests, compiler, versions, revision; and
        its caveats.

    Raises:
        ArtifactError: for a build that is damaged, not of these sources, or not of what is
            installed beside it.
        DependencyBrokenError: for a processor that launchers write nothing on.
    """
    import torch
    import torch_npu

    import xllm_kernel._build.xlite as build

    manifest: Mapping[str, Any] = build.MANIFEST
    runtime = Path(torch_npu.__file__).parent / "lib" / "libtorch_npu.so"

    def load_library(path: str) -> None:
        folder = launchers.folder()
        assert folder is not None  # verified
        launchers.preload(runtime, (folder / name for name in launchers.LIBRARIES))
        torch.ops.load_library(path)

    artifacts.load(
        manifest,
        Path(build.__file__).parent,
        torch_version=torch.__version__,
        load_library=load_library,
        kind="xlite",
    )
    torch_npu.npu.init()
    try:
        processor = torch.ops.xllm_kernel.xlite_processor.default()
    except RuntimeError as error:
        raise DependencyBrokenError(
            f"{who}: {error}; remove {build.__file__} to do without xlite"
        ) from error
    build_facts = (
        processor,
        f"library sha256 {manifest['library_sha256']}",
        f"compiler {manifest['compiler']}",
        f"built with torch {manifest['torch_built_with']}, "
        f"torch_npu {manifest['torch_npu_built_with']}",
        *(f"{name} sha256 {digest}" for name, digest in manifest["launchers"].items()),
        f"GVirt revision {manifest['revision_found']}",
    )
    return build_facts, _caveats(manifest)


def _caveats(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    if not manifest["revision_allowed"]:
        return ()
    return (
        f"xlite is of GVirt revision {manifest['revision_found']}, NOT of the pinned "
        f"{manifest['revision_required']}: {launchers.ALLOW}=1 allowed it when the bridge was "
        "built",
    )


def prove(
    who: str,
    dtype: str,
    given: Sequence[list[float]],
    wanted: list[float],
    launch: Callable[..., object],
) -> None:
    """Launch into a poisoned buffer and compare what stands there then.

    A library that could not register its kernels reports success and writes nothing; one whose
    launcher takes other arguments writes something else. Waits for the device.

    Args:
        who: operation and implementation, for messages.
        dtype: of the launch, a key of ``LAUNCHERS``.
        given: what the launch reads, one list a tensor.
        wanted: what must stand in the buffer.
        launch: submits the launch; takes the buffer and a tensor for each list.

    Raises:
        DependencyBrokenError: naming the library.
    """
    import torch

    trial = f"{LAUNCHERS[dtype]} must work in a trial launch of {len(wanted)} elements"
    poison = [torch.nan] * len(wanted)
    try:
        kind = getattr(torch, dtype)
        output, *read = (torch.tensor(v, dtype=kind).to("npu") for v in (poison, *given))
        launch(output, *read)
        written = output.cpu().tolist()
    except RuntimeError as error:
        raise DependencyBrokenError(
            f"{who}: {trial}, but it failed: {error}; check xlite, CANN and the device's driver"
        ) from error
    if written == wanted:
        return
    if all(value != value for value in written):
        raise DependencyBrokenError(
            f"{who}: {trial}, but it reported success and wrote nothing, as where its kernels are "
            "not registered with the runtime; check that xlite, CANN and the processor fit each "
            "other"
        )
    number = next(n for n, value in enumerate(written) if value != wanted[n])
    raise DependencyBrokenError(
        f"{who}: {trial}, but element {number} is {written[number]} where {wanted[number]} must "
        f"be: the launcher takes other arguments, or computes something else; install an xlite of "
        f"GVirt revision {launchers.REVISION} and build the bridge again"
    )
