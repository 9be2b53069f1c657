"""Data of the shared modules cannot change under whoever holds it."""

from __future__ import annotations

import dataclasses
import importlib

import pytest

MODULES = (
    *("artifacts", "catalog", "clauses", "domain", "launchers", "receipts", "registry", "runtime"),
    *("selection", "numerics.captured", "numerics.case_run", "numerics.report", "numerics.suite"),
    "numerics.verify",
)

GROWING = {"Report", "Row", "Processes"}  # filled in while the cases run


def _data_classes(module: str) -> list[type]:
    defined = vars(importlib.import_module(f"xllm_kernel.{module}")).values()
    mine = [c for c in defined if isinstance(c, type) and c.__module__ == f"xllm_kernel.{module}"]
    return [c for c in mine if dataclasses.is_dataclass(c)]


@pytest.mark.parametrize("module", MODULES)
def test_data_classes_of_a_module_are_frozen_and_slotted(module: str) -> None:
    for kind in _data_classes(module):
        assert kind.__dataclass_params__.frozen or kind.__name__ in GROWING, kind
        # Without slots a misspelt attribute would be one more, and nobody would hear of it.
        assert "__slots__" in vars(kind), kind


def test_the_rule_looks_at_the_classes_that_matter() -> None:
    names = {kind.__name__ for module in MODULES for kind in _data_classes(module)}
    assert {"OpContract", "KernelSpec", "PreparedKernel", "Receipt", "Domain", "Rank"} <= names
