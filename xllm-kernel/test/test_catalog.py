"""Discovery of operations: what the catalogue refuses, and that it imports no framework."""

from __future__ import annotations

from pathlib import Path

import pytest
from operation_builder import Backend, OperationBuilder

from xllm_kernel import catalog
from xllm_kernel.errors import ConfigurationError


def test_operations_lists_the_builtin_ones_with_their_backends() -> None:
    operations = catalog.operations()
    assert list(operations) == [
        "rms_norm",
        "rms_norm_out",
        "fused_add_rms_norm",
        "fused_add_rms_norm_inplace",
    ]
    assert operations["rms_norm"].devices == ("npu", "cpu")
    names = [n for b in operations["rms_norm"].backends for n in b.implementations]
    assert names == [
        "npu.xllm_native.rms_norm",
        "npu.xlite.rms_norm",
        "cpu.simd.rms_norm",
        "cpu.torch.rms_norm",
    ]
    for name in ("rms_norm_out", "fused_add_rms_norm", "fused_add_rms_norm_inplace"):
        names = [n for b in operations[name].backends for n in b.implementations]
        assert names == [f"cpu.simd.{name}", f"cpu.torch.{name}"]


def test_operations_refuses_a_module_without_operation(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_BUILTINS", ("json",))
    with pytest.raises(ConfigurationError, match="json must export OPERATION"):
        catalog.operations()


def test_operations_refuses_one_name_twice(
    build_operations: OperationBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_operations.add("alpha", Backend("plain"))
    monkeypatch.setattr(catalog, "_BUILTINS", (path, path))
    with pytest.raises(ConfigurationError, match="'alpha' must be defined once"):
        catalog.operations()


@pytest.mark.parametrize("name", ["Alpha", "alphA", "al-pha", "\N{LATIN CAPITAL LETTER SHARP S}"])
def test_operations_refuses_a_name_that_no_variable_can_spell(
    build_operations: OperationBuilder, name: str
) -> None:
    build_operations.add(name, Backend("plain"))
    with pytest.raises(ConfigurationError, match="lower-case identifier"):
        catalog.operations()


def test_every_declared_backend_module_has_its_file() -> None:
    package = Path(catalog.__file__).parent
    for definition in catalog.operations().values():
        for backend in definition.backends:
            relative = Path(*backend.module.split(".")[1:]).with_suffix(".py")
            assert (package / relative).is_file(), backend.module


@pytest.mark.parametrize("field", ["requires", "implementations"])
def test_a_string_in_place_of_a_tuple_is_refused(field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} must be a tuple of names, got 'torch'"):
        catalog.BackendModule("package.op.solution", "cpu", **{field: "torch"})


def test_backend_answers_to_its_short_and_full_names_alone() -> None:
    backend = catalog.BackendModule("ops.alpha.fast", "cpu", implementations=("cpu.fast.alpha",))
    assert backend.solution == "fast"
    answers = [
        name
        for name in ("eager", "fast", "zoom", "cpu.fast.alpha", "alpha", "ops.alpha.fast", "")
        if backend.answers_to(name)
    ]
    assert answers == ["fast", "cpu.fast.alpha"]
    assert not catalog.BackendModule("ops.alpha.fast", "cpu").answers_to("cpu.fast.alpha")
