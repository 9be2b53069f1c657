"""Every operator of cpu.simd from many threads at once, and in children of fork()."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import PACKAGE_ROOT, need_native
from simd_family import ALL, Form, case, same_bits

import xllm_kernel
from xllm_kernel.registry import KernelRegistry

need_native()

Call = Callable[..., Any]

# Rows enough for two of PyTorch's threads, and for one only.
SHAPES = [(300, 1200), (3, 40)]


@pytest.fixture(params=ALL)
def form(request: pytest.FixtureRequest) -> Form:
    return ALL[request.param]


@pytest.fixture(params=["bound", "operator"])
def call(request: pytest.FixtureRequest, form: Form, fresh: KernelRegistry) -> Call:
    """What a model holds, and the operator itself: where a builtin was built they differ."""
    plan = xllm_kernel.initialize(device="cpu", overrides={form.operation: form.name})
    overload = getattr(torch.ops.xllm_kernel, f"simd_{form.operation}").default
    return plan[form.operation].function if request.param == "bound" else overload


def _own(form: Form, given: dict[str, Any]) -> dict[str, Any]:
    """Pick the arguments, with copies of those that are written."""
    return {k: v.clone() if k in form.writes else v for k, v in form.pick(given).items()}


def _results(form: Form, call: Call, arguments: dict[str, Any]) -> list[torch.Tensor]:
    """Call and return all tensors that it made or wrote."""
    made = call(**arguments)
    returned = [made] if isinstance(made, torch.Tensor) else list(made or ())
    return [*returned, *(arguments[name] for name in form.writes)]


def _same(some: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    return all(same_bits(a, b) for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize("count", [1, 2])
def test_many_threads_at_once_same_bits(call: Call, form: Form, count: int) -> None:
    given = [case(shape, dtype) for shape in SHAPES for dtype in (torch.float32, torch.bfloat16)]
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = [_results(form, call, _own(form, one)) for one in given]
    start, wrong, done = threading.Barrier(6), list[int](), list[int]()

    def work(n: int) -> None:
        start.wait()
        for turn in range(24):
            at = (n + turn) % len(given)
            if not _same(_results(form, call, _own(form, given[at])), expected[at]):
                wrong.append(at)
        done.append(n)

    torch.set_num_threads(count)
    workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        torch.set_num_threads(before)
    assert (wrong, sorted(done)) == ([], list(range(6)))


# Run in a process of its own. PyTorch's own parallel operators hang in such a child, so that it
# calls none. One that waits for threads which it does not have ends by the alarm.
FORKING = """
import os, signal, sys
sys.path.insert(0, {tests!r})
if {builtin!r} == "without":
    sys.modules["xllm_kernel._build.fastcall"] = None
import torch, xllm_kernel
from simd_family import ALL, case
from test_simd_threads import SHAPES, _own, _results, _same

plans = xllm_kernel.initialize(
    device="cpu", overrides={{name: form.name for name, form in ALL.items()}}
)
given = [case(shape, dtype) for shape in SHAPES for dtype in (torch.float32, torch.bfloat16)]
def arguments():
    return [(form, _own(form, one)) for form in ALL.values() for one in given]
def everything(calls):
    return [_results(form, plans[form.operation].function, own) for form, own in calls]
def all_same(some, others):
    return all(_same(mine, theirs) for mine, theirs in zip(some, others, strict=True))

torch.set_num_threads(1)
expected = everything(arguments())
mine, theirs, again = arguments(), arguments(), arguments()
torch.set_num_threads(2)
if {who!r} == "torch":
    big = torch.ones(1 << 22)
    assert (big + big).sum().item() == 1 << 23
else:
    assert all_same(everything(mine), expected)
children = [0] * 20
for at in range(20):
    children[at] = os.fork()
    if children[at] == 0:
        signal.alarm(20)
        got = everything(theirs)
        torch.set_num_threads(1)
        os._exit(0 if all_same(got, expected) else 3)
    children[at] = os.waitstatus_to_exitcode(os.waitpid(children[at], 0)[1])
print("children", set(children))
print("parent", all_same(everything(again), expected))
"""


@pytest.mark.parametrize("builtin", ["with", "without"])
@pytest.mark.parametrize("who", ["we", "torch"])
def test_child_of_fork_after_parallel_work_same_bits(
    run_python: Callable[..., Any], who: str, builtin: str
) -> None:
    code = FORKING.format(tests=str(PACKAGE_ROOT / "test"), who=who, builtin=builtin)
    done = run_python("-c", code)
    assert done.stdout.splitlines() == ["children {0}", "parent True"], done.stderr
