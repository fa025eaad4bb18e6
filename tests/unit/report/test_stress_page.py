"""The report of a stress run: the verdict first, every quantity, plots that tell what is there."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import golden
import pytest
import stress_factory as factory
from hypothesis import given
from hypothesis import strategies as st

from collector.report.layout import MOST
from collector.report.setup_commands import setup_of_stress
from collector.report.stress_page import html_page, text
from collector.report.time_plot import Series, thinned, time_plot
from collector.run.by_hand import write
from collector.stress.log import Timeline
from collector.stress.plan import StressPlan
from collector.stress.verdict import StressVerdict, judge

POINTS = st.lists(st.tuples(st.floats(0, 1000), st.floats(1e-3, 1e6)), min_size=1, max_size=60).map(
    sorted
)


def failing(sample, minute):
    if sample["host"] == "client" and minute == 7:
        sample["chunks"][0].update(rc=1, stdout="", stderr="recv <response> failed\n")
    if sample["host"] == "server" and minute >= 9:
        sample["xfrm"]["XfrmInStateSeqError"] = minute


def case(change=None, **changes) -> tuple[StressPlan, Timeline, StressVerdict]:
    plan = factory.plan(**changes)
    found = factory.timeline(factory.lines(change=change, ipsec=plan.keying != "none"))
    return plan, found, judge(plan, found, final=True)


@pytest.mark.parametrize(
    ("name", "change", "changes"),
    [
        ("stress_completed.txt", None, {"keying": "ike"}),
        ("stress_failed.txt", failing, {}),
    ],
)
def test_the_text_says_the_verdict_first(name, change, changes) -> None:
    found = text(*case(change, **changes))
    assert max(map(len, found.splitlines())) <= MOST
    golden.check(name, found)


def test_the_page_stands_alone_and_says_the_verdict_first() -> None:
    page = html_page(*case(failing))
    assert page.index('class="verdict">failed: x of small failed in minute 8') < page.index("<main")
    assert "recv &lt;response&gt; failed" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=.http", page)
    assert page.count("<figure>") == 7
    assert page.count('<line class="event"') > 0
    assert html_page(*case()).count('<line class="event"') == 0


def test_the_page_has_the_commands_that_build_the_configuration_by_hand(tmp_path) -> None:
    assert setup_of_stress(tmp_path, "small") == ()
    write(tmp_path / "evidence" / "setup.json", {"client": ["ip a <b"], "server": ["ip a <b"]})
    page = html_page(*case(), setup_of_stress(tmp_path, "small"))
    assert "<h3>small, built by hand on the client and the server</h3>" in page
    assert ">ip a &lt;b</pre>" in page
    assert "built by hand" not in html_page(*case())


def test_without_any_line_there_is_a_report_still() -> None:
    plan = factory.plan()
    empty = factory.timeline([])
    verdict = judge(plan, empty, final=True)
    assert "no sample came home" in text(plan, empty, verdict)
    assert html_page(plan, empty, verdict).count("Nothing was recorded.") == 7


def plot(*series: Series, end_s: float = 1000.0, marks=()) -> ElementTree.Element:
    svg, _ = time_plot(identity="p", title="t", unit="u", series=series, end_s=end_s, marks=marks)
    return ElementTree.fromstring(svg)


@given(POINTS)
def test_every_point_lies_within_the_picture(points) -> None:
    line = plot(Series(label="a", points=tuple(points))).find("svg/polyline")
    assert line is not None
    numbers = [float(n) for pair in line.attrib["points"].split() for n in pair.split(",")]
    assert len(numbers) == 2 * len(points)
    assert all(-0.1 <= n <= 1000.1 for n in numbers)


def test_marks_outside_of_the_run_are_left_out_and_the_text_names_the_series() -> None:
    line = Series(label="<a>", points=((0.0, 1.0), (500.0, 3.0)))
    found = plot(line, marks=[500.0, 5000.0])
    assert len(found.findall("svg/line[@class='event']")) == 1
    assert "<a> from 1 to 3, lowest 1, highest 3" in str(found.findtext("desc"))
    assert time_plot(identity="p", title="t", unit="u", series=[], end_s=1.0) == (
        "",
        "Nothing was recorded.",
    )


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=500), st.integers(10, 100))
def test_thinning_keeps_order_and_extremes(values, most) -> None:
    points = [(float(i), value) for i, value in enumerate(values)]
    kept = thinned(points, most)
    assert kept == sorted(kept)
    assert set(kept) <= set(points)
    assert len(kept) <= most + 2
    heights = [value for _, value in kept]
    assert (min(heights), max(heights)) == (min(values), max(values))
