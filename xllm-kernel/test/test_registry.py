"""The registry: registration rules, freeze, order, publication."""

from __future__ import annotations

import dataclasses

import pytest

from xllm_kernel import KernelRegistry, OpContract, PreparedKernel, register_kernel
from xllm_kernel.errors import ConfigurationError, ContractError
from xllm_kernel.guarantees import GUARANTEES
from xllm_kernel.registry import KernelSpec

CONTRACT = OpContract("scale")
PROMISE, OTHER_PROMISE = list(GUARANTEES)[:2]


def _register(name: str, *, contract: OpContract = CONTRACT, priority: int = 0, **changes: object):
    fields = {
        "device": "cpu",
        "execution_modes": ("eager",),
        "input_domain": "anything",
        "solution": name.split(".")[1],
        **changes,
    }
    return register_kernel(name=name, contract=contract, priority=priority, **fields)


def test_register_kernel_on_a_function_returns_the_same_object(fresh: KernelRegistry) -> None:
    def kernel(value: int) -> int:
        return value

    assert _register("cpu.a.scale")(kernel) is kernel
    fresh.freeze()
    (candidate,) = fresh.candidates("scale")
    assert candidate.function is kernel
    assert candidate.spec.priority == 0
    assert fresh is KernelRegistry.get()


def test_register_kernel_on_a_builtin_registers_it_unwrapped(fresh: KernelRegistry) -> None:
    assert _register("cpu.a.scale")(abs) is abs


