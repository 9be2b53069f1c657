"""The HTML page as text: whole, closed to the outside, legible; plots, samples and files."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import benchmark_documents as documents
import pytest

from xllm_kernel.benchmark.report import markdown, page, write_all
from xllm_kernel.benchmark.report.html import data, joined, tag
from xllm_kernel.benchmark.report.lines import lines
from xllm_kernel.benchmark.report.plots import intervals, marks, sweeps
from xllm_kernel.benchmark.report.plots.scales import Log, bytes_, microseconds, spanning, ticks
from xllm_kernel.benchmark.report.samples import drawn, envelope

LARGEST = 5_000_000
VOID = {"meta", "link", "input", "br"}


class _Elements(HTMLParser):
    """Collects elements, and complains of those that do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((name, dict(attributes)))
        if name not in VOID:
            self._open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self._open.pop() == name


def _elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = _Elements()
    reader.feed(text)
    reader.close()
    return reader.found


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: page(make()) for name, make in documents.ALL.items()}


@pytest.mark.parametrize("name", documents.ALL)
def test_page_is_well_formed_small_and_has_each_name_once(pages: dict[str, str], name: str) -> None:
    found = _elements(pages[name])
    assert len(pages[name].encode()) < LARGEST
    names = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(names) == len(set(names))
    heads = [attributes for element, attributes in found if element == "th"]
    assert all(attributes.get("scope") in ("row", "col") for attributes in heads)
    elements = [element for element, _ in found]
    assert elements.count("table") == elements.count("caption")
    assert elements.count("h1") == elements.count("main") == 1


@pytest.mark.parametrize("name", documents.ALL)
def test_page_refers_to_nothing_outside_and_holds_no_handler(
    pages: dict[str, str], name: str
) -> None:
    for element, attributes in _elements(pages[name]):
        for key in ("src", "href", "action", "data", "poster"):
            assert (attributes.get(key) or "#").startswith(("#", "data:,")), (element, attributes)
        assert not [key for key in attributes if key.startswith("on") or key == "style"]
        assert element not in ("img", "iframe", "object", "embed", "base")
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", pages[name])


def test_policy_names_exactly_the_style_and_the_script_of_the_page(pages: dict[str, str]) -> None:
    text = pages["pair"]
    (policy,) = [
        str(attributes["content"])
        for element, attributes in _elements(text)
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert set(rules) == {
        *("default-src", "style-src", "script-src", "img-src", "base-uri", "form-action"),
    }
    assert (rules["default-src"], rules["img-src"]) == ("'none'", "data:")
    for element, source in (("style", "style-src"), ("script", "script-src")):
        (inside,) = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[source] == f"'sha256-{digest}'"


def test_parts_stand_in_the_order_of_a_readers_questions(pages: dict[str, str]) -> None:
    found = [
        attributes["id"]
        for element, attributes in _elements(pages["peers"])
        if element == "section"
    ]
    assert found == [
        *("summary", "sweeps", "ratios", "figures", "samples", "environment", "receipts"),
        *("validation", "reasons", "missing", "legend"),
    ]


def test_hostile_text_makes_no_element(pages: dict[str, str]) -> None:
    honest = {element for element, _ in _elements(pages["pair"])}
    assert {element for element, _ in _elements(pages["hostile"])} - honest <= {"pre"}
    assert pages["hostile"].count("</script>") == 2
    assert "&lt;/script&gt;&lt;img src=x" in pages["hostile"]


def test_every_implementations_build_is_shown_in_both_pages() -> None:
    document = documents.single()
    other = document["receipt"] | {"build": ["library sha256 <5e>"]}
    document["other_receipts"] = {"cpu.torch.affine": other, "cpu.none.affine": None}
    for text in (page(document), markdown(document)):
        assert "cpu.torch.affine: built as" in text
        assert "library sha256" in text
        assert "cpu.none.affine" not in text
    assert "&lt;5e&gt;" in page(document)


def test_simulated_figures_are_nowhere_in_the_page(pages: dict[str, str]) -> None:
    samples = documents.simulated()["rows"][0]["simulated_timings"]["regimes"]["graph"]["wall_us"]
    assert not [value for value in samples if str(value) in pages["simulated"]]
    assert 'data-value="9' not in pages["simulated"]


def test_markup_escapes_what_is_not_markup() -> None:
    made = tag("p", "<b>&\"'", tag("i", 1.5), None, class_='"x', data_value=0, hidden=False)
    assert made == '<p class="&quot;x" data-value="0">&lt;b&gt;&amp;&quot;&#x27;<i>1.5</i></p>'
    assert joined("\x00\x1b\u202e", "a\n") == "\ufffd\ufffd\ufffda\n"
    assert tag("input", hidden=True) == "<input hidden>"


def test_data_cannot_end_its_script_and_reads_back() -> None:
    value = {"</script><!--": ["&", "\u2028", 1.5]}
    text = data(value)
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == value


# Contrast: WCAG 2.2, relative luminance; 4.5 for text, 3 for what is drawn.


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_contrast_enough_in_both_themes(theme: int) -> None:
    assert _contrast("#000000", "#ffffff") == pytest.approx(21)
    style = (Path(marks.__file__).parents[1] / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[theme]))
    for text in ("text", "muted", "link"):
        for back in ("page", "card", "soft", "warn-back"):
            if (text, back) in (("muted", "warn-back"),):
                continue  # never together
            assert _contrast(colors[text], colors[back]) >= 4.5, (text, back)
    for kind in ("good", "bad", "warn", "stop"):
        assert _contrast(colors[kind], colors[f"{kind}-back"]) >= 4.5, kind
    for i in range(marks.COLORS):
        for back in ("card", "band", "beyond"):
            assert _contrast(colors[f"c{i}"], colors[back]) >= 3, (i, back)
    assert _contrast(colors["strong"], colors["card"]) >= 3


