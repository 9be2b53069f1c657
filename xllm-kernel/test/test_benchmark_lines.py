"""What may be shown of a row and what its verdict is; the sentences of the summary."""

from __future__ import annotations

from typing import Any

import benchmark_documents as documents
import pytest

from xllm_kernel.benchmark.names import shortened
from xllm_kernel.benchmark.report.columns import groups, microseconds, ratio_text, table
from xllm_kernel.benchmark.report.facts import worst_error
from xllm_kernel.benchmark.report.lines import lines
from xllm_kernel.benchmark.report.reasons import processes, reasons
from xllm_kernel.benchmark.report.summary import headline, sentences, standings

OURS, BASELINE = documents.OURS, documents.BASELINE


def _pair(**changes: Any) -> dict[str, Any]:
    """Return a candidate of 2 us beside a baseline of 4 us; ``changes`` are of its figures."""
    base, mine = [4.0, 4.0, 4.0], [2.0, 2.0, 2.0]
    said = documents.against(mine, base, base, "FASTER")
    ours = documents.figures(mine, against=said) | changes
    theirs = documents.figures(base)
    rows = [
        documents.row(regimes={"hot": ours}),
        documents.row(BASELINE, regimes={"hot": theirs}),
    ]
    return documents.document(rows, baseline=BASELINE)


def test_verdicts_of_a_pair_are_the_documents_and_the_baseline_is_named() -> None:
    ours, theirs = lines(_pair())
    assert (ours.verdict, ours.median) == ("FASTER", 2.0)
    assert (theirs.verdict, theirs.median) == ("baseline", 4.0)


def test_unstable_figures_are_shown_without_their_verdict() -> None:
    ours, _ = lines(_pair(unstable=["throttled"]))
    assert (ours.verdict, ours.unstable, ours.median) == ("UNSTABLE", ("throttled",), 2.0)
    said = sentences(_pair(unstable=["throttled"]), lines(_pair(unstable=["throttled"])))
    assert said[1] == f"Against {BASELINE}, hot: 1 UNSTABLE."
    assert sentences(_pair(), lines(_pair()))[3].startswith("The same thing measured twice differs")


def test_noise_of_unstable_rows_is_in_no_summary() -> None:
    document = _pair(unstable=["throttled"])
    assert "The same thing measured twice" not in " ".join(sentences(document, lines(document)))


def test_a_wide_spread_is_unstable_though_nobody_gave_a_reason() -> None:
    (line,) = lines(
        documents.document([documents.row(regimes={"hot": documents.figures([1.0, 2.0, 3.0])})])
    )
    assert line.verdict == "UNSTABLE"
    assert line.unstable == ("the deviation is over a tenth of the median",)


def _impossible() -> dict[str, Any]:
    needs = documents.work("bfloat16", 16, 512)
    return documents.roofline(needs, 0.2)


def test_impossible_figures_are_flagged_and_in_no_cell() -> None:
    document = _pair(roofline=_impossible())
    found = lines(document)
    assert (found[0].verdict, found[0].median, found[0].against) == ("IMPOSSIBLE", None, None)
    columns, cells = table(found)
    shown = {c.heading: text for c, text in zip(columns, cells[0], strict=True) if text != "-"}
    assert set(shown) == {"case", "threads", "implementation", "verdict"}
    (reason,) = reasons(found)
    assert "819 % of the ceiling 'copy', which takes 1.638 us" in reason.text
    assert "1 figure beyond what the machine allows" in sentences(document, found)[-1]


def test_an_impossible_baseline_takes_the_ratios_with_it() -> None:
    document = _pair()
    document["rows"][1]["timings"]["regimes"]["hot"]["roofline"] = _impossible()
    ours, theirs = lines(document)
    assert (theirs.verdict, ours.verdict, ours.against) == ("IMPOSSIBLE", "", None)
    assert ours.median == 2.0
    assert [reason.text for reason in reasons([ours])] == [
        "no ratio: the baseline's figure is impossible"
    ]


