"""The operation's main implementation."""

import affine
from xllm_kernel import register_kernel


@register_kernel(
    name="cpu.plain.affine",
    contract=affine.CONTRACT,
    device="cpu",
    execution_modes=("eager", "graph", "compile"),
    input_domain="at most 1000 values",
    solution="plain",
    build=("by hand | at home", "of another revision"),
    caveats=("taken | as found",),
)
def run(values, scale):
    return affine.behaviour(values, scale)
