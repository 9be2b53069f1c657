"""Reports as text: tables that fit a terminal, and Markdown in which no text is markup."""

from __future__ import annotations

import re
import sys

import benchmark_documents as documents
import pytest
from conftest import need

from xllm_kernel.benchmark.report import markdown, terminal
from xllm_kernel.benchmark.report.columns import table
from xllm_kernel.benchmark.report.lines import lines
from xllm_kernel.benchmark.tables import Plain, fitted

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(params=["rich", "plain"])
def drawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Draw with and without the optional package."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "rich", None)
    else:
        need("rich")
    return str(request.param)


def _tables(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"  (case|\S*\d+x\d+)\b.* {2}", line)]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("name", ["pair", "peers", "single", "troubled", "partial", "hostile"])
def test_tables_fit_the_width(drawn: str, name: str, width: int) -> None:
    found = _tables(terminal(documents.ALL[name](), width, False))
    assert len(found) > 1
    assert max(map(len, found)) <= width


def test_80_columns_keep_case_median_ratio_and_verdict_and_say_what_went(drawn: str) -> None:
    text = terminal(documents.pair(), 80, False)
    head, first, *_ = _tables(text)
    assert head.split() == ["case", "threads", "implementation", "median", "us", "ratio", "verdict"]
    middle = documents.pair()["rows"][0]["timings"]["regimes"]["hot"]["against"]["ratio"]["middle"]
    assert first.split()[:3] == ["1x512", "1", "simd"]
    assert f"{middle:.3f} [" in first
    assert first.split()[-1] == "FASTER"
    assert "  cases: affine/bfloat16/*/seed5309\n  implementations: cpu.*.affine\n" in text
    (note,) = [line for line in text.splitlines() if "for want of width" in line]
    assert set(note.partition(": ")[2].split(", ")) == {
        *("of ceiling", "GB/s", "p90", "min", "MAD", "noise", "empty", "samples"),
    }


def test_80_columns_keep_the_ratio_of_a_lone_case_and_name_it_below(drawn: str) -> None:
    pair = documents.pair()
    pair["rows"] = [row for row in pair["rows"] if row["case_id"] == pair["rows"][0]["case_id"]]
    text = terminal(pair, 80, False)
    (head,) = [line for line in text.splitlines() if "implementation  " in line]
    assert head.split()[:6] == ["threads", "implementation", "median", "us", "ratio", "verdict"]
    assert f"\n  case: {pair['rows'][0]['case_id']}\n" in text


def test_a_wide_terminal_shows_every_column_and_no_note(drawn: str) -> None:
    text = terminal(documents.pair(), 250, False)
    assert "want of width" not in text
    assert "affine/bfloat16/1x512/seed5309  " in text
    assert _tables(text)[0].split()[-1] == "samples"


def test_both_ways_of_drawing_show_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    need("rich")
    for name in ("pair", "troubled", "simulated"):
        with_rich = terminal(documents.ALL[name](), 80, False).split()
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "rich", None)
            assert terminal(documents.ALL[name](), 80, False).split() == with_rich


def test_color_adds_nothing_but_color() -> None:
    need("rich")
    colored = terminal(documents.pair(), 80, True)
    assert "\x1b[" in colored
    assert ANSI.sub("", colored).split() == terminal(documents.pair(), 80, False).split()


def test_text_that_would_steer_a_terminal_is_shown_instead(drawn: str) -> None:
    document = documents.troubled()
    document["rows"][1]["reason"] = "\x1b[2Jgone\r\nover\x07 \u202eback"
    document["rows"][0]["case_id"] = "\x1b]0;title\x07"
    text = terminal(document, 80, False)
    assert not set(text) & {"\x1b", "\x07", "\r", "\u202e"}
    assert "\\x1b[2Jgone over\\x07 \\x202eback" in text
    assert "\\x1b]0;title\\x07" in text


def test_a_name_too_long_for_the_width_is_cut_in_its_middle() -> None:
    found = lines(documents.hostile())
    columns, cells = table([line for line in found if line.regime])
    _, shown, _ = fitted(columns, cells, 60)
    assert any("…" in cell for row in shown for cell in row)
    assert len({tuple(row[:3]) for row in shown}) == len(shown)


@pytest.mark.parametrize("width", [1, 20, 45])
def test_a_table_of_short_words_that_cannot_fit_is_drawn_all_the_same(width: int) -> None:
    columns = [Plain("case", words=True), Plain("ratio"), Plain("verdict", words=True)]
    cells = [["1x512", "1.300 [1.271, 1.330]", "SLOWER"], ["2x512", "1.300", "SAME"]]
    assert fitted(columns, cells, width)[:2] == (columns, cells)


def test_terminal_tells_reasons_commands_and_who_is_missing(drawn: str) -> None:
    text = terminal(documents.troubled(), 80, False)
    assert "after_timing: output: error 9.5 ULP, limit 0.75" in text
    assert text.count("    reproduce: python -m xllm_kernel.benchmark") == 3
    assert "ERROR  1 of 5 cases passed, 1 failed, 2 error, 1 n/a" in text
    told = terminal(documents.peers(), 80, False)
    assert "not there: peer.tvm.affine: no distribution of 'apache-tvm' for Python 3.11" in told


@pytest.mark.parametrize("form", [markdown, lambda document: terminal(document, 120, False)])
def test_simulated_rows_show_the_word_and_no_figure(form) -> None:
    text = form(documents.simulated())
    rows = [line.replace("|", " ").split() for line in text.splitlines() if "x512 " in line]
    rows += [line.replace("|", " ").split() for line in text.splitlines() if "/1x512/" in line]
    assert [row[-2:] for row in rows if "ULP" not in row] == [["simulated", "simulated"]]
    assert "90" not in "".join(re.findall(r"\b90\d\.5\b", text))
    assert "no evidence of accuracy or performance" in text


def test_markdown_has_every_section_that_the_document_fills() -> None:
    text = markdown(documents.troubled())
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        *("## Figures, hot", "## Rows without figures", "## Reasons", "## Processes"),
        *("## Validation", "## The run", "## Environment", "## Built as"),
        *("## Candidates passed over", "## Legend"),
    ]
    assert "  Fatal Python error: Segmentation fault" in text
    peers = markdown(documents.peers())
    assert "- peer.mkl.affine: has no such form \\| of the operation" in peers
    assert "- **SLOWER**: " in peers
    assert "- **SAME**: " not in peers
    counts = markdown(documents.pair())
    assert "12 for 'other processes used a processor'" in counts


def test_markdown_of_hostile_text_has_no_markup_in_it() -> None:
    need("markdown_it")
    from markdown_it import MarkdownIt

    document = documents.hostile()
    document["rows"][-1]["stderr"] = "```\n# head\n<b>"
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown(document))
    every = [inner for token in tokens for inner in [token, *(token.children or ())]]
    kinds = {token.type for token in every}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "code_inline"}
    rows = [token for token in tokens if token.type == "tr_open"]
    cells = [token for token in tokens if token.type in ("td_open", "th_open")]
    assert len(cells) > len(rows) > 10
    shown = {token.content for token in every if token.type == "text"}
    assert any(documents.HOSTILE in text for text in shown | {""}) or any(
        "onerror" in text for text in shown
    )
    quoted = [token.content for token in tokens if token.type == "fence"]
    assert quoted == [documents.HOSTILE + "\n", "```\n# head\n<b>\n"]
