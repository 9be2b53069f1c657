"""Overrides: where they come from, which win, and that they fail closed."""

from __future__ import annotations

import pytest
from operation_builder import Backend, OperationBuilder

from xllm_kernel import KernelRegistry, initialize
from xllm_kernel.errors import ConfigurationError, DependencyAbsentError


@pytest.fixture
def two(build_operations: OperationBuilder) -> OperationBuilder:
    build_operations.add(
        "alpha",
        Backend("fast", priority=10),
        Backend("plain"),
        Backend("absent", requires=("no_such_sdk",)),
        Backend("graphs", modes=("aclgraph",)),
        Backend("vendor", device="npu"),
    )
    build_operations.add("beta", Backend("plain"), Backend("fast", priority=-1))
    return build_operations


@pytest.mark.parametrize("target", ["plain", "cpu.plain.alpha", " plain "])
def test_override_by_solution_or_exact_name(two: OperationBuilder, target: str) -> None:
    plans = initialize(device="cpu", overrides={"alpha": target})
    assert plans["alpha"].spec.name == "cpu.plain.alpha"
    assert plans["beta"].spec.name == "cpu.plain.beta"
    reason = dict(plans["alpha"].excluded)["cpu.fast.alpha"]
    assert reason == f"override: overrides['alpha'] chose '{target.strip()}'"


def test_override_from_the_environment_wins_over_the_mapping(
    two: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_ALPHA", "plain")
    plans = initialize(device="cpu", overrides={"alpha": "fast", "beta": "fast"})
    assert plans["alpha"].spec.name == "cpu.plain.alpha"
    assert plans["beta"].spec.name == "cpu.fast.beta"
    assert "XLLM_KERNEL_OVERRIDE_ALPHA" in dict(plans["alpha"].excluded)["cpu.fast.alpha"]


def test_override_exact_name_takes_precedence_over_a_solution_of_that_name(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("twin", priority=10), Backend("plain", name="twin"))
    plans = initialize(device="cpu", overrides={"alpha": "twin"})
    assert plans["alpha"].spec.name == "twin"


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("absent", DependencyAbsentError, r"missing: required module is absent: no_such_sdk"),
        ("cpu.absent.alpha", DependencyAbsentError, r"no_such_sdk"),
        ("graphs", ConfigurationError, r"mode: supports aclgraph, the worker runs 'eager'"),
        ("vendor", ConfigurationError, r"device: declared for 'npu', the worker runs 'cpu'"),
        ("npu.vendor.alpha", ConfigurationError, r"declared for 'npu'"),
        ("cpu.fast.beta", ConfigurationError, r"unknown target 'cpu\.fast\.beta'"),
        ("fsat", ConfigurationError, r"unknown target 'fsat'.*choose one of .*fast"),
        ("", ConfigurationError, r"a solution or implementation name is needed, got ''"),
    ],
)
@pytest.mark.parametrize("source", ["mapping", "environment"])
def test_override_that_cannot_be_honoured_publishes_nothing(
    two: OperationBuilder,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    target: str,
    error: type[Exception],
    message: str,
) -> None:
    overrides = {"alpha": target} if source == "mapping" else None
    if source == "environment":
        monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_ALPHA", target)
    with pytest.raises(error, match=message) as caught:
        initialize(device="cpu", overrides=overrides)
    assert type(caught.value) is error
    assert "nothing was published" in str(caught.value)
    assert KernelRegistry.get().published is None
    monkeypatch.delenv("XLLM_KERNEL_OVERRIDE_ALPHA", raising=False)
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.fast.alpha"


def test_override_of_an_unknown_operation_lists_the_known_ones(
    two: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"overrides\['gamma'\].*known .* alpha, beta"):
        initialize(device="cpu", overrides={"gamma": "plain"})
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_GAMMA", "plain")
    with pytest.raises(ConfigurationError, match="XLLM_KERNEL_OVERRIDE_GAMMA: unknown operation"):
        initialize(device="cpu")


def test_override_of_an_operation_without_backend_for_the_device_is_refused(
    two: OperationBuilder,
) -> None:
    two.add("gamma", Backend("vendor", device="npu"))
    with pytest.raises(
        ConfigurationError, match=r"gamma .*no backend is declared for device 'cpu'"
    ):
        initialize(device="cpu", overrides={"gamma": "vendor"})


@pytest.mark.parametrize("overrides", [{"alpha": None}, {"alpha": 3}, ["alpha"], "alpha=plain"])
def test_override_of_a_wrong_type_is_refused(two: OperationBuilder, overrides: object) -> None:
    with pytest.raises(ConfigurationError, match="is needed, got"):
        initialize(device="cpu", overrides=overrides)  # type: ignore[arg-type]


def test_override_set_after_import_and_before_initialize_is_honoured(
    two: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import xllm_kernel  # imported long before

    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_BETA", "fast")
    assert xllm_kernel.initialize(device="cpu")["beta"].spec.name == "cpu.fast.beta"
