"""The HTML page in a real browser: nothing goes wrong, and what can be used can be used by keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import benchmark_documents as documents
import pytest
from browser import Browser

from xllm_kernel.benchmark.report import page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    started = Browser()
    yield started
    started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {name: folder / f"{name}.html" for name in documents.ALL}
    for name, path in written.items():
        path.write_text(page(documents.ALL[name]()), encoding="utf-8")
    return written


@pytest.mark.parametrize("name", documents.ALL)
def test_page_of_any_report_loads_without_complaint_request_or_dead_link(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    assert browser.find("h1").text.startswith("Benchmark: ")
    links = browser.script(
        "return [...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))"
    )
    assert len(links) >= 12
    assert all(link.startswith("#") for link in links)
    dead = "return arguments[0].filter((to) => !document.getElementById(to.slice(1)))"
    assert browser.script(dead, links) == []
    assert browser.complaints() == []
    assert browser.requests() == []


def test_a_page_that_asks_for_something_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """Without this the test above could pass because the browser's logs are empty."""
    planted = tmp_path / "planted.html"
    planted.write_text("<img src='http://127.0.0.1:9/x.png'><script>oops()</script>")
    browser.open(planted)
    assert browser.requests() == ["http://127.0.0.1:9/x.png"]
    assert any("oops is not defined" in told for told in browser.complaints())


