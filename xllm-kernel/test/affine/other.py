"""Another implementation, which wins unless an override says otherwise."""

import affine
from xllm_kernel import register_kernel

register_kernel(
    name="cpu.other.affine",
    contract=affine.CONTRACT,
    device="cpu",
    execution_modes=("eager",),
    input_domain="anything",
    solution="other",
    priority=10,
)(affine.honest)
