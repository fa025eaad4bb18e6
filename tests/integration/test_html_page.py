"""The report page in a real browser: desk and telephone, light and dark, by eye of a program.

Needs Chromium (Debian's package ``chromium``); the set-up of the test suite installs it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "report"))

import build_run
import chromium

from collector.report.html import html_page

WIDTHS = (1200, 360)
SCHEMES = ("light", "dark")
RUNS = {
    "netlabel_cipso": build_run.netlabel,
    "labelled_ipsec": build_run.labelled_ipsec,
    "forwarding": build_run.forwarding,
    "tunnels": build_run.tunnels,
    "too_few_blocks": lambda: build_run.netlabel(blocks=3),
}

# The contrast of every visible text with what lies behind it, by the formula of WCAG 2.2
# (relative luminance, contrast ratio). Returns the texts below 4.5.
CONTRAST = """
(() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const lum = c => {
    const [r, g, b] = c.map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || ['TITLE', 'DESC', 'title', 'desc'].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const ink = parse(e.namespaceURI.endsWith('svg') ? style.fill : style.color).slice(0, 3);
    const [a, b] = [lum(ink), lum(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (ratio < 4.5) poor.push([n.data.trim().slice(0, 40), ratio.toFixed(2)]);
  }
  return [seen, poor];
})()
"""
# Elements that stick out of the page although no box of their own scrolls them.
STICKING_OUT = """
[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && box.right > document.documentElement.clientWidth + 1
    && !e.closest('.scroll, pre');
}).map(e => e.tagName + ' ' + (e.className.baseVal ?? e.className))
"""
OPEN_DETAILS = "document.querySelectorAll('details').forEach(d => { d.open = true; })"


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Chromium]:
    binary = chromium.find()
    assert binary is not None, "no Chromium found; wanted the package chromium installed"
    with chromium.Chromium(binary) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, make in RUNS.items():
        folder = tmp_path_factory.mktemp("runs") / name
        report = build_run.report_of(folder, make())
        made[name] = folder / "report.html"
        made[name].write_text(html_page(report), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_opens_quietly_and_fits(
    browser: chromium.Chromium, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    browser.open(pages[name], width=width, height=900, scheme=scheme)
    requested = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert requested == [pages[name].resolve().as_uri()]
    assert not [event for event in browser.events if event["method"] == "Log.entryAdded"]
    for _ in ("closed", "opened"):
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.evaluate(STICKING_OUT) == []
        browser.evaluate(OPEN_DETAILS)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_has_enough_contrast(
    browser: chromium.Chromium, pages: dict[str, Path], scheme: str
) -> None:
    browser.open(pages["netlabel_cipso"], width=1200, height=900, scheme=scheme)
    browser.evaluate(OPEN_DETAILS)
    seen, poor = browser.evaluate(CONTRAST)
    assert seen > 300
    assert poor == []


def test_light_and_dark_differ(browser: chromium.Chromium, pages: dict[str, Path]) -> None:
    colours = []
    for scheme in SCHEMES:
        browser.open(pages["tunnels"], width=1200, height=900, scheme=scheme)
        colours.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(252, 252, 250)", "rgb(20, 23, 26)"]


@pytest.mark.parametrize("name", RUNS)
def test_what_a_screen_reader_finds(
    browser: chromium.Chromium, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], width=1200, height=900, scheme="light")
    browser.evaluate(OPEN_DETAILS)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            role = node.get("role", {}).get("value", "")
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    tables = browser.evaluate("document.querySelectorAll('table').length")
    assert len(named["table"]) == tables
    assert {"banner", "main", "contentinfo", "navigation"} <= set(named)
    plots = browser.evaluate("document.querySelectorAll('svg.plot').length")
    pictures = named.get("image", []) + named.get("img", [])
    assert len(pictures) == plots > 0
    for role in ("table", "region", "link", "heading", "columnheader", "rowheader"):
        assert all(text.strip() for text in named[role]), role
    assert all("every sample by configuration" in text for text in pictures)
    assert named["heading"][0].startswith(browser.evaluate("document.title").split(",")[0])


def test_wide_boxes_can_be_scrolled_by_keyboard(
    browser: chromium.Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages["netlabel_cipso"], width=360, height=900, scheme="light")
    unreachable = browser.evaluate(
        "[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1"
        " && getComputedStyle(e).overflowX === 'auto' && e.tabIndex !== 0).length"
    )
    assert unreachable == 0


def test_every_sample_is_drawn_inside_its_plot(
    browser: chromium.Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages["forwarding"], width=360, height=900, scheme="light")
    outside = browser.evaluate(
        "[...document.querySelectorAll('circle.dot')].filter(c => {"
        " const dot = c.getBoundingClientRect(), box = c.closest('svg').getBoundingClientRect();"
        " return dot.left < box.left - 4 || dot.right > box.right + 4"
        " || dot.top < box.top || dot.bottom > box.bottom; }).length"
    )
    assert outside == 0
    # four configurations, three sizes, six blocks
    assert browser.evaluate("document.querySelectorAll('circle.dot').length") == 72


def test_links_lead_to_files_that_exist(browser: chromium.Chromium, pages: dict[str, Path]) -> None:
    page = pages["netlabel_cipso"]
    browser.open(page, width=1200, height=900, scheme="light")
    links = browser.evaluate("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    files = [link for link in links if not link.startswith("#")]
    assert len(files) > 50
    for link in files:
        assert (page.parent / link).is_file(), link
    for link in set(links) - set(files):
        assert browser.evaluate(f"document.querySelector('{link}') !== null"), link
