"""Actions that wait for a module to be imported, and the compiler that is imported by need only."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import need_native

from xllm_kernel.after_import import after_import

NAME = "waited_for"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file of a module that nobody has imported."""
    path = tmp_path / f"{NAME}.py"
    path.write_text("DONE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    sys.modules.pop(NAME, None)


def test_an_action_waits_until_the_module_is_complete(module: Path) -> None:
    seen: list[bool] = []
    after_import(NAME, lambda: seen.append(importlib.import_module(NAME).DONE))
    assert (seen, NAME in sys.modules) == ([], False)
    importlib.import_module(NAME)
    assert seen == [True]


def test_actions_come_in_order_and_once(module: Path) -> None:
    seen: list[int] = []
    for number in range(3):
        after_import(NAME, lambda number=number: seen.append(number))  # type: ignore[misc]
    found = importlib.import_module(NAME)
    importlib.reload(found)
    assert seen == [0, 1, 2]


def test_of_a_module_that_is_there_at_once(module: Path) -> None:
    importlib.import_module(NAME)
    seen: list[int] = []
    after_import(NAME, lambda: seen.append(1))
    assert seen == [1]


def test_a_module_that_others_put_there_has_all_actions_called(module: Path) -> None:
    """As finders do that stand before ours, of test runners and instrumentation."""
    seen: list[int] = []
    after_import(NAME, lambda: seen.append(1))
    spec = importlib.util.spec_from_file_location(NAME, module)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    assert seen == []
    after_import(NAME, lambda: seen.append(2))
    after_import(NAME, lambda: seen.append(3))
    assert seen == [1, 2, 3]


def test_of_a_module_that_is_being_imported_at_its_end(module: Path) -> None:
    module.write_text(
        "from xllm_kernel.after_import import after_import\n"
        "import builtins\n"
        f"after_import({NAME!r}, lambda: builtins.waited_for_seen.append(DONE))\n"
        "DONE = True\n"
    )
    seen: list[bool] = []
    sys.modules["builtins"].waited_for_seen = seen  # type: ignore[attr-defined]
    first: list[int] = []
    after_import(NAME, lambda: first.append(1))
    importlib.import_module(NAME)
    assert (first, seen) == ([1], [True])


def test_the_module_has_its_own_loader(module: Path) -> None:
    after_import(NAME, lambda: None)
    found = importlib.import_module(NAME)
    assert found.__spec__ is not None
    assert type(found.__spec__.loader).__name__ == "SourceFileLoader"
    assert found.__loader__ is found.__spec__.loader
    assert found.__file__ == str(module)


def test_an_action_that_fails_fails_the_import(module: Path) -> None:
    def fail() -> None:
        raise ValueError("told wrongly")

    after_import(NAME, fail)
    with pytest.raises(ValueError, match="told wrongly"):
        importlib.import_module(NAME)
    assert NAME not in sys.modules


def test_a_module_that_fails_keeps_its_actions_for_the_next_try(module: Path) -> None:
    seen: list[int] = []
    after_import(NAME, lambda: seen.append(1))
    module.write_text("raise ValueError('not yet')\n")
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module(NAME)
    assert seen == []
    module.write_text("DONE = True  # and another length\n")
    importlib.import_module(NAME)
    assert seen == [1]


def test_a_module_that_is_nowhere_is_not_found() -> None:
    after_import("waited_for_in_vain", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("waited_for_in_vain")


def test_another_thread_sees_the_module_only_after_its_actions(module: Path) -> None:
    acting, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def act() -> None:
        acting.set()
        go_on.wait(10)
        order.append("action")

    def use() -> None:
        importlib.import_module(NAME)
        order.append("use")

    after_import(NAME, act)
    threads = [threading.Thread(target=use) for _ in range(2)]
    threads[0].start()
    acting.wait(10)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["action", "use", "use"]


def test_an_import_that_others_began_before_is_waited_for(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No loader of ours sees its end, so that nobody would ever call what waited for it."""
    begun, go_on = threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "waited_for_events", (begun, go_on), raising=False)
    module.write_text(
        "import sys\n"
        "begun, go_on = sys.waited_for_events\n"
        "begun.set()\n"
        "go_on.wait(10)\n"
        "DONE = True\n"
    )
    seen: list[bool] = []
    importing = threading.Thread(target=importlib.import_module, args=(NAME,))
    importing.start()
    begun.wait(10)
    asking = threading.Thread(
        target=after_import, args=(NAME, lambda: seen.append(importlib.import_module(NAME).DONE))
    )
    asking.start()
    asking.join(0.2)
    assert seen == []
    go_on.set()
    importing.join(10)
    asking.join(10)
    assert seen == [True]


def test_eager_calls_do_not_import_the_compiler_and_it_sees_the_operator_later() -> None:
    """The compiler takes longer to import than all else that a process of eager calls does."""
    need_native()
    if importlib.util.find_spec("xllm_kernel._build.fastcall") is None:
        pytest.skip("built without XLLM_KERNEL_BUILD_FASTCALL")
    lines = (
        "import sys, torch, xllm_kernel",
        "plans = xllm_kernel.initialize(device='cpu')",
        "norm = plans['rms_norm'].function",
        "x, w = torch.randn(4, 512), torch.randn(512)",
        "right = norm(x, w, 1e-5)",
        "assert 'torch._dynamo' not in sys.modules",
        "seen = []",
        "def backend(graph, inputs):",
        "    seen.extend(str(n.target) for n in graph.graph.nodes if n.op == 'call_function')",
        "    return graph.forward",
        "compiled = torch.compile(lambda x: norm(x, w, 1e-5), fullgraph=True, backend=backend)",
        "assert compiled(x).equal(right)",
        "print(seen)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "['xllm_kernel.simd_rms_norm.default']"
