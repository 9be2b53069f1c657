"""The vendor adapter over a double of torch_npu: the logic of the call, no device evidence."""

from __future__ import annotations

import sys
import types

import pytest

import xllm_kernel
from xllm_kernel.errors import DependencyBrokenError
from xllm_kernel.registry import KernelRegistry


@pytest.fixture
def torch_npu_double(monkeypatch: pytest.MonkeyPatch):
    double = types.ModuleType("torch_npu")
    double.calls = []

    def npu_rms_norm(*args, **kwargs):
        double.calls.append((args, kwargs))
        return "y", "rstd"

    double.npu_rms_norm = npu_rms_norm
    monkeypatch.setitem(sys.modules, "torch_npu", double)
    return double


def test_native_returns_the_first_output_and_passes_eps_by_name(
    fresh: KernelRegistry, torch_npu_double
) -> None:
    plan = xllm_kernel.initialize(device="npu")["rms_norm"]
    assert plan.spec.name == "npu.xllm_native.rms_norm"
    assert (plan.spec.priority, plan.spec.execution_modes) == (10, ("eager", "aclgraph"))
    assert plan.spec.solution == "native"
    assert plan.function("x", "w", 1e-5) == "y"
    assert torch_npu_double.calls == [(("x", "w"), {"epsilon": 1e-5})]
    excluded = {name: reason.partition(":")[0] for name, reason in plan.excluded}
    assert excluded.pop("xllm_kernel.ops.rms_norm.xlite") == "missing"
    assert set(excluded.values()) == {"device"}


def test_native_with_a_torch_npu_that_lacks_the_operator_is_broken(
    fresh: KernelRegistry, torch_npu_double
) -> None:
    del torch_npu_double.npu_rms_norm
    with pytest.raises(DependencyBrokenError, match=r"native.*npu_rms_norm"):
        xllm_kernel.initialize(device="npu")