def test_register_a_name_twice_names_both_sites(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    with pytest.raises(ConfigurationError, match=r"unique.*test_registry\.py:\d+ and again at"):
        _register("cpu.a.scale")(abs)
    fresh.freeze()
    assert len(fresh.candidates("scale")) == 1


def test_register_after_freeze_is_refused(fresh: KernelRegistry) -> None:
    fresh.freeze()
    with pytest.raises(
        ConfigurationError, match=r"cpu\.late\.scale.*before the registry is frozen"
    ):
        _register("cpu.late.scale")(abs)
    assert fresh.candidates("scale") == ()


def test_candidates_before_freeze_are_refused(fresh: KernelRegistry) -> None:
    with pytest.raises(ConfigurationError, match="must be frozen before selection"):
        fresh.candidates("scale")


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_candidates_are_ordered_by_priority_then_name(
    fresh: KernelRegistry, order: tuple[int, ...]
) -> None:
    kernels = [("cpu.b.scale", 5), ("cpu.a.scale", 5), ("cpu.c.scale", 9), ("cpu.d.scale", -1)]
    for index in order:
        name, priority = kernels[index]
        _register(name, priority=priority)(abs)
    fresh.freeze()
    names = [c.spec.name for c in fresh.candidates("scale")]
    assert names == ["cpu.c.scale", "cpu.a.scale", "cpu.b.scale", "cpu.d.scale"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("device", "", "device must be a non-empty string"),
        ("input_domain", "", "input_domain must be a non-empty string"),
        ("solution", "", "solution must be a non-empty string"),
        ("execution_modes", (), "execution_modes must name at least one mode"),
        ("execution_modes", "eager", "execution_modes must be a tuple of strings, got 'eager'"),
        ("guarantees", "bitwise", "guarantees must be a tuple of strings"),
        ("build", ["level"], "build must be a tuple of strings"),
        ("priority", True, "priority must be an int"),
        ("priority", 1.5, "priority must be an int"),
        ("contract", "scale", "contract must be an OpContract"),
        ("device", 5, "device must be a non-empty string, got 5"),
        ("execution_modes", ("eager", 5), "execution_modes must be a tuple of strings"),
        ("caveats", None, "caveats must be a tuple of strings, got None"),
        ("guarantees", ("bitwise.unheard_of",), r"different ones of .*, got bitwise\.unheard_of;"),
        ("guarantees", (PROMISE, PROMISE), rf"different ones of .*, got {PROMISE}, {PROMISE};"),
        ("guarantees", (PROMISE, "unheard_of"), r"different ones of .*, got unheard_of;"),
    ],
)
def test_register_an_incomplete_declaration_is_refused(
    fresh: KernelRegistry, field: str, value: object, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        _register("cpu.a.scale", **{field: value})(abs)


def test_register_different_guarantees_are_accepted(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale", guarantees=(PROMISE, OTHER_PROMISE))(abs)
    assert fresh.specs("scale")[0].guarantees == (PROMISE, OTHER_PROMISE)


def test_register_kernel_without_priority_is_of_the_first_version_and_neutral(
    fresh: KernelRegistry,
) -> None:
    declared = {"device": "cpu", "execution_modes": ("eager",), "input_domain": "anything"}
    register_kernel(name="cpu.a.scale", contract=CONTRACT, solution="a", **declared)(abs)
    assert fresh.specs("scale")[0].priority == 0
    assert fresh.specs("scale")[0].contract.version == 1
    assert KernelSpec("cpu.b.scale", CONTRACT, solution="b", **declared).priority == 0


def test_register_wants_the_site_by_name(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    (spec,) = fresh.specs("scale")
    with pytest.raises(TypeError):  # two strings side by side would be easily swapped
        fresh.register(dataclasses.replace(spec, name="cpu.b.scale"), abs, "here:1", "here")


def test_get_makes_one_registry_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelRegistry, "_instance", None)
    made = KernelRegistry.get()
    assert isinstance(made, KernelRegistry)
    assert KernelRegistry.get() is made


def test_register_something_not_callable_is_refused(fresh: KernelRegistry) -> None:
    with pytest.raises(ConfigurationError, match="a callable must be registered, got 5"):
        _register("cpu.a.scale")(5)


@pytest.mark.parametrize(
    "change",
    [
        {"mutates": ("x",)},
        {"aliases_inputs": True},
        {"numerical_mode": "bitwise"},
        {"conventions": ("rounding: before the weight",)},
    ],
)
def test_register_under_a_contradicting_contract_names_both(
    fresh: KernelRegistry, change: dict[str, object]
) -> None:
    _register("cpu.a.scale")(abs)
    with pytest.raises(ContractError, match=r"share one contract.*cpu\.a\.scale"):
        _register("cpu.b.scale", contract=dataclasses.replace(CONTRACT, **change))(abs)


def test_register_another_contract_version_is_accepted(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    _register("cpu.b.scale", contract=dataclasses.replace(CONTRACT, version=2))(abs)
    fresh.freeze()
    assert len(fresh.candidates("scale")) == 2


def test_register_an_equal_contract_written_anew_is_the_same_one(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    _register("cpu.b.scale", contract=OpContract("scale"))(abs)
    assert len(fresh.specs("scale")) == 2


# A contract holds for one operation and version, whatever comes before or after it by name.
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_registrations_of_operations_do_not_mix(
    fresh: KernelRegistry, order: tuple[int, ...]
) -> None:
    kernels = [
        ("cpu.a.alpha", OpContract("alpha", mutates=("x",))),
        ("cpu.a.scale", CONTRACT),
        ("cpu.b.scale", OpContract("scale", version=2, mutates=("x",))),
        ("cpu.a.zoom", OpContract("zoom", aliases_inputs=True)),
    ]
    for index in order:
        name, contract = kernels[index]
        _register(name, contract=contract)(abs)
    fresh.freeze()
    assert fresh.frozen
    for operation, names in {
        "alpha": {"cpu.a.alpha"},
        "scale": {"cpu.a.scale", "cpu.b.scale"},
        "zoom": {"cpu.a.zoom"},
        "unheard_of": set(),
    }.items():
        assert {s.name for s in fresh.specs(operation)} == names
        assert {c.spec.name for c in fresh.candidates(operation)} == names


def test_registered_by_names_what_that_module_registered(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    (spec,) = fresh.specs("scale")
    for module in ("a_module", "m_module", "z_module"):
        named = dataclasses.replace(spec, name=f"cpu.{module}.scale")
        fresh.register(named, abs, site="here:1", module=module)
    assert fresh.registered_by("m_module") == ("cpu.m_module.scale",)
    assert fresh.registered_by(__name__) == ("cpu.a.scale",)


def test_restore_forgets_registrations_and_freeze(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    before = fresh.state()
    _register("cpu.b.scale")(abs)
    fresh.freeze()
    fresh.restore(before)
    assert not fresh.frozen
    assert [s.name for s in fresh.specs("scale")] == ["cpu.a.scale"]


def test_published_mapping_is_read_only_and_counts_generations(fresh: KernelRegistry) -> None:
    _register("cpu.a.scale")(abs)
    fresh.freeze()
    (candidate,) = fresh.candidates("scale")
    plan = PreparedKernel(candidate.spec, candidate.function, 1, ())
    assert (fresh.published, fresh.frozen) == (None, True)
    published = fresh.publish({"scale": plan}, {})
    assert fresh.generation == 1
    assert fresh.published == {"scale": plan}
    assert fresh.prepared("scale") is plan
    with pytest.raises(TypeError):
        published["scale"] = plan  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.generation = 2  # type: ignore[misc]


def test_prepared_before_publication_says_what_to_call(fresh: KernelRegistry) -> None:
    with pytest.raises(ConfigurationError, match=r"call xllm_kernel\.initialize\(device="):
        fresh.prepared("scale")


def test_prepared_for_another_device_names_the_devices(fresh: KernelRegistry) -> None:
    fresh.publish({}, {"scale": ("npu", "cuda")})
    with pytest.raises(ConfigurationError, match="it has backends for npu, cuda"):
        fresh.prepared("scale")
    with pytest.raises(ConfigurationError, match="unknown operation"):
        fresh.prepared("unheard_of")


def test_prepared_for_an_unknown_operation_lists_the_published_ones_in_order(
    fresh: KernelRegistry,
) -> None:
    _register("cpu.a.scale")(abs)
    fresh.freeze()
    (candidate,) = fresh.candidates("scale")
    plan = PreparedKernel(candidate.spec, candidate.function, 1, ())
    fresh.publish(dict.fromkeys(("scale", "alpha", "zoom"), plan), {})
    with pytest.raises(ConfigurationError, match=r"published are alpha, scale, zoom$"):
        fresh.prepared("unheard_of")
