"""The operation's implementation."""

import os

import mortal
from xllm_kernel import register_kernel

_calls = {}

if os.environ.get("MORTAL_LOAD"):
    mortal.DEEDS[os.environ["MORTAL_LOAD"]]()


@register_kernel(
    name="cpu.plain.mortal",
    contract=mortal.CONTRACT,
    device="cpu",
    execution_modes=("eager",),
    input_domain="any deed",
    solution="plain",
    guarantees=("repeatable", "thread_invariant"),
    build=(f"of revision {os.environ.get('MORTAL_BUILD', '1')}",),
)
def run(deed):
    _calls[deed] = _calls.get(deed, 0) + 1
    name, _, at = deed.partition("@")
    kind = name.split()[0].rstrip("_")
    if kind in mortal.DEEDS and _calls[deed] >= int(at or 1):
        mortal.DEEDS[kind]()
    return "another" if kind == "wrong" else deed