def test_a_ratio_that_is_not_there_has_a_reason() -> None:
    document = _pair(against=None)
    ours, theirs = lines(document)
    assert (ours.verdict, theirs.verdict) == ("", "baseline")
    (reason,) = reasons([ours, theirs])
    assert reason.text.startswith("no ratio: too few rounds in which its sample and the baseline's")
    assert f"Against {BASELINE}, hot: 1 without a ratio." in sentences(document, [ours, theirs])
    del document["rows"][1]
    (ours,) = lines(document)
    assert ours.doubt == "the baseline has no figures here"


def test_without_a_baseline_no_ratio_is_missed() -> None:
    (ours,) = lines(documents.document([documents.row(regimes={"hot": documents.figures([2.0])})]))
    assert ours.doubt is None


def test_a_simulated_row_shows_nothing_even_where_figures_were_planted() -> None:
    document = _pair()
    document["rows"][0]["evidence"] = "simulated"
    ours, _ = lines(document)
    assert (ours.verdict, ours.figures, ours.regime) == ("simulated", None, None)
    assert [each.implementation for each in standings(lines(document))] == [BASELINE]
    ((regime, _), (without, some)) = groups(lines(document))
    assert (regime, without, some) == ("hot", None, [ours])
    assert table(some)[1] == [[ours.case, "1", "passed", "simulated", "simulated"]]


def test_no_column_mixes_regimes_or_hides_thread_counts() -> None:
    for name in ("single", "peers"):
        for regime, some in groups(lines(documents.ALL[name]())):
            assert {line.regime for line in some} == {regime}
    columns, _ = table(lines(documents.peers()))
    weights = {column.heading: column.weight for column in columns}
    assert weights["threads"] >= 96


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["op/bf16/1x2/s5", "op/bf16/3x4/s5"], ["1x2", "3x4"]),
        (["op/bf16/1x2/s5", "op/f32/1x2/s5"], ["bf16", "f32"]),
        (["op/1/x", "op/11/x"], ["1", "11"]),
        (["op/a", "op/a/a"], ["op/a", "op/a/a"]),
        (["op/x"], ["op/x"]),
        (["a", "b"], ["a", "b"]),
        (["a/b/c", "a/c"], ["a/b/c", "a/c"]),
    ],
)
def test_names_lose_whole_parts_that_all_have(names: list[str], short: list[str]) -> None:
    assert list(shortened(names).names.values()) == short


def test_the_pattern_says_what_names_lost() -> None:
    assert shortened(["op1/1/x", "op1/2/x"]).pattern == "op1/*/x"
    assert shortened(["cpu.a.op", "cpu.b.op"], ".").pattern == "cpu.*.op"
    assert shortened(["a/b", "c"]).pattern == "*"


def test_summary_counts_ranks_and_measures() -> None:
    document = documents.peers()
    found = lines(document)
    said = sentences(document, found)
    assert said[0] == (
        "24 cases of 8 implementations in bfloat16 and float32 on 1 and 2 threads, hot: 384 rows "
        "with figures."
    )
    assert said[1] == f"Against {BASELINE}, hot: 240 FASTER, 96 SLOWER."
    order = [word.strip().split()[0] for word in said[2].partition("): ")[2].split(",")]
    # The speeds with which the document was made.
    assert order == [
        *(OURS, "peer.zentorch.affine", "peer.vllm.affine", "peer.inductor.affine"),
        *("peer.onnxruntime.affine", "peer.ggml.affine", "peer.numpy.affine"),
    ]
    assert said[-1] == "Not there: peer.tvm.affine and peer.mkl.affine."


def test_summary_of_a_killed_run_says_what_did_not_run() -> None:
    document = documents.partial()
    assert headline(document) == "NOT RUN  2 of 6 cases passed, 4 not run"
    assert "The run did not end: 4 rows did not run." in sentences(document, lines(document))


def test_noise_is_what_was_measured_in_rows_with_a_ratio_and_without() -> None:
    document = documents.pair()
    quiet = {"low": 1.0, "middle": 1.0, "high": 1.002}
    for row in document["rows"]:
        figures = row["timings"]["regimes"]["hot"]
        figures["noise_floor"] = quiet
        if figures["against"] is not None:
            figures["against"] |= {"noise_floor": quiet, "band": 0.0115}
    found = lines(document)
    assert {line.against is None for line in found} == {True, False}
    assert all(line.noise == pytest.approx(0.002) for line in found)


