#!/usr/bin/env python3
"""Start a worker the way a serving host does, then run the norms of GLM's MLA preprocessing.

Show the order of start-up and one call site; hold no engine, no scheduler and no cache.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from xllm_kernel import PreparedKernel, initialize
from xllm_kernel.errors import KernelError
from xllm_kernel.platforms import get_platform
from xllm_kernel.platforms.evidence import disclaimer

ROWS, Q_LORA, KV_LORA, ROPE = 17, 2048, 512, 64  # tokens in the batch, and GLM's widths
EPS = 1e-5
EXIT_WRONG_RESULT, EXIT_COULD_NOT_RUN = 1, 3
log = logging.getLogger("worker")


def start_worker(device: str, libraries: Sequence[Path]) -> Mapping[str, PreparedKernel]:
    """Do what comes before the first model import: own libraries first, then the kernels.

    Args:
        device: the worker's device, `cpu` or `npu`.
        libraries: shared objects with the host's own torch operators.

    Returns:
        The binding of each operation, fixed for the life of the process.
    """
    # 1. The host's operators come first, so that backends which wrap them find them registered.
    if libraries:
        import torch

        for library in libraries:
            torch.ops.load_library(str(library))
    # 2. One call selects and prepares everything. XLLM_KERNEL_OVERRIDE_<OPERATION>=<solution> in
    #    the worker's environment changes a choice; a choice that cannot be honoured raises here,
    #    not in the first request.
    bindings = initialize(device=device)
    # 3. Log the pairs: all ranks of one deployment must show the same ones.
    for operation, plan in sorted(bindings.items()):
        log.info("%s -> %s", operation, plan.spec.name)
        for name, reason in plan.excluded:
            log.info("  passed over %s (%s)", name, reason)
    return bindings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "npu"), default="cpu")
    parser.add_argument(
        "--library",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="shared object with operators of the host, loaded first; repeatable",
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("xllm_kernel").setLevel(logging.WARNING)  # this script logs the pairs itself
    try:
        bindings = start_worker(options.device, options.library)
    except KernelError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    notice = disclaimer(get_platform(options.device).evidence)
    if notice is not None:
        log.info("%s", notice)
    return preprocess(options.device, bindings)


def preprocess(device: str, bindings: Mapping[str, PreparedKernel]) -> int:
    """Run both norms of MLA preprocessing and compare them with the plain formula.

    Args:
        device: where the tensors live.
        bindings: what `start_worker` returns.

    Returns:
        The exit status.
    """
    import torch  # models are imported only now

    # A model keeps the callable itself: eager calls and graph capture pay for nothing else.
    rms_norm = bindings["rms_norm"].function

    generator = torch.Generator().manual_seed(0)

    def values(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator).bfloat16().to(device)

    q_a, q_weight = values(ROWS, Q_LORA), values(Q_LORA)
    # One projection writes the latent and the rotary key side by side. The norm reads the latent
    # where it lies, a view with row stride 576: no copy is made to please the kernel.
    projected, kv_weight = values(ROWS, KV_LORA + ROPE), values(KV_LORA)
    latent = projected[:, :KV_LORA]

    status = 0
    for name, x, weight in (("q_a", q_a, q_weight), ("kv latent", latent, kv_weight)):
        output = rms_norm(x, weight, EPS)
        x32, weight32 = x.cpu().float(), weight.cpu().float()
        expected = x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + EPS) * weight32
        # fp32 inside, rounded once: no further than one bf16 step, 2**-7 of the value at most.
        step = ((output.cpu().float() - expected).abs() / expected.abs()).max().item() * 2**7
        right = output.is_contiguous() and output.dtype == x.dtype and step <= 1
        status = status if right else EXIT_WRONG_RESULT
        log.info(
            "%s: input %s strides %s, output strides %s, at most %.2f bf16 steps away: %s",
            name,
            list(x.shape),
            list(x.stride()),
            list(output.stride()),
            step,
            "right" if right else "WRONG",
        )
    return status


if __name__ == "__main__":
    raise SystemExit(main())
