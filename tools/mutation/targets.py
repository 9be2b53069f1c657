"""Which tests guard which module: few and fast ones, since every mutant runs them.

A survivor is one of these tests' business; that some slow test elsewhere would see it is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A module under attack.

    Attributes:
        module: path below the package.
        tests: what pytest runs, below the folder of the tests, the likeliest to fail first; and
            options.
    """

    module: str
    tests: tuple[str, ...]


# These start processes, which load PyTorch anew.
_SLOW_EXPLAIN = (
    "--deselect=test/test_explain.py::test_explain_as_a_module_answers_for_this_installation"
)
_SLOW_CLI = tuple(
    f"--deselect=test/test_numerics_cli.py::{name}"
    for name in (
        "test_help_needs_no_framework",
        "test_both_commands_run_the_default_torch_solution",
        "test_npu_without_its_framework_exits_3_and_names_it",
        "test_interrupted_run_leaves_its_report",
    )
)
_CLI, _REPORT = "test_numerics_cli.py", "test_numerics_report.py"
_DATA = "test_data_classes.py"

_PARTS, _PROCESSES, _SHARDS = (
    f"test_numerics_{name}.py" for name in ("parts", "processes", "shards")
)
_SLOW_ADVERSARY = (
    "--deselect=test/test_numerics_adversaries.py::"
    "test_the_interpreter_is_not_left_by_a_backend_that_exits"
)
_XLITE = "test_xlite_artifact.py"
_SLOW_XLITE = tuple(
    f"--deselect=test/{_XLITE}::test_preload_{name}"
    for name in (
        "lends_the_launchers_what_the_provider_brought",
        "refuses_another_library_of_the_name",
        "names_a_library_that_does_not_load",
    )
)
_ADVERSARIES = ("test_numerics_adversaries.py", _SLOW_ADVERSARY)

TARGETS = (
    Target("registry.py", ("test_registry.py", "test_selection.py", _DATA)),
    Target("selection.py", ("test_selection.py", _DATA)),
    Target("runtime.py", ("test_initialize.py", "test_selection.py", _DATA)),
    Target("catalog.py", ("test_catalog.py", "test_selection.py", _DATA)),
    Target("domain.py", ("test_domain.py", _DATA)),
    Target("clauses.py", ("test_domain.py", _DATA)),
    Target("receipts.py", ("test_explain.py", "test_initialize.py", _DATA, _SLOW_EXPLAIN)),
    Target("explain.py", ("test_explain.py", _SLOW_EXPLAIN)),
    Target("artifacts.py", ("test_artifacts.py", _XLITE, _DATA, *_SLOW_XLITE)),
    Target("numerics/report.py", (_REPORT, _CLI, _DATA, *_SLOW_CLI)),
    Target("numerics/render.py", ("test_numerics_render.py",)),
    Target("numerics/verify.py", ("test_numerics_verify.py", _CLI, *_SLOW_CLI)),
    Target(
        "numerics/case_run.py",
        ("test_numerics_case_run.py", _CLI, *_ADVERSARIES, _DATA, *_SLOW_CLI),
    ),
    Target("numerics/arguments.py", (_CLI, *_SLOW_CLI)),
    Target("numerics/catalog.py", (_CLI, *_SLOW_CLI)),
    Target("numerics/integrity.py", ("test_numerics_integrity.py",)),
    Target("numerics/vacuity.py", ("test_numerics_vacuity.py",)),
    Target("numerics/reproduce.py", (_PARTS,)),
    Target("numerics/self_test.py", ("test_planted_report.py",)),
    Target("numerics/planted/report.py", ("test_planted_report.py",)),
    Target("numerics/processes/following.py", (_PARTS,)),
    Target("numerics/processes/wire.py", (_PARTS,)),
    Target("numerics/processes/ranks.py", (_SHARDS,)),
    Target("numerics/processes/child.py", (_PROCESSES,)),
    Target("numerics/processes/crew.py", (_PROCESSES, _PARTS)),
    Target("numerics/processes/worker.py", (_CLI, _PARTS, _PROCESSES, *_SLOW_CLI)),
    Target("numerics/processes/shards.py", (_SHARDS,)),
    Target("numerics/progress.py", ("test_numerics_render.py",)),
    Target("benchmark/timing.py", ("test_benchmark_timing.py", "test_benchmark_reset.py")),
    Target("benchmark/units.py", ("test_benchmark_units.py", "test_benchmark_reset.py")),
    Target("benchmark/honesty.py", ("test_benchmark_honesty.py",)),
    Target("benchmark/conduct.py", ("test_benchmark_conduct.py",)),
    Target("benchmark/figures.py", ("test_benchmark_figures.py",)),
    Target("benchmark/leading.py", ("test_benchmark_ensemble.py", "test_benchmark_leading.py")),
    Target("benchmark/ensemble.py", ("test_benchmark_ensemble.py",)),
    Target("benchmark/ceilings/roofline.py", ("test_ceilings_roofline.py",)),
    Target("benchmark/ceilings/probe.py", ("test_ceilings_probe.py",)),
    Target("benchmark/past/documents.py", ("test_benchmark_past_documents.py",)),
    Target("benchmark/past/pairing.py", ("test_benchmark_past_compare.py",)),
    Target("benchmark/past/judge.py", ("test_benchmark_past_judge.py",)),
    Target("benchmark/past/store.py", ("test_benchmark_past_store.py",)),
    Target("benchmark/report/lines.py", ("test_benchmark_lines.py",)),
    Target("benchmark/statistics/summary.py", ("test_benchmark_statistics.py",)),
    Target("benchmark/statistics/ratios.py", ("test_benchmark_ratios.py",)),
    Target("benchmark/statistics/verdicts.py", ("test_benchmark_verdicts.py",)),
    Target("benchmark/statistics/plateau.py", ("test_benchmark_plateau.py",)),
    Target("benchmark/statistics/disturbance.py", ("test_benchmark_disturbance.py",)),
    Target("benchmark/statistics/machine.py", ("test_benchmark_disturbance.py",)),
)
