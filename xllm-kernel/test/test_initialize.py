"""Initialisation over a catalogue of throw-away operations: the transaction and its failures."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import threading
from types import SimpleNamespace

import pytest
from operation_builder import Backend, OperationBuilder

from xllm_kernel import KernelRegistry, initialize, receipts, register_kernel, runtime
from xllm_kernel.errors import (
    ConfigurationError,
    ContractError,
    DependencyAbsentError,
    DependencyBrokenError,
)


def _codes(plan) -> dict[str, str]:
    return {name: reason.partition(":")[0] for name, reason in plan.excluded}


def test_initialize_two_operations_publishes_both_at_once(
    build_operations: OperationBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    build_operations.add("alpha", Backend("fast", priority=10), Backend("plain"))
    build_operations.add("beta", Backend("plain"))
    with caplog.at_level(logging.INFO, logger="xllm_kernel"):
        plans = initialize(device="cpu")
    assert {k: p.spec.name for k, p in plans.items()} == {
        "alpha": "cpu.fast.alpha",
        "beta": "cpu.plain.beta",
    }
    assert plans["alpha"].function(3) == ("cpu.fast.alpha", 3)
    assert plans["alpha"].generation == plans["beta"].generation == 1
    assert _codes(plans["alpha"]) == {"cpu.plain.alpha": "priority"}
    assert [r.getMessage() for r in caplog.records] == [
        "alpha: cpu.fast.alpha",
        "beta: cpu.plain.beta",
    ]
    with pytest.raises(TypeError):
        plans["alpha"] = plans["beta"]  # type: ignore[index]


def test_initialize_binds_the_registered_object_itself(build_operations: OperationBuilder) -> None:
    build_operations.add("alpha", Backend("plain"))
    plan = initialize(device="cpu")["alpha"]
    assert plan.function is sys.modules[build_operations.module("alpha", "plain")].run


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_initialize_equal_priorities_choose_by_name_in_any_import_order(
    build_operations: OperationBuilder, names: tuple[str, str]
) -> None:
    build_operations.add("alpha", *(Backend(n, priority=3) for n in names))
    plan = initialize(device="cpu")["alpha"]
    assert plan.spec.name == "cpu.a.alpha"
    assert "equal to cpu.a.alpha (3)" in dict(plan.excluded)["cpu.b.alpha"]


def test_initialize_leaves_out_an_operation_of_another_device(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("plain"))
    build_operations.add("beta", Backend("vendor", device="npu", prologue="raise SystemError"))
    plans = initialize(device="cpu")
    assert set(plans) == {"alpha"}
    with pytest.raises(ConfigurationError, match="it has backends for npu"):
        KernelRegistry.get().prepared("beta")


def test_initialize_without_survivor_publishes_nothing_and_retries(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("plain"))
    build_operations.add("beta", Backend("plain", modes=("compile",)))
    with pytest.raises(
        ConfigurationError, match=r"beta: no implementation is left.*mode: supports"
    ):
        initialize(device="cpu")
    registry = KernelRegistry.get()
    assert registry.published is None
    assert not registry.frozen
    assert registry.generation == 0
    assert registry.specs("alpha") == ()
    assert build_operations.module("alpha", "plain") not in sys.modules
    build_operations.write("beta", Backend("plain"))
    assert initialize(device="cpu")["beta"].generation == 1


def test_initialize_with_a_missing_module_excludes_and_names_it(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add(
        "alpha",
        Backend("fast", priority=10, requires=("no_such_sdk", "no_such_sdk.part")),
        Backend("plain"),
    )
    plan = initialize(device="cpu")["alpha"]
    assert plan.spec.name == "cpu.plain.alpha"
    module = build_operations.module("alpha", "fast")
    assert dict(plan.excluded)[module].startswith("missing: required modules are absent: no_such")


def test_initialize_with_only_missing_modules_is_an_absent_dependency(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("fast", requires=("no_such_sdk",)))
    with pytest.raises(DependencyAbsentError, match="no_such_sdk"):
        initialize(device="cpu")


@pytest.mark.parametrize(
    "prologue",
    [
        "import no_such_transitive_module",
        "raise OSError('libhccl.so: not found')",
        "raise SystemExit(0)",
    ],
)
def test_initialize_with_an_installed_but_broken_backend_raises(
    build_operations: OperationBuilder, prologue: str
) -> None:
    build_operations.add(
        "alpha",
        Backend("fast", priority=10, requires=("json",), prologue=prologue),
        Backend("plain"),
    )
    with pytest.raises(DependencyBrokenError, match=r"alpha \[.*\.fast\].*import the backends"):
        initialize(device="cpu")
    assert KernelRegistry.get().published is None


def test_initialize_with_a_required_module_that_breaks_on_import_raises(
    build_operations: OperationBuilder, tmp_path
) -> None:
    (tmp_path / "broken_sdk.py").write_text("raise ImportError('undefined symbol: _ZN3c10')")
    build_operations.add(
        "alpha",
        Backend("fast", requires=("broken_sdk",), prologue="import broken_sdk"),
        Backend("plain"),
    )
    with pytest.raises(DependencyBrokenError, match="undefined symbol"):
        initialize(device="cpu")


@pytest.mark.parametrize(
    ("source", "error"), [("import absent_dependency", DependencyBrokenError), ("", None)]
)
def test_initialize_with_a_required_submodule_asks_its_package(
    build_operations: OperationBuilder, tmp_path, source: str, error
) -> None:
    package = tmp_path / "parent_sdk"
    package.mkdir()
    (package / "__init__.py").write_text(source)
    build_operations.add(
        "alpha", Backend("fast", priority=10, requires=("parent_sdk.part",)), Backend("plain")
    )
    if error is not None:
        with pytest.raises(
            error, match=r"parent_sdk\.part.*absent_dependency.*import the backends"
        ):
            initialize(device="cpu")
        return
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.plain.alpha"
    del sys.modules["parent_sdk"]


def test_initialize_with_a_required_child_of_a_plain_module_excludes(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add(
        "alpha", Backend("fast", requires=("json.decoder.part",)), Backend("plain")
    )
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.plain.alpha"


def test_initialize_with_a_backend_that_registers_nothing_raises(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("fast", registers=False), Backend("plain"))
    with pytest.raises(
        ConfigurationError, match=r"must register cpu\.fast\.alpha.*registered none"
    ):
        initialize(device="cpu")


def test_initialize_with_duplicate_names_raises_and_names_both_sites(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add(
        "alpha", Backend("one", name="cpu.x.alpha"), Backend("two", name="cpu.x.alpha")
    )
    with pytest.raises(ConfigurationError, match=r"one\.py:\d+ and again at .*two\.py:\d+"):
        initialize(device="cpu")


def test_initialize_with_contradicting_contracts_raises(build_operations: OperationBuilder) -> None:
    other = "CONTRACT.__class__('alpha', numerical_mode='bitwise')"
    build_operations.add("alpha", Backend("one"), Backend("two", contract=other))
    with pytest.raises(ContractError, match="must share one contract"):
        initialize(device="cpu")


def test_initialize_with_another_contract_version_excludes_it(
    build_operations: OperationBuilder,
) -> None:
    newer = "CONTRACT.__class__('alpha', version=2)"
    build_operations.add("alpha", Backend("one"), Backend("two", priority=9, contract=newer))
    plan = initialize(device="cpu")["alpha"]
    assert plan.spec.name == "cpu.one.alpha"
    assert _codes(plan) == {"cpu.two.alpha": "contract"}


def test_initialize_again_returns_the_same_mapping(build_operations: OperationBuilder) -> None:
    build_operations.add("alpha", Backend("fast", priority=10), Backend("plain"))
    first = initialize(device="cpu", overrides={"alpha": "plain"})
    assert initialize(device="cpu", overrides={"alpha": "plain"}) is first
    assert KernelRegistry.get().generation == 1


def test_initialize_with_another_configuration_needs_a_new_worker(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_operations.add("alpha", Backend("fast", priority=10), Backend("plain"))
    plans = initialize(device="cpu")
    with pytest.raises(ConfigurationError, match="start a new worker"):
        initialize(device="cpu", overrides={"alpha": "plain"})
    with pytest.raises(ConfigurationError, match="start a new worker"):
        initialize(device="npu")
    monkeypatch.setenv("XLLM_KERNEL_OVERRIDE_ALPHA", "plain")
    with pytest.raises(ConfigurationError, match=r"overrides: none.*overrides: alpha=plain"):
        initialize(device="cpu")
    monkeypatch.delenv("XLLM_KERNEL_OVERRIDE_ALPHA")
    assert initialize(device="cpu") is plans
    with pytest.raises(ConfigurationError, match="the published plans stay"):
        initialize(device="gpu")


def test_initialize_after_publication_refuses_registration(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("plain"))
    plan = initialize(device="cpu")["alpha"]
    with pytest.raises(ConfigurationError, match="frozen"):
        register_kernel(
            name="cpu.late.alpha",
            contract=plan.spec.contract,
            device="cpu",
            execution_modes=("eager",),
            input_domain="anything",
            solution="late",
        )(abs)


def test_initialize_takes_a_plug_in_registered_before(build_operations: OperationBuilder) -> None:
    path = build_operations.add("alpha", Backend("plain"))
    contract = __import__(path, fromlist=["CONTRACT"]).CONTRACT
    register_kernel(
        name="cpu.plugin.alpha",
        contract=contract,
        device="cpu",
        execution_modes=("eager",),
        input_domain="anything",
        solution="plugin",
        priority=99,
    )(abs)
    assert initialize(device="cpu", overrides={"alpha": "plugin"})["alpha"].function is abs


def test_initialize_failure_keeps_what_was_registered_before(
    build_operations: OperationBuilder,
) -> None:
    path = build_operations.add("alpha", Backend("plain", prologue="raise OSError"))
    contract = __import__(path, fromlist=["CONTRACT"]).CONTRACT
    register_kernel(
        name="cpu.plugin.alpha",
        contract=contract,
        device="cpu",
        execution_modes=("eager",),
        input_domain="anything",
        solution="plugin",
    )(abs)
    with pytest.raises(DependencyBrokenError):
        initialize(device="cpu")
    assert [s.name for s in KernelRegistry.get().specs("alpha")] == ["cpu.plugin.alpha"]


def test_initialize_from_two_threads_publishes_once(build_operations: OperationBuilder) -> None:
    build_operations.add("alpha", Backend("plain", prologue="import time; time.sleep(0.2)"))
    build_operations.add("beta", Backend("plain"))
    barrier = threading.Barrier(4)
    results: list[object] = []

    def worker() -> None:
        barrier.wait()
        results.append(initialize(device="cpu"))

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(results) == 4
    assert all(r is results[0] for r in results)
    assert KernelRegistry.get().generation == 1


def test_initialize_from_a_backend_is_refused(build_operations: OperationBuilder) -> None:
    prologue = "import xllm_kernel; xllm_kernel.initialize(device='cpu')"
    build_operations.add("alpha", Backend("plain", prologue=prologue))
    with pytest.raises(ConfigurationError, match="while a backend is being prepared"):
        initialize(device="cpu")
    build_operations.write("alpha", Backend("plain"))
    assert initialize(device="cpu")["alpha"].generation == 1


def test_initialize_interrupted_leaves_nothing_behind(build_operations: OperationBuilder) -> None:
    build_operations.add("alpha", Backend("plain"))
    build_operations.add("beta", Backend("plain", prologue="raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        initialize(device="cpu")
    assert KernelRegistry.get().specs("alpha") == ()
    build_operations.write("beta", Backend("plain"))
    assert set(initialize(device="cpu")) == {"alpha", "beta"}


@pytest.mark.parametrize("device", ["gpu", "npu:0", "", "CPU"])
def test_initialize_an_unknown_device_lists_the_known_ones(
    build_operations: OperationBuilder, device: str
) -> None:
    with pytest.raises(ConfigurationError, match="device must be one of cpu, npu"):
        initialize(device=device)


def test_initialize_an_unknown_mode_lists_the_known_ones(
    build_operations: OperationBuilder,
) -> None:
    with pytest.raises(ConfigurationError, match="execution_mode must be one of eager, compile"):
        initialize(device="cpu", execution_mode="aclgraph")


def test_receipts_tell_choice_entry_and_exclusions(build_operations: OperationBuilder) -> None:
    build_operations.add("alpha", Backend("fast", priority=10), Backend("plain"))
    with pytest.raises(ConfigurationError, match="must be initialised first"):
        receipts()
    initialize(device="cpu")
    receipt = receipts()["alpha"]
    assert receipt.implementation == "cpu.fast.alpha"
    assert receipt.entry.startswith("function throwaway_ops_")
    (other,) = receipt.excluded
    assert (other.name, other.code) == ("cpu.plain.alpha", "priority")
    assert "0 is lower than 10" in other.reason


def test_initialize_takes_the_same_overrides_in_any_order(
    build_operations: OperationBuilder,
) -> None:
    for name in ("alpha", "beta"):
        build_operations.add(name, Backend("fast", priority=10), Backend("plain"))
    plans = initialize(device="cpu", overrides={"beta": "plain", "alpha": "fast"})
    assert initialize(device="cpu", overrides={"alpha": "fast", "beta": "plain"}) is plans


def test_initialize_beside_plans_that_it_did_not_publish_is_refused(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_operations.add("alpha", Backend("plain"))
    initialize(device="cpu")
    other = KernelRegistry()
    other.publish({}, {})
    monkeypatch.setattr(KernelRegistry, "_instance", other)
    with pytest.raises(ConfigurationError, match="published without it"):
        initialize(device="cpu")
    monkeypatch.setattr(runtime, "_configuration", None)
    with pytest.raises(ConfigurationError, match="published without it"):
        initialize(device="cpu")


def test_initialize_imports_no_backend_of_another_device(
    build_operations: OperationBuilder,
) -> None:
    broken = "raise SystemError"
    build_operations.add(
        "alpha",
        Backend("first", device="abacus", prologue=broken),
        Backend("plain"),
        Backend("last", device="npu", prologue=broken),
    )
    plan = initialize(device="cpu")["alpha"]
    said = "device: declared for '{}', the worker runs 'cpu'"
    assert dict(plan.excluded) == {
        build_operations.module("alpha", "first"): said.format("abacus"),
        build_operations.module("alpha", "last"): said.format("npu"),
    }


def test_initialize_says_what_is_missing_and_how_to_get_it(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "blocked_sdk", None)
    build_operations.add(
        "alpha",
        Backend("one", requires=("no_such_sdk",), hint="install the SDK"),
        Backend("two", requires=("no_such_sdk", "json", "blocked_sdk")),
        Backend("plain", requires=("json",)),
    )
    excluded = dict(initialize(device="cpu")["alpha"].excluded)
    assert excluded == {
        build_operations.module("alpha", "one"): (
            "missing: required module is absent: no_such_sdk; install the SDK"
        ),
        build_operations.module("alpha", "two"): (
            "missing: required modules are absent: no_such_sdk, blocked_sdk"
        ),
    }


def test_initialize_asks_the_platform_what_the_system_lacks(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def absence(modules: tuple[str, ...]) -> str | None:
        asked.append(modules)
        return "no driver is loaded" if "json" in modules else None

    platform = SimpleNamespace(execution_modes=("eager",), absence=absence)
    monkeypatch.setattr(runtime, "get_platform", lambda device: platform)
    build_operations.add("alpha", Backend("fast", requires=("json",)), Backend("plain"))
    plan = initialize(device="cpu")["alpha"]
    module = build_operations.module("alpha", "fast")
    assert dict(plan.excluded) == {module: "missing: no driver is loaded"}
    assert asked == [("json",), ()]


def test_initialize_finds_a_required_submodule_that_nobody_imported(
    build_operations: OperationBuilder, tmp_path
) -> None:
    package = tmp_path / "whole_sdk" / "inner"
    package.mkdir(parents=True)
    for path in (package.parent / "__init__.py", package / "__init__.py", package / "part.py"):
        path.write_text("")
    build_operations.add("alpha", Backend("fast", requires=("whole_sdk.inner.part",)))
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.fast.alpha"
    assert "whole_sdk.inner.part" not in sys.modules
    for name in ("whole_sdk.inner", "whole_sdk"):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("backend", "wanted", "got"),
    [
        (
            Backend("a", declares=("cpu.a.alpha", "cpu.b.alpha")),
            r"cpu\.a\.alpha, cpu\.b",
            r"cpu\.a",
        ),
        (Backend("a", declares=("cpu.b.alpha",)), r"cpu\.b\.alpha", r"cpu\.a\.alpha"),
        (Backend("a", declares=(), registers=False), "an implementation", "none"),
        (Backend("a", registers=False), r"cpu\.a\.alpha", "none"),
    ],
)
def test_initialize_with_a_backend_that_registers_something_else_raises(
    build_operations: OperationBuilder, backend: Backend, wanted: str, got: str
) -> None:
    build_operations.add("alpha", backend, Backend("plain"))
    with pytest.raises(
        ConfigurationError, match=rf"must register {wanted}.*it registered {got}.*; correct its"
    ):
        initialize(device="cpu")


def test_initialize_with_a_backend_that_need_not_say_what_it_registers(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("plain", declares=()))
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.plain.alpha"


def test_initialize_again_sees_what_a_build_wrote_meanwhile(
    build_operations: OperationBuilder, tmp_path
) -> None:
    build_operations.add("alpha", Backend("fast", requires=("later_sdk",)))
    with pytest.raises(DependencyAbsentError):
        initialize(device="cpu")
    seen = tmp_path.stat()
    (tmp_path / "later_sdk.py").write_text("")
    # As where both happen within one tick of the file system's clock.
    os.utime(tmp_path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.fast.alpha"


def test_initialize_after_a_repair_reads_the_backend_and_its_marker_anew(
    build_operations: OperationBuilder, tmp_path
) -> None:
    marker = tmp_path / build_operations.package / "marker.py"
    marker.write_text("BROKEN = True")
    (tmp_path / "outer_sdk.py").write_text("")
    name = f"{build_operations.package}.marker"
    prologue = f"import outer_sdk, {name} as marker\nif marker.BROKEN: raise OSError('truncated')"
    backend = Backend("fast", requires=(name, "outer_sdk"), prologue=prologue)
    build_operations.add("alpha", Backend("plain"), backend)
    with pytest.raises(DependencyBrokenError, match="truncated"):
        initialize(device="cpu")
    assert name not in sys.modules
    assert not hasattr(sys.modules[build_operations.module("alpha")], "plain")
    assert "outer_sdk" in sys.modules  # an SDK may not be loaded twice
    del sys.modules["outer_sdk"]
    marker.write_text("BROKEN = False  # repaired")
    assert initialize(device="cpu")["alpha"].spec.name == "cpu.fast.alpha"


def test_initialize_failure_keeps_the_modules_that_the_host_had_imported(
    build_operations: OperationBuilder,
) -> None:
    build_operations.add("alpha", Backend("plain"))
    build_operations.add("beta", Backend("plain", prologue="raise OSError"))
    module = importlib.import_module(build_operations.module("alpha", "plain"))
    with pytest.raises(DependencyBrokenError):
        initialize(device="cpu")
    assert sys.modules[module.__name__] is module
    build_operations.write("beta", Backend("plain"))
    assert initialize(device="cpu")["alpha"].function is module.run


def test_initialize_forgets_only_the_module_that_its_package_holds(
    build_operations: OperationBuilder,
) -> None:
    package = build_operations.module("alpha")
    prologue = f"import {package}; {package}.plain = 'of its own'; raise OSError"
    build_operations.add("alpha", Backend("plain"), Backend("fast", prologue=prologue))
    with pytest.raises(DependencyBrokenError):
        initialize(device="cpu")
    assert sys.modules[package].plain == "of its own"
