"""Overrides: where they come from, which win, and that they fail closed."""

from __future__ import annotations

import dataclasses

import pytest
from operation_builder import Backend, OperationBuilder

from xllm_kernel import KernelRegistry, OpContract, initialize, selection
from xllm_kernel.catalog import BackendModule, Operation
from xllm_kernel.errors import ConfigurationError, DependencyAbsentError
from xllm_kernel.registry import Candidate, KernelSpec
from xllm_kernel.selection import Absent, Override


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


def test_overrides_of_unknown_operations_are_refused_in_one_order(
    two: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMEGA", "GAMMA", "THETA"):
        monkeypatch.setenv(f"XLLM_KERNEL_OVERRIDE_{name}", "plain")
    with pytest.raises(ConfigurationError, match="XLLM_KERNEL_OVERRIDE_GAMMA: unknown"):
        initialize(device="cpu")


def test_unknown_target_lists_the_known_ones_once_and_in_order(two: OperationBuilder) -> None:
    known = ["absent", "cpu.absent.alpha", "cpu.fast.alpha", "cpu.graphs.alpha", "cpu.plain.alpha"]
    known += ["fast", "graphs", "npu.vendor.alpha", "plain", "vendor"]
    with pytest.raises(ConfigurationError, match=f"choose one of {', '.join(known)} "):
        initialize(device="cpu", overrides={"alpha": "unheard_of"})


# Selection by itself: declarations in, a choice or a reason out.

CONTRACT = OpContract("alpha", version=2)
DEFINITION = Operation(CONTRACT, ())


def _candidate(name: str, **changes: object) -> Candidate:
    device, solution, _ = name.split(".")
    spec = KernelSpec(name, CONTRACT, device, ("eager",), "anything", solution)
    return Candidate(dataclasses.replace(spec, **changes), abs, "here:1", "here")


def _absent(solution: str, code: str = "missing", device: str = "cpu") -> Absent:
    return Absent(BackendModule(f"ops.alpha.{solution}", device), code, "why")


def _select(*given: Candidate | Absent, target: str | None = None):
    candidates = tuple(g for g in given if isinstance(g, Candidate))
    absent = tuple(g for g in given if isinstance(g, Absent))
    override = None if target is None else Override(target, "a test")
    return selection.select("alpha", DEFINITION, "cpu", "eager", override, candidates, absent)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"contract": dataclasses.replace(CONTRACT, version=1)}, "contract"),
        ({"contract": dataclasses.replace(CONTRACT, version=3)}, "contract"),
        ({"contract": dataclasses.replace(CONTRACT, numerical_mode="bitwise")}, "contract"),
        ({"contract": dataclasses.replace(CONTRACT, conventions=("eps: outside",))}, "contract"),
        ({"device": "abacus"}, "device"),
        ({"device": "npu"}, "device"),
        ({"execution_modes": ("compile", "aclgraph")}, "mode"),
    ],
)
def test_select_passes_over_what_does_not_fit_and_says_why(
    changes: dict[str, object], code: str
) -> None:
    odd = _candidate("cpu.odd.alpha", priority=99, **changes)
    chosen, excluded = _select(odd, _candidate("cpu.plain.alpha"))
    assert chosen.spec.name == "cpu.plain.alpha"
    ((name, reason),) = excluded
    assert (name, reason.partition(":")[0]) == ("cpu.odd.alpha", code)


def test_select_takes_the_very_contract_written_anew() -> None:
    equal = dataclasses.replace(CONTRACT)
    assert _select(_candidate("cpu.plain.alpha", contract=equal))[1] == ()


def test_select_says_of_each_other_one_how_it_ranks() -> None:
    first, second = _candidate("cpu.a.alpha", priority=3), _candidate("cpu.b.alpha", priority=3)
    chosen, excluded = _select(first, second, _candidate("cpu.c.alpha", priority=-4))
    assert chosen is first
    assert dict(excluded) == {
        "cpu.b.alpha": "priority: equal to cpu.a.alpha (3), which comes first by name",
        "cpu.c.alpha": "priority: -4 is lower than 3 of cpu.a.alpha",
    }


@pytest.mark.parametrize("others", [("cpu.a.alpha",), ("cpu.z.alpha",), ()])
def test_select_never_takes_a_solution_for_the_implementation_of_that_name(
    others: tuple[str, ...],
) -> None:
    named = _candidate("cpu.m.alpha", execution_modes=("compile",))
    namesake = _candidate("cpu.other.alpha", solution="cpu.m.alpha")
    rest = [_candidate(name) for name in others]
    with pytest.raises(ConfigurationError, match=r"cannot be honoured: cpu\.m\.alpha \(mode"):
        _select(*rest, named, target="cpu.m.alpha")
    with pytest.raises(ConfigurationError, match=r"cannot be honoured: cpu\.m\.alpha \(mode"):
        _select(*rest, namesake, named, target="cpu.m.alpha")
    assert _select(*rest, namesake, target="cpu.m.alpha")[0] is namesake


# An absent dependency is one that only installing something cures; all else is a wrong choice.
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([_absent("fast")], DependencyAbsentError),
        ([_absent("fast"), _absent("other", "device")], DependencyAbsentError),
        ([_absent("fast", "device")], ConfigurationError),
        ([_absent("fast", "unsupported")], ConfigurationError),
        ([_absent("fast"), _absent("fast", "device")], ConfigurationError),
        ([_absent("fast"), _candidate("npu.fast.alpha")], ConfigurationError),
        ([_absent("other")], ConfigurationError),
    ],
)
def test_select_tells_an_absent_choice_from_an_impossible_one(given, error) -> None:
    for order in (given, given[::-1]):
        with pytest.raises(error, match="cannot be honoured") as caught:
            _select(*order, _candidate("cpu.plain.alpha"), target="fast")
        assert type(caught.value) is error


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([_absent("fast")], DependencyAbsentError),
        ([_absent("fast"), _absent("a", "device", "abacus")], DependencyAbsentError),
        ([_absent("fast"), _absent("z", "device", "npu")], DependencyAbsentError),
        ([_absent("fast"), _absent("slow", "broken")], ConfigurationError),
        ([_absent("fast"), _absent("slow", "unsupported")], ConfigurationError),
        ([_absent("fast"), _candidate("npu.fast.alpha")], ConfigurationError),
        ([_absent("a", device="abacus"), _absent("z", device="npu")], ConfigurationError),
        ([], ConfigurationError),
    ],
)
def test_select_without_survivor_tells_absent_from_impossible(given, error) -> None:
    with pytest.raises(error, match="no implementation is left") as caught:
        _select(*given)
    assert type(caught.value) is error
    assert str(caught.value).endswith("mode 'eager': no backend registered one") == (not given)
