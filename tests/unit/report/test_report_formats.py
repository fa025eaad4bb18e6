"""HTML, Markdown, CSV and JSON: complete, escaped, self-contained."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import build_run
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector import published
from collector.report.csv_json import published_csv, published_json, run_csv, run_json
from collector.report.html import MOST_LINKS, html_page, listed, moment
from collector.report.layout import Table
from collector.report.markdown import escape, fence, run_markdown, table
from collector.report.model import Report

HOSTILE = '<script>alert("x")</script>'
EMPTY_TAGS = {"meta", "link", "br", "line", "rect", "circle"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return build_run.report_of(tmp_path_factory.mktemp("runs") / "run", build_run.netlabel())


class Page(HTMLParser):
    """Collects elements and checks that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY_TAGS:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_the_page_is_self_contained_and_needs_no_script(report: Report) -> None:
    text = html_page(report)
    page = Page(text)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed"}
    assert not re.search(r"https?:|url\(|@import|src=", text)
    assert not any(name.startswith("on") for _, a in page.elements for name in a)


def test_the_page_is_built_for_readers_of_every_kind(report: Report) -> None:
    page = Page(html_page(report))
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("h1")) == 1
    assert len(page.named("caption")) == len(page.named("table"))
    assert all(a.get("scope") for a in page.named("th"))
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_verdict_comes_first_and_the_lab_is_named(report: Report) -> None:
    text = html_page(report)
    verdict = text.index('<p class="verdict">Against Unlabel, of 15 valid cells: 14 slower')
    assert verdict < text.index("The lab is emulated") < text.index("<table>")


def test_an_invalid_cell_has_no_number(report: Report) -> None:
    text = html_page(report)
    row = text[text.index('<tr><th scope="row">C_F_NoC') :].split("</tr>")[0]
    assert '<span class="invalid">invalid</span>' in row


def test_raw_files_are_linked_relatively(report: Report) -> None:
    links = [a["href"] or "" for a in Page(html_page(report)).named("a")]
    files = [href for href in links if not href.startswith("#")]
    assert set(report.raw_files) <= set(files)
    away = [a["href"] or "" for a in Page(html_page(report, base="../runs/a b")).named("a")]
    assert "../runs/a%20b/raw/c20/0/netperf.out" in away


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    made = build_run.tiny()
    made.configurations = {"plain": {}, HOSTILE: {"label": HOSTILE}}
    made.rates = {("plain", "tcp_rr"): 1.0, (HOSTILE, "tcp_rr"): 2.0}
    found = build_run.report_of(tmp_path / "run", made)
    page = html_page(found)
    assert "<script" not in page
    Page(page)
    prose = re.sub(r"```.*?```", "", run_markdown(found), flags=re.DOTALL)
    assert "\\<script" in prose
    assert "<script" not in prose.replace("\\<", "")


def test_times_are_readable() -> None:
    assert moment("2026-01-01T10:00:00Z") == "2026-01-01 10:00 UTC"
    assert moment("yesterday") == "yesterday"
    assert moment(None) is None


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=30))
def test_markdown_escapes_what_would_be_markup(text: str) -> None:
    escaped = escape(text)
    assert re.sub(r"\\([\\`*_\[\]<>|#])", r"\1", escaped) == text
    assert "|" not in re.sub(r"\\[\\|]", "", escaped)


@given(st.text(alphabet="`ab\n", max_size=20))
def test_a_fence_is_longer_than_what_it_encloses(content: str) -> None:
    mark = fence(content).split("\n")[0]
    assert set(mark) == {"`"}
    assert mark not in content


def test_a_markdown_table() -> None:
    content = Table(caption="c", head=("a", "b"), rows=(("x|y", "1"),), notes=("[1] n",))
    assert table(content) == "| a | b |\n| :-- | --: |\n| x\\|y | 1 |\n\n- \\[1\\] n"


def test_csv_has_a_line_a_cell_and_no_number_for_invalid_ones(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(run_csv(report))))
    assert len(rows) == len(report.summary.cells)
    invalid = next(r for r in rows if (r["configuration"], r["test"]) == ("C_F_NoC", "udp_stream"))
    assert (invalid["median"], invalid["ratio"], invalid["verdict"]) == ("", "", "invalid")
    slower = next(r for r in rows if (r["configuration"], r["test"]) == ("C_FlCat", "tcp_rr"))
    assert float(slower["published_ratio"]) == pytest.approx(9110.29 / 10769)
    assert slower["factors"] == "label=s0:c0.c239"
    assert slower["higher_is_better"] == "true"


def test_json_holds_everything_with_a_version(report: Report) -> None:
    document = json.loads(run_json(report))
    assert document["schema"] == 1
    assert document["lab_note"].startswith("The lab is emulated")
    assert len(document["summary"]["cells"]) == len(report.summary.cells)
    assert document["comparison"]["published"] == "netlabel_cipso"
    assert document["raw_files"] == list(report.raw_files)


@pytest.mark.parametrize("name", published.names())
def test_published_figures_for_programs(name: str) -> None:
    experiment = published.load(name)
    rows = list(csv.DictReader(io.StringIO(published_csv(experiment))))
    assert len(rows) == len(experiment.figures)
    assert [r["printed"] for r in rows] == [f.printed for f in experiment.figures]
    document = json.loads(published_json(experiment))
    assert len(document["figures"]) == len(experiment.figures)


def test_too_many_files_are_linked_by_folder() -> None:
    few = [f"raw/c/0/{i}" for i in range(MOST_LINKS)]
    assert listed(few) == tuple(few)
    assert listed([*few, "raw/c/1/x"]) == ("raw/c/0/", "raw/c/1/")