def test_marks_of_many_implementations_never_repeat_colour_and_shape() -> None:
    drawn_marks = {re.sub(r'transform="[^"]*"', "", marks.mark(i, 0, 0)) for i in range(64)}
    assert len(drawn_marks) == 64


# Plots.


def test_a_logarithmic_axis_places_equal_ratios_at_equal_distances() -> None:
    axis = Log(1, 100, 0, 200)
    assert [axis(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert (axis(0.1), axis(1e6)) == (0, 200)
    upward = Log(1, 100, 200, 0)
    assert upward(10) == pytest.approx(100)
    single = spanning([5.0], 0, 100)
    assert single(5.0) == pytest.approx(50)


@pytest.mark.parametrize(
    ("low", "high"), [(0.97, 1.04), (0.2, 3), (1, 5), (2e3, 2e8), (1e-3, 1e9), (0.999, 1.0005)]
)
def test_ticks_are_inside_in_order_and_neither_many_nor_one(low: float, high: float) -> None:
    found = ticks(low, high, 7)
    assert 2 <= len(found) <= 7
    assert found == sorted(set(found))
    assert low <= found[0]
    assert found[-1] <= high


def test_ticks_carry_their_unit() -> None:
    assert [microseconds(v) for v in (0.05, 1.0, 250.0, 1e3, 2.5e6)] == [
        *("50 ns", "1 µs", "250 µs", "1 ms", "2.5 s"),
    ]
    assert [bytes_(v) for v in (500, 2e3, 5e7, 1e10)] == ["500 B", "2 kB", "50 MB", "10 GB"]


def test_a_sweep_draws_every_result_once_and_the_ceiling_below_them() -> None:
    found = lines(documents.peers())
    panels = sweeps.panels(found)
    assert [panel.name for panel in panels] == [
        *("hot, bfloat16, 1 thread", "hot, bfloat16, 2 threads"),
        *("hot, float32, 1 thread", "hot, float32, 2 threads"),
    ]
    styles = marks.styles(documents.PEERS)
    drawn_plot = sweeps.sweep(panels[0], panels, styles)
    assert drawn_plot.count('class="mark') == 8 * 12
    assert drawn_plot.count('class="curve') == 8
    assert drawn_plot.count('class="ceiling"') == 1
    (ceiling,) = re.findall(r'd="(M[^"]*)" class="ceiling">', drawn_plot.replace("<title>", "\n"))
    places = [tuple(map(float, point.split())) for point in ceiling[1:].split("L")]
    assert places == sorted(places)
    heights = [y for _, y in places]
    assert len(heights) == 12
    spots = re.findall(r'translate\(([\d.]+) ([\d.]+)\)" class="mark c0"', drawn_plot)
    # Downward in SVG: the quickest implementation lies above what the machine allows.
    assert all(float(y) < h for (_, y), h in zip(spots, heights, strict=True))


def test_impossible_and_simulated_figures_are_not_drawn() -> None:
    for name in ("troubled", "simulated"):
        found = lines(documents.ALL[name]())
        assert sweeps.panels(found) == []
        assert intervals.panels(found) == []
        assert drawn(found) == {}


def test_intervals_lie_about_their_middles_and_unstable_ones_are_hollow() -> None:
    found = lines(documents.pair())
    (panel,) = intervals.panels(found)
    drawn_plot = intervals.intervals(panel, [panel], marks.styles(documents.PEERS))
    spots = [float(x) for x in re.findall(r'translate\(([\d.]+) [\d.]+\)" class="mark', drawn_plot)]
    ends = re.findall(r'd="M([\d.]+) [\d.]+H([\d.]+)[^"]*" class="whisker', drawn_plot)
    assert len(spots) == len(ends) == 5
    assert all(float(low) <= x <= float(high) for x, (low, high) in zip(spots, ends, strict=True))
    assert drawn_plot.count("hollow") == 1
    assert drawn_plot.count('class="band"') == 5
    (one,) = re.findall(r'd="M([\d.]+) [^"]*" class="one"', drawn_plot)
    faster, slower, same, *_ = spots
    assert faster < float(one) < slower
    assert same == pytest.approx(float(one), abs=8)


def test_an_interval_without_an_end_is_drawn_to_the_edge_without_a_cap() -> None:
    document = documents.pair()
    said = document["rows"][0]["timings"]["regimes"]["hot"]["against"]
    said["ratio"] = {"middle": 0.5, "low": 0, "high": "inf"}
    (panel,) = intervals.panels(lines(document))
    drawn_plot = intervals.intervals(panel, [panel], marks.styles(documents.PEERS))
    whisker = re.findall(r'd="([^"]*)" class="whisker', drawn_plot)[0]
    assert whisker.startswith("M10 ")
    assert whisker.endswith("H370")


# Samples.


def test_an_envelope_keeps_extremes_and_rounds() -> None:
    values = [float(i % 10) for i in range(1000)]
    values[123], values[777] = 99.0, -5.0
    found = envelope(range(5, 1005), values, 7)
    assert len(found) == 7
    assert (found[0][0], found[-1][1]) == (5, 1004)
    assert (min(e[2] for e in found), max(e[4] for e in found)) == (-5.0, 99.0)
    assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(found))
    assert envelope([0, 1, 2, 4, 5], [3.0, 1.0, 2.0, 9.0, 7.0], 2) == [
        *((0, 2, 1.0, 2.0, 3.0), (4, 5, 7.0, 8.0, 9.0)),
    ]


def test_samples_of_many_rows_stay_within_the_page() -> None:
    figures = documents.figures(documents.samples(1, 10.0, 2000))
    rows = [documents.row(shape=(i, 512), regimes={"hot": figures}) for i in range(1, 301)]
    document = documents.document(rows)
    kept = drawn(lines(document))
    assert len(kept) == 300
    assert all(each["taken"] == 2000 and "stretches" in each for each in kept.values())
    assert len(page(document).encode()) < LARGEST


def test_rows_beyond_a_page_are_counted_there() -> None:
    rows = [documents.row(shape=(i, 8), status="not_run") for i in range(1, 3101)]
    text = page(documents.document(rows, status="not_run", exit_code=None))
    assert "100 more rows are in the JSON alone." in text
    assert text.count("<tr id=") == 3000


# Files.


def test_files_lie_beside_each_other_and_leave_no_litter(tmp_path: Path) -> None:
    document: dict[str, Any] = documents.pair()
    path = tmp_path / "new" / "report.json"
    for _ in range(2):
        write_all(document, path)
    assert sorted(each.name for each in path.parent.iterdir()) == [
        *("report.html", "report.json", "report.md"),
    ]
    assert json.loads(path.read_text(encoding="utf-8")) == document
    assert path.with_suffix(".md").read_text(encoding="utf-8") == markdown(document)
    assert path.with_suffix(".html").read_text(encoding="utf-8") == page(document)


def test_a_finished_file_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_all(documents.peers(), path)
    again = tmp_path / "again.json"
    write_all(json.loads(path.read_text(encoding="utf-8")), again)
    for ending in (".json", ".md", ".html"):
        assert again.with_suffix(ending).read_bytes() == path.with_suffix(ending).read_bytes()


def test_a_number_that_json_has_none_for_is_refused_before_any_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_all(documents.single() | {"duration_s": float("nan")}, tmp_path / "report.json")
    assert list(tmp_path.iterdir()) == []
