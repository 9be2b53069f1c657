"""The domains' tables in the documentation: what the domains say, and kept so."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from types import ModuleType

import pytest
from conftest import REPOSITORY_ROOT

from xllm_kernel import catalog
from xllm_kernel.clauses import Extent, FloatIn, Rank
from xllm_kernel.domain import Domain

SCRIPT = REPOSITORY_ROOT / "tools/domain_tables.py"
RANK, WIDTH, EPS = Rank("x", 1), Extent("x", -1, "width", 1), FloatIn("e", 0.0, 1.0)


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("domain_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["domain_tables"] = module
    spec.loader.exec_module(module)
    return module


def _domain(*clauses) -> Domain:
    return Domain("scale", ("x",), ("e",), clauses)


@pytest.mark.parametrize("name", catalog.operations())
def test_every_page_says_what_the_domains_say(tables: ModuleType, name: str) -> None:
    page = tables.DOCS / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    assert tables.renewed(text, catalog.operations()[name]) == text, "run ./dev format"


def test_every_implementation_is_on_its_page(tables: ModuleType) -> None:
    for operation in catalog.operations().values():
        declared = [name for b in operation.backends for name in b.implementations]
        suffix = f".{operation.contract.operation}"
        assert [name + suffix for name in tables.domains_of(operation)] == declared


def test_only_the_vendors_operator_has_no_domain(tables: ModuleType) -> None:
    without = [
        f"{name} {operation.contract.operation}"
        for operation in catalog.operations().values()
        for name, domain in tables.domains_of(operation).items()
        if domain is None
    ]
    assert without == ["npu.xllm_native rms_norm"]


def test_table_numbers_each_implementations_checks(tables: ModuleType) -> None:
    wide = dataclasses.replace(WIDTH, minimum=2)
    made = tables.table({"a.one": _domain(RANK, WIDTH, EPS), "a.two": _domain(EPS, wide)})
    assert made.splitlines() == [
        "| clause | what must hold | `a.one` | `a.two` |",
        "|---|---|---|---|",
        "| `x.rank` | x must have at least 1 dimension | 1 |  |",
        "| `x.width` | x.shape[-1] must be at least 1 | 2 |  |",
        "| `x.width` | x.shape[-1] must be at least 2 |  | 2 |",
        "| `e` | e must be finite, at least 0 and at most 1 | 3 | 1 |",
    ]


def test_a_domain_of_another_makes_its_page_stale(
    tables: ModuleType, tmp_path, monkeypatch, capsys
) -> None:
    for page in tables.DOCS.glob("*.md"):
        (tmp_path / page.name).write_text(page.read_text())
    page = tmp_path / "rms_norm.md"
    text = page.read_text()
    page.write_text(text.replace("| `eps` | eps must be finite", "| `eps` | eps may be anything"))
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    assert tables.main("--check") == 1
    assert capsys.readouterr().out == "out of date: rms_norm.md; run ./dev format\n"
    assert tables.main() == 0
    assert page.read_text() == text
    assert tables.main("--check") == 0


@pytest.mark.parametrize("spoil", ["BEGIN", "END"])
def test_a_page_without_its_marks_is_refused(tables: ModuleType, spoil: str) -> None:
    operation = catalog.operations()["rms_norm"]
    text = (tables.DOCS / "rms_norm.md").read_text()
    with pytest.raises(ValueError, match="once each"):
        tables.renewed(text.replace(getattr(tables, spoil), ""), operation)
    with pytest.raises(ValueError, match="once each"):
        tables.renewed(text + getattr(tables, spoil), operation)
