"""Published figures from kernel to kernel: single values, judged by size alone."""

from dataclasses import replace

import pytest

from collector import published
from collector.compare.model import PRINTED
from collector.compare.printed import compare_printed
from collector.compare.views import render
from collector.errors import UsageError
from collector.verdict import Outcome

FORWARDING = published.load("forwarding")


def outcomes(base, new, **options):
    comparison = compare_printed(FORWARDING, base, new, **options)
    return comparison.outcome, {cell.test: cell.outcome for cell in comparison.cells}


def test_the_published_dip_of_2_6_29_is_found():
    overall, cells = outcomes("2.6.26", "2.6.29")
    assert overall is Outcome.REGRESSION
    small = ("size_64", "size_128", "size_256")
    assert {name for name, found in cells.items() if found is Outcome.REGRESSION} == set(small)
    assert cells["size_512"] is Outcome.OK  # 83 to 85: within the margin
    assert cells["size_1518"] is Outcome.OK


def test_and_2_6_30_wins_most_of_it_back():
    overall, cells = outcomes("2.6.29", "2.6.30")
    assert overall is Outcome.IMPROVEMENT
    assert cells["size_64"] is cells["size_128"] is cells["size_256"] is Outcome.IMPROVEMENT
    # Not quite all: two sizes are still slower than in 2.6.26 by more than margin and rounding.
    _, cells = outcomes("2.6.26", "2.6.30")
    assert {name for name, found in cells.items() if found is not Outcome.OK} == {
        "size_64",
        "size_256",
    }
    assert cells["size_256"] is Outcome.REGRESSION


def test_kernels_on_different_machines_are_not_compared():
    comparison = compare_printed(FORWARDING, "2.6.24", "2.6.26")
    assert comparison.outcome is Outcome.INVALID
    assert {cell.reason for cell in comparison.cells} == {
        "not the same machine: cpu_ghz 2.2 against 2.4"
    }


def test_what_two_values_can_say_is_said():
    comparison = compare_printed(FORWARDING, "2.6.26", "2.6.29")
    assert (comparison.method, comparison.level) == (PRINTED, None)
    assert {cell.p for cell in comparison.cells} == {None}
    assert {(cell.n_base, cell.n_new) for cell in comparison.cells} == {(1, 1)}
    text = render(comparison, "text")
    assert "7 cells by a margin beyond the rounding of the print, minimum effect 5 %" in text
    assert "single values without repeats" in text


def test_rounding_can_hide_a_difference():
    # 21 and 20 may have been 20.5 and 20.5.
    figures = tuple(
        replace(f, printed="20", value=20.0)
        if (f.configuration, f.test) == ("2.6.29", "size_64")
        else f
        for f in FORWARDING.figures
    )
    comparison = compare_printed(replace(FORWARDING, figures=figures), "2.6.26", "2.6.29")
    cell = comparison.cells[0]
    assert cell.outcome is Outcome.OK
    assert cell.ratio_low < 0.93
    assert cell.ratio_high == 1.0
    assert cell.reason == "within 5 %, or what the rounding of the print hides"


def test_a_wider_margin_finds_less():
    overall, _ = outcomes("2.6.26", "2.6.29", margin_pct=25)
    assert overall is Outcome.OK


@pytest.mark.parametrize("pair", [("2.6.26", "2.6.31"), ("2.6.31", "2.6.26")])
def test_an_unknown_kernel_is_told(pair):
    with pytest.raises(UsageError, match=r"^forwarding: found no '2\.6\.31'; wanted one of 2\.6"):
        compare_printed(FORWARDING, *pair)


def test_kernels_without_a_common_test_are_told():
    figures = tuple(f for f in FORWARDING.figures if f.configuration != "2.6.30")
    with pytest.raises(UsageError, match=r"2\.6\.29 and 2\.6\.30: found no test that both have"):
        compare_printed(replace(FORWARDING, figures=figures), "2.6.29", "2.6.30")
