"""TRex: the NDR benchmark, the server's and the console's statistics, the summary."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import read as read_all
from collector.parsers import trex
from collector.parsers.base import Status

NAMES = ("packets_per_second", "throughput_bps", "offered_bps", "packets_sent", "loss_pct")


class TestNdr:
    def test_what_was_found(self) -> None:
        (record,) = read(trex, data("cases/trex-ndr.txt")).records
        assert record.kind == "ndr"
        assert record.status is Status.OK, record.warnings
        assert (record.title, record.direction) == ("udp 64", "unidirectional")
        assert (record.intended_bps, record.max_pct) == (7.02e9, 71.56)
        assert (record.packets_per_second, record.offered_packets_per_second) == (10.45e6, 10.45e6)
        assert (record.throughput_bps, record.wire_bps) == (7.02e9, 8.78e9)
        assert (record.loss_pct, record.queue_full_pct, record.cpu_pct) == (0, 0, 61.1)

    def test_no_other_parser_takes_a_line_of_it(self) -> None:
        reading = read_all(document(data("cases/trex-ndr.txt")))
        assert [record.tool for record in reading.records] == ["trex"]

    def test_a_loss_of_more_than_all_is_none_and_the_error_fails_the_trial(self) -> None:
        (record,) = read(trex, data("cases/trex-ndr-trial.txt")).records
        assert record.kind == "trial"
        assert record.status is Status.FAILED
        assert record.loss_pct is None
        assert (
            "Drop Rate is 261.59569 % of oPackets: more than all, no measurement" in record.warnings
        )
        assert "'mult' invalid value: '-147401433437.1804bps'" in record.failure.text
        assert (record.offered_packets_per_second, record.packets_per_second) == (82.27e6, 82.45e6)
        assert record.wire_bps is None

    def test_without_the_error_the_trial_is_suspect(self) -> None:
        text = data("cases/trex-ndr-trial.txt").split("Status", maxsplit=1)[0]
        (record,) = read(trex, text).records
        assert record.status is Status.SUSPECT

    def test_trials_are_kept_apart(self) -> None:
        text = data("cases/trex-ndr-trial.txt").split("Status", maxsplit=1)[0]
        kinds = [r.kind for r in read(trex, text + text + data("cases/trex-ndr.txt")).records]
        assert kinds == ["trial", "trial", "ndr"]

    def test_a_value_without_its_unit_is_a_problem(self) -> None:
        right = "RX PPS uni-directional            :10.45 MPPS"
        text = data("cases/trex-ndr.txt").replace(right, right.replace(".", ","))
        reading = read(trex, text)
        (problem,) = reading.problems
        assert problem.found == "RX PPS uni-directional: '10,45 MPPS'"
        assert reading.records[0].status is Status.SUSPECT
        assert reading.records[0].packets_per_second is None


class TestStatistics:
    def test_the_server(self) -> None:
        (record,) = read(trex, data("cases/trex-server.txt")).records
        assert record.status is Status.OK
        assert (record.packets_sent, record.packets_received) == (3725314294, 1954222656)
        assert record.loss_pct == pytest.approx(47.542, abs=0.001)
        assert (record.offered_bps, record.throughput_bps) == (1.34e9, 687.93e6)

    def test_a_total_column_is_not_counted_twice(self) -> None:
        text = "\n".join(
            f"{line}|      3725314294" if "opackets" in line else line
            for line in data("cases/trex-server.txt").splitlines()
        )
        assert read(trex, text).records[0].packets_sent == 3725314294

    def test_a_negative_counter_is_no_measurement(self) -> None:
        text = data("cases/trex-server.txt").replace("1954222572", "-4294967122")
        (record,) = read(trex, text).records
        assert record.status is Status.SUSPECT
        assert (record.packets_received, record.loss_pct) == (None, None)
        assert "ipackets has a negative counter: -4294967122" in record.warnings

    def test_the_console(self) -> None:
        (record,) = read(trex, data("cases/trex-console.txt")).records
        assert record.status is Status.OK
        assert (record.offered_bps, record.offered_wire_bps) == (45.96e9, 60.32e9)
        assert (record.throughput_bps, record.dropped_bps) == (9.77e9, 36.19e9)
        assert (record.offered_packets_per_second, record.cpu_pct) == (89.76e6, 31.02)
        assert record.version == "STL @ v2.87"

    def test_a_full_queue_means_that_less_was_sent(self) -> None:
        text = data("cases/trex-console.txt").replace(": 0 pkts", ": 1200 pkts")
        (record,) = read(trex, text).records
        assert record.status is Status.SUSPECT
        assert "queue_full is 1200" in record.warnings[0]


class TestSummary:
    def test_a_drop_of_zero_where_more_came_back(self) -> None:
        (record,) = read(trex, data("cases/trex-summary.txt")).records
        assert record.status is Status.SUSPECT
        assert (record.packets_sent, record.packets_received) == (2, 3)
        assert (record.packets_dropped, record.loss_pct) == (None, None)
        assert "number of rx packets exceeds 101% of tx packets!" in record.warnings

    def test_loss_is_of_the_packets_sent(self) -> None:
        text = (
            " Total-pkt-drop       : 7 pkts\n Total-tx-pkt         : 102 pkts\n"
            " Total-rx-pkt         : 95 pkts\n average-latency   : 8 usec\n"
        )
        (record,) = read(trex, text).records
        assert record.status is Status.OK
        assert record.packets_dropped == 7
        assert record.loss_pct == pytest.approx(6.8627, abs=1e-4)
        assert record.latency_s == pytest.approx(8e-6)


@pytest.mark.parametrize("name", ["ndr", "ndr-trial", "server", "summary", "console"])
def test_right_or_flagged(name: str) -> None:
    # The server's counters are sums over the ports, which a cut line changes.
    names = NAMES[:3] if name == "server" else NAMES
    assert_right_or_flagged(trex, data(f"cases/trex-{name}.txt"), names, cut=False)


@given(st.text("Drop Rate:PSTXL12uni-directonal|opackets0123456789.% \n", max_size=200))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_it(text: str) -> None:
    doc = document(text)
    trex.recognise(doc)
    trex.parse(doc)
