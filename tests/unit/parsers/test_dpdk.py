"""DPDK's testers: Pktgen-DPDK's main page and testpmd's statistics."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import dpdk
from collector.parsers.base import Status

NAMES = ("packets_per_second", "offered_packets_per_second", "packets_received", "packets_sent")


class TestPktgen:
    def test_a_page_of_two_ports_and_their_total(self) -> None:
        first, second, both = read(dpdk, data("cases/pktgen-dpdk.txt")).records
        assert [(r.kind, r.port) for r in (first, second, both)] == [
            ("port", 0), ("port", 1), ("ports", None),
        ]  # fmt: skip
        assert first.link_bps == 1e11
        assert (first.packets_per_second, first.offered_packets_per_second) == (7557906, 7263393)
        assert first.max_packets_per_second == 7675460
        assert both.packets_per_second == 14808921

    def test_a_bit_rate_that_no_packet_size_explains_is_not_believed(self) -> None:
        first = read(dpdk, data("cases/pktgen-dpdk.txt")).records[0]
        assert first.status is Status.SUSPECT
        assert first.throughput_bps == 48712e6
        assert first.offered_bps is None
        assert "are 24.0 bytes a packet: the bit rate is not believed" in first.warnings[0]

    def test_a_cell_that_is_no_number_is_a_problem(self) -> None:
        reading = read(dpdk, data("cases/pktgen-dpdk.txt").replace("48712/1394", "48.712/1.394"))
        assert [p.found for p in reading.problems] == ["MBits/s Rx/Tx: '48.712/1.394'"]

    def test_pages_follow_each_other(self) -> None:
        text = data("cases/pktgen-dpdk.txt")
        assert len(read(dpdk, text + text).records) == 6


class TestTestpmd:
    def test_a_port(self) -> None:
        (record,) = read(dpdk, data("cases/testpmd-port.txt")).records
        assert record.status is Status.OK
        assert (record.port, record.packets_received) == (0, 2567441372)
        assert (record.packets_per_second, record.throughput_bps) == (12254848, 99999562856)
        assert (record.offered_packets_per_second, record.receive_missed) == (0, 0)

    def test_forward_statistics(self) -> None:
        port, both = read(dpdk, data("cases/testpmd-forward.txt")).records
        assert (port.kind, port.port, port.packets_sent) == ("port", 0, 9900)
        assert port.send_dropped == 102
        assert "send dropped: 102" in port.warnings
        assert (both.kind, both.port) == ("ports", None)

    def test_a_damaged_number_is_a_problem(self) -> None:
        reading = read(dpdk, data("cases/testpmd-port.txt").replace("12254848", "12254.848"))
        assert [p.found for p in reading.problems] == ["rx-pps: '12254.848'"]
        assert reading.records[0].packets_per_second is None


@pytest.mark.parametrize("name", ["pktgen-dpdk", "testpmd-port", "testpmd-forward"])
def test_right_or_flagged(name: str) -> None:
    assert_right_or_flagged(dpdk, data(f"cases/{name}.txt"), NAMES, cut=False)


@given(st.text("Pkts/s MaxRxT:0123456789<UP->NIC statistics for port\n", max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    doc = document(text)
    dpdk.recognise(doc)
    dpdk.parse(doc)