def test_policy_stops_a_script_that_somebody_added(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    text = pages["single"].read_text(encoding="utf-8")
    added = tmp_path / "added.html"
    added.write_text(text.replace("</main>", "<script>window.hurt = 1</script></main>"))
    browser.open(added)
    assert browser.script("return window.hurt === undefined")
    assert any("Content Security Policy" in told for told in browser.complaints())


@pytest.mark.parametrize(
    ("name", "theme"),
    [("peers", "light"), ("troubled", "dark"), ("many", "light"), ("hostile", "dark")],
)
def test_page_on_a_phone_never_scrolls_sideways(
    browser: Browser, pages: dict[str, Path], name: str, theme: str
) -> None:
    browser.open(pages[name], width=360, theme=theme)
    assert browser.script("return document.documentElement.scrollWidth") == 360
    assert browser.script("return document.querySelector('table').getBoundingClientRect().width")


def test_text_and_background_change_places_in_the_dark(
    browser: Browser, pages: dict[str, Path]
) -> None:
    seen = {}
    for theme in ("light", "dark"):
        browser.open(pages["single"], theme=theme)
        seen[theme] = browser.script(
            "const style = getComputedStyle(document.body);"
            "return [style.color, style.backgroundColor].map((c) => +c.match(/\\d+/)[0])"
        )
    assert seen["light"][0] < 64 < 192 < seen["light"][1]
    assert seen["dark"][1] < 64 < 192 < seen["dark"][0]


def test_filters_by_keyboard_leave_the_rows_that_match(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["peers"])
    assert len(browser.rows()) == 384
    browser.find("[name=dtype]").send_keys("float32")
    assert len(browser.rows()) == 192
    browser.find("[name=threads]").send_keys("2")
    browser.find("[name=verdict]").send_keys("SLOWER")
    assert browser.find("#shown").text == "24 of 384 rows"
    browser.find("[name=text]").send_keys("8X61")
    assert len(browser.rows()) == 2
    assert "dtype=float32" in browser.driver.current_url
    browser.find("form button").send_keys("\n")
    browser.script("return new Promise((done) => setTimeout(done))")
    assert len(browser.rows()) == 384


def test_sorting_by_keyboard_goes_both_ways_with_empty_cells_last(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["pair"])
    head = browser.find("[data-key=ratio]")
    button = head.find_element("css selector", "button")
    assert head.get_attribute("aria-sort") == "none"
    button.send_keys("\n")
    assert head.get_attribute("aria-sort") == "ascending"
    up = browser.rows()
    button.send_keys(" ")
    assert head.get_attribute("aria-sort") == "descending"
    down = browser.rows()
    # Candidates are the even rows; the baseline's have no ratio and keep their order at the end.
    assert up[:5] == down[:5][::-1]
    assert up[5:] == down[5:] == ["1", "3", "5", "7", "9"]
    middles = {
        str(i): row["timings"]["regimes"]["hot"]["against"]["ratio"]["middle"]
        for i, row in enumerate(documents.pair()["rows"])
        if i % 2 == 0
    }
    assert up[:5] == sorted(middles, key=lambda number: middles[number])


def test_address_restores_filters_order_and_row(browser: Browser, pages: dict[str, Path]) -> None:
    first = "#implementation=peer.vllm.affine&dtype=float32&sort=median+us&order=descending&row=76"
    browser.open(pages["peers"], first)
    shown = browser.rows()
    assert len(shown) == 24
    assert browser.find("[data-key='median us']").get_attribute("aria-sort") == "descending"
    assert browser.find("[name=implementation]").get_attribute("value") == "peer.vllm.affine"
    assert browser.find("#sample-row").get_attribute("value") == "76"
    assert browser.find("tr.chosen").get_attribute("id") == "row=76"
    browser.find("[name=threads]").send_keys("1")
    again = browser.driver.current_url.partition("#")[2]
    shown = browser.rows()
    browser.open(pages["peers"], f"#{again}")
    assert (browser.rows(), len(shown)) == (shown, 12)


def test_choosing_a_row_by_key_draws_its_samples(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["pair"])
    browser.find("[id='row=8'] a").send_keys("\n")
    assert browser.find("#sample-row").get_attribute("value") == "8"
    drawn = browser.find("#sample-plot .dots").get_attribute("d")
    assert drawn.count("M") == 25
    told = browser.find("#sample-facts").text
    assert "12 for 'other processes used a processor'" in told
    assert "Unstable: other processes used 0.9 of a processor" in told


def test_very_many_samples_are_drawn_as_an_envelope_that_holds_the_extremes(
    browser: Browser, pages: dict[str, Path]
) -> None:
    assert pages["many"].stat().st_size < 5e6
    browser.open(pages["many"])
    assert browser.find("#sample-plot .spread").get_attribute("d").count("L") == 2 * 400 - 1
    assert "The JSON has every sample" in browser.find("#samples .notice").text
    samples = documents.many()["rows"][0]["timings"]["regimes"]["hot"]["wall_us"]["samples"]
    ends = browser.script(
        "const s = JSON.parse(document.querySelector('#samples-data').textContent)[0].stretches;"
        "return [Math.min(...s.map((e) => e[2])), Math.max(...s.map((e) => e[4]))]"
    )
    assert ends == pytest.approx([min(samples), max(samples)], rel=1e-5)


def test_simulated_rows_have_no_figure_and_no_rank(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["simulated"])
    for _ in range(2):
        browser.find("[data-key='median us'] button").send_keys("\n")
        assert browser.rows() == ["0", "1", "2"]
    cells = browser.script(
        "return [...document.querySelectorAll('table.figures tbody tr')]"
        ".map((row) => row.lastElementChild.textContent)"
    )
    assert cells == ["simulated"] * 3
    text = browser.find("body").text
    assert "no evidence of accuracy or performance" in text
    assert not any(f"90{i}.5" in browser.driver.page_source for i in range(1, 6))


def test_hostile_text_stays_text(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"])
    for i in (0, 1):
        browser.find(f"[id='row={i}'] a").send_keys("\n")
    assert browser.script("return window.hurt === undefined && document.images.length === 0")
    assert documents.HOSTILE in browser.find("#missing").text
    assert browser.complaints() == []


def test_keys_reach_the_figures_first_and_focus_is_seen(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["single"])
    browser.find("body").send_keys("\t")
    focused = browser.script("return document.activeElement.className")
    assert focused == "skip"
    style = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.script(style) == "solid"
    # What scrolls by itself can be reached without a mouse.
    loose = (
        "return [...document.querySelectorAll('.scroll')].filter((s) => s.tabIndex !== 0).length"
    )
    assert browser.script(loose) == 0
