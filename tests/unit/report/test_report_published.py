"""A run beside a published experiment: ratios, order, and what it refuses to conclude."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import build_run
import pytest

from collector import published
from collector.report.against_published import (
    PublishedComparison,
    compare_published,
    comparison_sentences,
    comparison_text,
    order_sentences,
)
from collector.report.layout import MOST


def compared(folder: Path, made: build_run.Made) -> PublishedComparison:
    report = build_run.report_of(folder, made)
    assert report.published is not None
    return compare_published(report.summary, report.published)


def test_ratios_are_to_the_baseline_and_cell_by_cell(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.netlabel())
    cells = {(cell.configuration, cell.test): cell for cell in found.cells}
    assert len(cells) == 24  # six configurations beside the baseline, four tests
    flcat = cells["C_FlCat", "tcp_rr"]
    assert flcat.published_ratio == pytest.approx(9110.29 / 10769.00)
    assert flcat.ours is not None
    assert flcat.ours.value == pytest.approx(0.78, abs=0.02)
    assert flcat.ours.blocks == 10
    assert flcat.ours.low is not None
    assert flcat.ours.high is not None
    assert flcat.ours.low < flcat.ours.value < flcat.ours.high


def test_cells_without_a_number_say_why(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.netlabel())
    cells = {(cell.configuration, cell.test): cell for cell in found.cells}
    assert cells["C_F_NoC", "udp_stream"].ours is None
    assert "no option 134" in (cells["C_F_NoC", "udp_stream"].remark or "")
    assert found.skipped == {
        "NoPatch": "needs a kernel of its own, and none is given",
        "Disable": "needs a kernel of its own, and none is given",
    }
    assert found.missing == ()


def test_an_order_that_differs_beyond_noise_is_told_for_its_test(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.netlabel())
    orders = {finding.test: finding for finding in found.orders}
    reversed_pairs = [(r.first, r.second) for r in orders["tcp_stream"].reversals]
    assert reversed_pairs == [("C_F_LxV", "C_FlCat")]
    assert (
        "order DIFFERS: C_F_LxV was published above C_FlCat"
        in order_sentences(orders["tcp_stream"], found)[0]
    )
    assert orders["tcp_rr"].reversals == ()
    assert orders["tcp_rr"].same == orders["tcp_rr"].pairs == 10
    assert order_sentences(orders["tcp_rr"], found) == (
        "tcp_rr: order as published, Unlabel > C_NoCat > C_F_LxV > C_FlCat > C_F_NoC.",
    )


def test_what_was_published_as_equal_has_no_order(tmp_path: Path) -> None:
    # udp_stream: the three full labels were published within 0.01 of each other
    found = compared(tmp_path / "run", build_run.netlabel())
    udp = next(finding for finding in found.orders if finding.test == "udp_stream")
    assert udp.pairs == 2  # Unlabel above either of the two that have a number


def test_few_blocks_give_no_order_beyond_noise(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.netlabel(blocks=3))
    assert not found.enough_blocks
    assert all(finding.same == 0 and not finding.reversals for finding in found.orders)
    texts = comparison_sentences(found)
    assert any(
        text.startswith("tcp_stream: by medians Unlabel > C_NoCat > C_FlCat") for text in texts
    )
    assert any(text.startswith("tcp_rr: by medians as published") for text in texts)
    assert any(text.startswith("Fewer than 6 blocks") for text in texts)


def test_a_reversal_within_the_noise_floor_is_not_one(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.netlabel())
    assert report.published is not None
    noise = {test: replace(floor, floor=0.5) for test, floor in report.summary.noise.items()}
    found = compare_published(replace(report.summary, noise=noise), report.published)
    assert all(not finding.reversals for finding in found.orders)
    stream = next(finding for finding in found.orders if finding.test == "tcp_stream")
    assert ("C_F_LxV", "C_FlCat") in stream.leaning


def test_pairs_are_matched_by_factors_with_the_nearest_baseline(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.labelled_ipsec())
    pairs = {(cell.configuration, cell.baseline) for cell in found.cells}
    assert pairs == {
        ("labelled_ipv4", "unlabelled_ipv4"),
        ("labelled_ipv6", "unlabelled_ipv6"),
    }


def test_a_published_figure_that_missed_its_confidence_proves_no_order(tmp_path: Path) -> None:
    # published 756.26 against 689.66, the latter with a width of 57 %
    found = compared(tmp_path / "run", build_run.labelled_ipsec())
    orders = [finding for finding in found.orders if finding.test == "udp_rr_516_4"]
    assert len(orders) == 2
    assert all(finding.pairs == 0 for finding in orders)
    assert "published without its confidence: unlabelled, width 57 %" in " ".join(
        comparison_sentences(found)
    )


def test_tests_are_matched_by_sessions(tmp_path: Path) -> None:
    found = compared(tmp_path / "run", build_run.tunnels())
    assert {(cell.configuration, cell.test) for cell in found.cells} == {
        ("stt", "tcp_stream_1"),
        ("stt", "tcp_stream_5"),
    }


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    report = build_run.report_of(tmp_path / "run", build_run.tiny())
    found = compare_published(report.summary, published.load("forwarding"))
    assert found.cells == ()
    assert comparison_text(found, "x").startswith(
        "The run has no cell in common with the published experiment forwarding."
    )


def test_the_text_fits_a_mail_and_shows_no_absolute_number(tmp_path: Path) -> None:
    text = comparison_text(compared(tmp_path / "run", build_run.netlabel()), "somebody, a list")
    assert max(map(len, text.splitlines())) <= MOST
    for absolute in ("941.5", "10769", "9110"):
        assert absolute not in text