def test_a_row_shows_operations_a_second_where_arithmetic_binds_and_bytes_elsewhere() -> None:
    document = documents.pair()
    first = document["rows"][0]["timings"]["regimes"]["hot"]["roofline"]
    first |= {"binding": "fma", "gflop_per_s": 12.34, "gb_per_s": 5.678}
    columns, cells = table(lines(document))
    headings = [column.heading for column in columns]
    at = [headings.index(name) for name in ("GB/s", "GFLOP/s")]
    assert [cells[0][i] for i in at] == ["-", "12.3"]
    assert cells[1][at[0]] != "-"
    assert cells[1][at[1]] == "-"
    assert "GFLOP/s" not in [column.heading for column in table(lines(documents.pair()))[0]]


def test_an_implementation_that_is_its_own_baseline_says_why_it_has_no_ratio() -> None:
    document = documents.single()
    document["baseline"] = document["implementation"]
    (line, *_) = lines(document)
    assert line.against is None
    assert not line.is_baseline
    assert line.doubt is not None
    assert line.doubt.startswith("too few rounds")
    document["missing"] = [{"name": "another", "reason": "not installed"}]
    (line, *_) = lines(document)
    assert line.is_baseline
    assert line.doubt is None


def test_summary_without_a_probe_says_why_there_are_no_ceilings() -> None:
    document = _pair() | {"ceilings": {"level": None, "absent": "the library is not built"}}
    assert "No ceilings: the library is not built." in sentences(document, lines(document))


def test_summary_counts_the_rows_whose_ceiling_is_not_known() -> None:
    document = documents.pair() | {"ceilings": {"level": "avx2", "absent": None}}
    assert "No ceiling" not in " ".join(sentences(document, lines(document)))
    for row in document["rows"][:2]:
        row["timings"]["regimes"]["hot"]["roofline"] = None
    said = sentences(document, lines(document))
    (told,) = [one for one in said if one.startswith("No ceiling")]
    assert told.startswith("No ceiling is known for 2 rows: ")
    for row in document["rows"]:
        regimes = row["timings"]["regimes"]
        regimes["enqueue"] = regimes["hot"] | {"roofline": None}
    assert told in sentences(document, lines(document))
    for row in document["rows"]:
        row["work"] = None  # the suite states none
    said = sentences(document, lines(document))
    assert not [one for one in said if one.startswith("No ceiling")]


def test_processes_that_died_are_told_with_their_rank() -> None:
    document = documents.troubled()
    document["ranks"] = 2
    document["processes"]["lost"] = [1]
    case = document["rows"][-1]["case_id"]
    assert processes(document) == [
        f"at {case}, step 'timing': SIGSEGV (rank 0)",
        "processes started again to go on: 1",
        "rank 1 went away",
    ]


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        (([0.25, 0.75], [0.5, 0.75]), "0.500 of 0.750 ULP"),
        (([0.25, 0.75], ["nan", 0.75]), "nan of 0.750 ULP"),
        ((["inf", 0.75], [0.5, 0.75]), "inf of 0.750 ULP"),
        ((), None),
    ],
)
def test_worst_error_is_the_largest_of_all_phases(errors: Any, told: str | None) -> None:
    phases = {
        str(i): {"outputs": [{"max_error_ulp": error, "limit_ulp": limit}]}
        for i, (error, limit) in enumerate(errors)
    }
    assert worst_error({"validation": phases}) == told


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.500"), (9.9994, "9.999"), (12.345, "12.35"), (123.45, "123.5")]
)
def test_microseconds_have_about_four_digits(value: float, text: str) -> None:
    assert microseconds(value) == text
    assert microseconds(None) == "-"


def test_a_ratio_has_its_interval_also_where_that_has_no_end() -> None:
    assert ratio_text({"middle": 0.5, "low": 0.4954, "high": 2.5}) == "0.500 [0.495, 2.50]"
    assert ratio_text({"middle": 150.2, "low": 0, "high": "inf"}) == "150 [0.000, inf]"
