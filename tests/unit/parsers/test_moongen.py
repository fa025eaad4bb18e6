"""MoonGen: interval lines, totals, and what the parentheses mean in each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import moongen
from collector.parsers.base import Status

NAMES = ("packets_per_second", "throughput_bps", "wire_bps", "packets", "bytes", "frame_bytes")


def test_total_and_interval_lines() -> None:
    (record,) = read(moongen, data("cases/33-a.txt")).records
    assert record.status is Status.OK, record.warnings
    assert (record.counter, record.direction) == ("Device: id=0", "tx")
    assert (record.packets_per_second, record.packets_per_second_sd) == (
        pytest.approx(34.71e6), pytest.approx(0.16e6),
    )  # fmt: skip
    assert (record.throughput_bps, record.throughput_sd_bps) == (18881e6, 87e6)
    assert record.wire_bps == 24434e6
    assert (record.packets, record.bytes) == (173727424, 11813464832)
    assert record.frame_bytes == 68.0
    assert record.frame_basis == "with FCS"
    assert [i.packets_per_second for i in record.intervals] == pytest.approx([34.79e6, 34.52e6])
    assert record.intervals[0].wire_bps == 24494e6


def test_without_a_total_there_is_no_result() -> None:
    text = "\n".join(data("cases/33-a.txt").splitlines()[:2])
    (record,) = read(moongen, text).records
    assert record.status is Status.INCOMPLETE
    assert record.packets_per_second is None
    assert len(record.intervals) == 2


def test_counters_and_directions_are_kept_apart() -> None:
    line = data("cases/33-a.txt").splitlines()[2]
    text = "\n".join([line, line.replace("TX", "RX"), line.replace("id=0", "id=1")])
    records = read(moongen, text).records
    assert [(r.counter, r.direction) for r in records] == [
        ("Device: id=0", "tx"), ("Device: id=0", "rx"), ("Device: id=1", "tx"),
    ]  # fmt: skip


def test_a_frame_size_of_another_basis_is_marked() -> None:
    text = data("cases/33-a.txt").replace("11813464832", "11118555136")  # 64 bytes a frame
    (record,) = read(moongen, text).records
    assert record.status is Status.SUSPECT
    assert "34.71 Mpps of 64.0 bytes are 17772 Mbit/s, printed is 18881" in record.warnings


def test_a_decimal_comma_is_a_problem() -> None:
    reading = read(moongen, data("cases/33-a.txt").replace("34.52", "34,52"))
    (problem,) = reading.problems
    assert problem.line == 2
    assert len(reading.records[0].intervals) == 1


def test_a_line_broken_by_a_mail_program() -> None:
    text = data("cases/33-a.txt").replace("framing), total", "framing),\ntotal")
    (record,) = read(moongen, text).records
    assert record.packets == 173727424


def test_right_or_flagged() -> None:
    assert_right_or_flagged(moongen, data("cases/33-a.txt"), NAMES)


@given(st.text("[Device: id=0] TRX:.0123456789Mpps,bit/s()StdDevtotal\n", max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    doc = document(text)
    moongen.recognise(doc)
    moongen.parse(doc)


class TestOldFormat:
    def test_a_total_of_two_lines(self) -> None:
        first, second = read(moongen, data("cases/moongen-old.txt")).records
        assert first.status is Status.OK, first.warnings
        assert (first.counter, first.direction) == ("Port 42", "tx")
        assert first.packets_per_second == pytest.approx(1.465371e6)
        assert first.throughput_bps == pytest.approx(1500.540084e6)
        assert first.wire_bps == pytest.approx(1734.999472e6)
        assert (first.packets, first.bytes, first.frame_bytes) == (15327522, 1961922816, 128)
        assert [one.packets for one in first.intervals] == [1460655, 2926035]
        assert (second.counter, second.packets) == ("Port 43", 1020600)

    def test_without_its_first_line_a_total_lacks_the_packets(self) -> None:
        lines = data("cases/moongen-old.txt").splitlines()
        first, _ = read(moongen, "\n".join([*lines[:4], *lines[5:]])).records
        assert first.status is Status.SUSPECT
        assert (first.packets, first.frame_bytes) == (None, None)
        assert "the line with packets and bytes is missing" in first.warnings

    def test_packets_so_far_without_a_total(self) -> None:
        lines = data("cases/moongen-old.txt").splitlines()
        first, second = read(moongen, "\n".join(lines[:4])).records
        assert {first.status, second.status} == {Status.INCOMPLETE}
        assert (first.packets, second.packets) == (2926035, 195552)


def test_a_negative_rate_is_no_measurement() -> None:
    reading = read(moongen, data("cases/moongen-negative.txt"))
    assert reading.problems == []
    sent, received = reading.records
    assert sent.status is Status.SUSPECT
    assert sent.warnings == ("line 2: a negative rate: the counter went backwards",)
    assert sent.intervals[1].packets_per_second is None
    assert sent.packets == 4222134
    assert received.status is Status.FAILED


def test_the_line_behind_an_interrupt_is_read() -> None:
    sent, _ = read(moongen, data("cases/moongen-negative.txt")).records
    assert sent.intervals[2].packets_per_second == pytest.approx(0.44e6)


def test_more_received_than_sent_is_marked() -> None:
    total = data("cases/33-a.txt").splitlines()[2]
    less = total.replace("TX", "RX").replace("id=0", "id=1")
    more = less.replace("total 173727424", "total 183727424")
    assert [r.status for r in read(moongen, f"{total}\n{less}").records] == [Status.OK, Status.OK]
    sent, received = read(moongen, f"{total}\n{more}").records
    assert sent.status is Status.OK
    assert received.status is Status.SUSPECT
    assert (
        "183727424 packets received, but only 173727424 sent by Device: id=0" in received.warnings
    )
