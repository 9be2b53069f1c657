"""`./dev evidence`: which programs it knows, what the one about domains runs, what it returns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY_ROOT

sys.path.insert(0, str(REPOSITORY_ROOT / "tools"))

from devtool import programs, verbs


class _Runs:
    """Notes commands instead of running them."""

    def __init__(self, *statuses: int) -> None:
        self.commands: list[str] = []
        self._statuses = iter(statuses)

    def __call__(self, command: list[object], **options: object) -> int:
        self.commands.append(" ".join(Path(str(part)).name for part in command))
        return next(self._statuses)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Runs]:
    """Pretend that everything is built, and that the calls return 0 and then 1."""
    runs = _Runs(0, 1)
    monkeypatch.setattr(programs, "run", runs)
    monkeypatch.setattr(programs, "alone", contextlib.nullcontext)
    for name in ("configure", "step"):
        monkeypatch.setattr(programs, name, lambda *_, **__: 0)
    monkeypatch.setattr(programs.npu, "prepare", lambda: None)
    monkeypatch.setattr(programs, "VENV_NPU", tmp_path)
    return runs


def test_domains_goes_on_without_the_simulated_npu_and_says_so(
    runs: _Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert programs.domains("--cases", "7") == 0
    assert runs.commands == ["python -m domains --cpp-api refusals --cases 7"]
    assert "./dev npu-sim makes it" in capsys.readouterr().out


def test_domains_asks_the_simulated_npu_too_and_returns_the_worse(
    runs: _Runs, tmp_path: Path
) -> None:
    (tmp_path / "complete").touch()
    assert programs.domains() == 1
    assert runs.commands[1] == "run python -m domains --device npu"


def test_domains_finds_a_failure_on_the_processor_too(
    runs: _Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "complete").touch()
    monkeypatch.setattr(programs, "run", _Runs(1, 0))
    assert programs.domains() == 1


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line, without its handlers of signals."""
    monkeypatch.setattr(verbs.signal, "signal", lambda *_: None)
    return verbs.main


@pytest.mark.parametrize("arguments", [(), ("nothing",)])
def test_an_unknown_program_is_refused_with_those_that_exist(
    main: Callable[..., int], arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("evidence", *arguments) == 1
    assert "evidence must be one of benchmark, domains, tolerances, got" in capsys.readouterr().err


def test_the_verb_passes_options_on(
    main: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def program(*options: str) -> int:
        given.extend(options)
        return 3

    monkeypatch.setattr(verbs, "require_packages", lambda **_: None)
    monkeypatch.setattr(verbs, "build", lambda: None)
    monkeypatch.setitem(programs.PROGRAMS, "domains", program)
    assert main("evidence", "domains", "--cases", "5") == 3
    assert given == ["--cases", "5"]
