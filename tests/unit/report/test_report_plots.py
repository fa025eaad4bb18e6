"""Strip plots: every sample is there, where it belongs, and the axis says where it starts."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.report.plots import Axis, Strip, axis_for, number, strip_plot

POSITIVE = st.floats(min_value=1e-3, max_value=1e12)


def plot(*strips: Strip) -> tuple[ElementTree.Element, str]:
    svg, sentence = strip_plot(
        identity="p", title="t", unit="rate / sec", strips=strips, resamples=200, seed=1
    )
    return ElementTree.fromstring(svg), sentence


@given(st.lists(POSITIVE, min_size=1, max_size=30))
def test_an_axis_covers_all_values_and_its_own_ticks(values: list[float]) -> None:
    axis = axis_for(values)
    assert all(-1e-6 <= axis.position(value) <= 100 + 1e-6 for value in values)
    assert all(-1e-6 <= axis.position(tick) <= 100 + 1e-6 for tick in axis.ticks)
    assert len(axis.ticks) >= 2
    assert len(axis.ticks) <= 8


@given(st.lists(POSITIVE, min_size=1, max_size=30))
def test_an_axis_that_does_not_start_at_zero_says_so(values: list[float]) -> None:
    axis = axis_for(values)
    assert axis.sentence.endswith("not at zero.") == (axis.start != 0)
    if min(values) <= 0.5 * max(values):
        assert axis.start == 0


def test_axes_of_no_values_and_of_zeros() -> None:
    with pytest.raises(ValueError, match="found no values; wanted at least one"):
        axis_for([])
    assert axis_for([0.0, 0.0]) == Axis(start=0.0, end=1.0, ticks=(0.0, 1.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (2000, "2\u202f000"), (2.5, "2.5"), (1500000, "1\u202f500\u202f000")],
)
def test_tick_texts(value: float, text: str) -> None:
    assert number(value) == text


@given(st.lists(st.one_of(st.none(), POSITIVE), min_size=1, max_size=20))
def test_every_sample_is_a_dot_and_a_gap_is_none(values: list[float | None]) -> None:
    known = [value for value in values if value is not None]
    if not known:
        return
    svg, _ = plot(Strip(label="a", values=tuple(values), result="r"))
    assert len(svg.findall("circle")) == len(known)
    assert len(svg.findall("line[@class='median']")) == 1
    assert len(svg.findall("rect[@class='band']")) == (1 if len(known) >= 2 else 0)


def test_a_configuration_without_samples_keeps_its_row() -> None:
    svg, _ = plot(
        Strip(label="a", values=(1.0, 2.0), result="1.50", baseline=True),
        Strip(label="b", values=(None, None), result="invalid"),
    )
    assert [t.text for t in svg.findall("text[@class='label']")] == ["b"]
    assert [t.text for t in svg.findall("text[@class='result']")] == ["1.50", "invalid"]
    assert len(svg.findall("circle")) == 2


def test_a_plot_without_any_sample_is_a_sentence() -> None:
    assert strip_plot(
        identity="p",
        title="t",
        unit="u",
        strips=[Strip(label="a", values=(None,), result="invalid")],
        resamples=10,
        seed=1,
    ) == ("", "No configuration has a valid sample.")


def test_the_picture_has_a_text_in_its_place_and_escapes_names() -> None:
    svg, sentence = plot(Strip(label="<a&b>", values=(5.0, 6.0), result='"5.50"'))
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-labelledby"] == "p-t p-d"
    description = svg.findtext("desc[@id='p-d']")
    assert description is not None
    assert '<a&b> "5.50"' in description
    assert sentence in description
