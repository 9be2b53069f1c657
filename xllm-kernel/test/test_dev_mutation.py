"""``./dev mutation``: what its score counts, what its list of explained mutants may say, its runs.

Planting itself needs Cosmic Ray, which only its own environment has: there the verb tries its
operators on examples, and each module's tests on a module that cannot be imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import REPOSITORY_ROOT

sys.path.insert(0, str(REPOSITORY_ROOT / "tools"))

from mutation import explained, runner
from mutation.explained import Explained, ListError
from mutation.score import Score, table
from mutation.targets import TARGETS
from mutation.trial import PACKAGE, Outcome


def _mutant(added: str) -> SimpleNamespace:
    return SimpleNamespace(module="registry.py", removed="a < b", added=added)


OUTCOMES = [
    *[(_mutant("a > b"), Outcome.KILLED)] * 5,
    (_mutant("a"), Outcome.TIMEOUT),
    (_mutant("b"), Outcome.SURVIVED),
    (_mutant("a <= b"), Outcome.SURVIVED),
]


def test_score_is_the_share_noticed_of_what_could_be() -> None:
    reason = Explained("registry.py", "a < b", "a <= b", "they never are equal")
    score = Score.of("registry.py", 40, OUTCOMES, [reason])
    counts = (score.places, score.sampled, score.killed, score.timeouts, score.explained)
    assert counts == (40, 8, 5, 1, 1)
    assert [m.added for m in score.survivors] == ["b"]
    assert score.percent == pytest.approx(100 * 6 / 7)
    assert Score.of("registry.py", 40, OUTCOMES, []).percent == pytest.approx(100 * 6 / 8)


def test_score_of_another_modules_explanation_is_no_better() -> None:
    for other in ("runtime.py", "registry.py"):
        reason = Explained(other, "a < b" if other == "runtime.py" else "a", "b", "whatever")
        assert Score.of("registry.py", 40, OUTCOMES, [reason]).explained == 0


def test_score_of_nothing_is_no_success() -> None:
    assert Score.of("registry.py", 0, [], []).percent == 0


def test_total_counts_mutants_not_modules() -> None:
    small = Score.of("a.py", 1, OUTCOMES[5:7], [])
    total = Score.total([Score.of("registry.py", 40, OUTCOMES, []), small])
    assert total.percent == pytest.approx(100 * 7 / 10)
    heading, module, all_ = table([small])
    assert heading.split()[-1] == "score"
    assert module.split() == ["a.py", "1", "2", "0", "1", "0", "1", "50.0", "%"]
    assert all_.split()[1:] == module.split()[1:]


def test_list_is_read_with_its_comments_left_out() -> None:
    text = "# a word\n\nregistry.py\n- a < b\n+ a <= b\n= never equal,\n= by the loop above\n"
    entry = Explained("registry.py", "a < b", "a <= b", "never equal, by the loop above")
    assert explained.parse(text) == [entry]
    assert explained.parse("registry.py\n- pass\n= no effect") == [
        Explained("registry.py", "pass", "", "no effect")
    ]


@pytest.mark.parametrize(
    "block",
    [
        "registry.py\n- a < b\n+ a <= b",
        "registry.py\n+ a <= b\n= no reason",
        "registry\n- a\n+ b\n= no module",
        "registry.py\n- a\n? b\n= no mark",
    ],
)
def test_list_that_does_not_explain_is_refused(block: str) -> None:
    with pytest.raises(ListError, match="a block must be"):
        explained.parse(block)


def test_list_that_outlived_its_line_is_refused() -> None:
    entry = Explained("registry.py", "a < b", "a <= b", "never equal")
    explained.check([entry], "registry.py", "if (\n    a < b\n):")
    explained.check([entry], "runtime.py", "")
    with pytest.raises(ListError, match=r"registry\.py has no such line any more: a < b"):
        explained.check([entry], "registry.py", "if a > b:")


def test_list_of_this_tree_holds() -> None:
    entries = explained.parse(explained.LIST.read_text(encoding="utf-8"))
    for module in {entry.module for entry in entries}:
        code = (PACKAGE / "python" / "xllm_kernel" / module).read_text(encoding="utf-8")
        explained.check(entries, module, code)


def test_every_target_and_its_tests_exist() -> None:
    for target in TARGETS:
        assert (PACKAGE / "python" / "xllm_kernel" / target.module).is_file()
        for name in target.tests:
            path, _, test = name.removeprefix("--deselect=test/").partition("::")
            text = (PACKAGE / "test" / path).read_text(encoding="utf-8")
            assert f"def {test}" in text, name


@pytest.mark.parametrize(
    ("body", "seconds", "status"),
    [
        ("assert True", 600, 0),
        ("assert False", 600, 1),
        ("import time; time.sleep(600)", 0.3, None),
    ],
)
def test_runner_tells_passed_failed_and_endless(
    tmp_path: Path, body: str, seconds: float, status: int | None
) -> None:
    path = tmp_path / "test_planted.py"
    path.write_text(f"def test_it():\n    {body}\n")
    arguments = ["-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(path)]
    assert runner.run(arguments, seconds) == status
