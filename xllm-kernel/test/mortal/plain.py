"""The operation's implementation."""

import os

import mortal
from xllm_kernel import register_kernel

_calls = {}

if os.environ.get("MORTAL_LOAD"):
    mortal.DEEDS[os.environ["MORTAL_LOAD"]]()


def _register(solution):
    return register_kernel(
        name=f"cpu.{solution}.mortal",
        contract=mortal.CONTRACT,
        device="cpu",
        execution_modes=("eager",),
        input_domain="any deed",
        solution=solution,
        guarantees=("repeatable", "thread_invariant"),
        build=(f"of revision {os.environ.get('MORTAL_BUILD', '1')}",),
    )


@_register("plain")
def run(deed):
    return _do(deed, "plain")


@_register("other")
def run_other(deed):
    return _do(deed, "other")


def _do(deed, solution):
    """Do a deed; one of the other solution, as in ``segv@3/other``, is an honest one."""
    _calls[deed] = _calls.get(deed, 0) + 1
    mine, _, whose = deed.partition("/")
    name, _, at = mine.partition("@")
    if whose not in ("", solution):
        return deed
    kind = name.split()[0].rstrip("_")
    if kind in mortal.DEEDS and _calls[deed] >= int(at or 1):
        mortal.DEEDS[kind]()
    return "another" if kind == "wrong" else deed
