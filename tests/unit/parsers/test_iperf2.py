"""iperf 2: text reports of both ends and CSV of old and new layouts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import iperf2
from collector.parsers.base import Status, as_json

NAMES = (
    "throughput_bps", "sent_bps", "received_bps", "reverse_bps", "packets", "lost_packets",
    "loss_pct", "writes", "retransmits",
)  # fmt: skip


class TestCases:
    def test_enhanced_tcp_uses_the_sum(self) -> None:
        (record,) = read(iperf2, data("cases/27-a.txt")).records
        assert record.status is Status.OK
        assert record.throughput_bps == 1970e6
        assert (record.writes, record.write_errors, record.retransmits) == (112760, 0, 0)
        four, three = record.streams
        assert (four.id, four.throughput_bps, four.rtt_s) == ("4", 985e6, 238e-6)
        assert (three.id, three.throughput_bps, three.rtt_s) == ("3", 985e6, 129e-6)
        assert four.cwnd_bytes is None
        assert record.remote_port == 20000

    def test_udp_keeps_client_and_server_apart(self) -> None:
        (record,) = read(iperf2, data("cases/27-b.txt")).records
        assert record.sent_bps == 2.10e6
        assert record.total.packets == 10700
        assert record.packets_per_second == 178
        assert (record.lost_packets, record.packets) == (1, 10700)
        assert record.jitter_s == pytest.approx(0.0325e-3)
        assert record.out_of_order == 1
        jitters = [s.jitter_s for s in record.streams if s.side == "received"]
        assert jitters == pytest.approx([0.026e-3, 0.039e-3])

    def test_csv_of_seventeen_fields(self) -> None:
        (record,) = read(iperf2, data("cases/27-c.txt")).records
        assert (record.interval_start_s, record.interval_end_s) == (0.0, 0.2)
        assert record.throughput_bps == 104957475
        assert (record.lost_packets, record.packets) == (0, 1785)
        assert record.message_bytes == 1470
        assert record.packets_per_second == pytest.approx(8927.633652)
        assert record.started_at == "20240509154620.629-0700"
        assert record.status is Status.OK

    def test_an_unknown_csv_layout_says_how_many_fields(self) -> None:
        text = data("cases/27-c.txt").strip() + ",1,2,3\n"
        reading = read(iperf2, text)
        assert reading.records == []
        (problem,) = reading.problems
        assert problem.found == "20 fields in a CSV row of iperf 2"
        assert problem.wanted.startswith("expected one of 9, 10, 14, 17, 19")


class TestText:
    @pytest.mark.parametrize(
        ("name", "rate", "basis"),
        [
            ("tcp", 26.6e9, "sent"),
            ("tcp-e", 25.2e9, "sent"),
            ("tcp-e-p2", 59.2e9, "sent"),
            ("tcp-p2", 55.1e9, "sent"),
            ("tcp-R", 27.5e9, "received"),
            ("udp", 5.25e6, "received"),
            ("udp-e-p2", 10.51e6, "received"),
        ],
    )
    def test_real_reports(self, name: str, rate: float, basis: str) -> None:
        (record,) = read(iperf2, data(f"iperf/iperf2-2.1.8-{name}.txt")).records
        assert record.status is Status.OK, record.warnings
        assert record.throughput_bps == pytest.approx(rate)
        assert record.throughput_basis == basis

    def test_full_duplex_directions_are_not_added(self) -> None:
        (record,) = read(iperf2, data("iperf/iperf2-2.1.8-tcp-fd.txt")).records
        assert (record.throughput_bps, record.reverse_bps) == (13.4e9, 13.3e9)

    def test_the_old_dual_test_tells_directions_by_port(self) -> None:
        text = (
            "Server listening on TCP port 5001\n"
            "TCP window size: 85.3 KByte (default)\n"
            "Client connecting to 192.0.2.2, TCP port 5001\n"
            "[  5] local 192.0.2.1 port 50001 connected with 192.0.2.2 port 5001\n"
            "[  4] local 192.0.2.1 port 5001 connected with 192.0.2.2 port 50002\n"
            "[ ID] Interval       Transfer     Bandwidth\n"
            "[  5]  0.0-10.0 sec  1.00 GBytes   859 Mbits/sec\n"
            "[  4]  0.0-10.0 sec   800 MBytes   671 Mbits/sec\n"
        )
        (record,) = read(iperf2, text).records
        assert (record.throughput_bps, record.reverse_bps) == (859e6, 671e6)

    def test_a_server_log_is_one_record_a_test(self) -> None:
        records = read(iperf2, data("iperf/iperf2-2.1.8-server-e.txt")).records
        assert [r.throughput_bps for r in records] == [25.3e9, 59.1e9]
        assert {r.throughput_basis for r in records} == {"received"}

    def test_a_udp_server_log(self) -> None:
        first, second = read(iperf2, data("iperf/iperf2-2.1.8-server-udp.txt")).records
        assert (first.packets, first.lost_packets, len(first.intervals)) == (895, 0, 2)
        assert (second.packets, second.out_of_order) == (1790, 1)

    def test_tests_that_are_mixed_in_one_log_are_marked(self) -> None:
        records = read(iperf2, data("iperf/iperf2-2.1.8-server.txt")).records
        mixed = [r for r in records if r.status is not Status.OK]
        assert any("no [SUM] row" in " ".join(r.warnings) for r in mixed)
        assert any("were not announced" in " ".join(r.warnings) for r in mixed)

    def test_a_refused_connection_is_a_failure(self) -> None:
        (record,) = read(iperf2, data("iperf/iperf2-2.1.8-refused.txt")).records
        assert record.status is Status.FAILED
        assert record.failure.error_class == "control_unreachable"
        assert record.failure.errno_name == "ECONNREFUSED"

    def test_streams_without_a_sum_are_not_added(self) -> None:
        text = "\n".join(x for x in data("cases/27-a.txt").splitlines() if "SUM" not in x)
        (record,) = read(iperf2, text).records
        assert record.throughput_bps is None
        assert record.status is Status.INCOMPLETE
        assert "2 streams (sent) but no [SUM] row of the whole" in record.warnings

    def test_intervals_without_a_total_are_incomplete(self) -> None:
        lines = data("iperf/iperf2-2.1.8-tcp-e.txt").splitlines()
        (record,) = read(iperf2, "\n".join(lines[:-1])).records
        assert record.status is Status.INCOMPLETE
        assert record.throughput_bps is None
        assert len(record.intervals) == 2

    def test_a_missing_server_report_leaves_the_loss_unknown(self) -> None:
        text = data("iperf/iperf2-2.1.8-udp.txt").split("[  1] Server Report")[0]
        text += "[  1] WARNING: did not receive ack of last datagram after 10 tries.\n"
        (record,) = read(iperf2, text).records
        assert record.loss_pct is None
        assert record.throughput_basis == "sent"
        assert record.status is Status.SUSPECT

    def test_a_row_broken_by_a_mail_program(self) -> None:
        text = data("cases/27-b.txt").replace("0.026 ms    1/ 5350", "0.026 ms\n    1/ 5350")
        (record,) = read(iperf2, text).records
        assert record.lost_packets == 1

    def test_a_decimal_comma_is_a_problem(self) -> None:
        text = data("cases/27-a.txt").replace("7047 MBytes   985 M", "7047 MBytes   985,3 M")
        reading = read(iperf2, text)
        (problem,) = reading.problems
        assert problem.line == 5
        assert "985,3" in problem.found
        assert reading.records[0].status is Status.SUSPECT
        assert 985.3e6 not in [s.throughput_bps for s in reading.records[0].streams]

    @pytest.mark.parametrize(
        ("unit", "factor"),
        [("bits", 1), ("Kbits", 1e3), ("Mbits", 1e6), ("Gbits", 1e9), ("MBytes", 8 * 2**20)],
    )
    def test_unit_letters(self, unit: str, factor: float) -> None:
        size = 10 * 3 * factor / 8
        text = (
            "Client connecting to 192.0.2.2, TCP port 5001\n"
            f"[  3]  0.0-10.0 sec  {size / 2**10:.6f} KBytes  3 {unit}/sec\n"
        )
        (record,) = read(iperf2, text).records
        assert record.throughput_bps == pytest.approx(3 * factor)
        assert record.status is Status.OK

    def test_a_rate_that_is_not_bytes_over_time_is_suspect(self) -> None:
        text = data("iperf/iperf2-2.1.8-tcp.txt").replace("26.6 Gbits", "266 Gbits")
        (record,) = read(iperf2, text).records
        assert record.status is Status.SUSPECT
        assert any(
            "6.24 GBytes in 0.0000-2.0128 sec is not 266 Gbits/sec" in w for w in record.warnings
        )

    def test_prose_is_left_alone(self) -> None:
        for text in ("We connected with iperf and got 5000 pps.\n", "a sender\n", "x Bitrate\n"):
            assert not iperf2.recognise(document(text))

    def test_iperf3_is_left_alone(self) -> None:
        for name in ("tcp", "udp", "tcp-p2", "server"):
            assert not iperf2.recognise(document(data(f"iperf/iperf3-3.12-{name}.txt")))
        assert not iperf2.recognise(document(data("cases/25-c.txt")))


def test_an_error_below_a_row_is_no_part_of_it() -> None:
    text = (
        "[  3] local 192.0.2.2 port 5001 connected with 192.0.2.1 port 58222\n"
        "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n"
        "[  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec   0.010 ms    1/  893 (0.11%)\n"
        "read failed: Connection refused\n"
    )
    (record,) = read(iperf2, text).records
    assert record.throughput_bps == 1.05e6
    assert record.warnings == (
        "an error text came with the result: read failed: Connection refused",
    )


class TestRelatedRows:
    """CSV rows that tell something of each other."""

    def test_a_sum_is_no_further_stream(self) -> None:
        first, second, total = read(iperf2, data("cases/iperf2-csv-two-way.txt")).records
        assert [r.kind for r in (first, second, total)] == ["total", "total", "sum"]
        assert [r.transfer_id for r in (first, second, total)] == [1, 1, -1]
        assert total.throughput_bps == 1864417892

    def test_a_sum_over_both_directions_is_marked(self) -> None:
        total = read(iperf2, data("cases/iperf2-csv-two-way.txt")).records[2]
        assert total.status is Status.SUSPECT
        assert total.warnings == ("the sum is over both directions of a two-way test",)

    def test_a_sum_that_lacks_a_stream_is_marked(self) -> None:
        lines = data("cases/iperf2-csv-two-way.txt").splitlines()
        _, total = read(iperf2, "\n".join(lines[1:])).records
        assert total.status is Status.SUSPECT
        assert "is 2330984508 bytes, its 1 rows add up to 1177026560" in total.warnings[0]

    def test_a_short_row_is_of_udp_if_the_servers_report_follows(self) -> None:
        sent, received = read(iperf2, data("cases/iperf2-csv-udp.txt")).records
        assert (sent.protocol, received.protocol) == ("udp", "udp")
        assert (received.packets, received.lost_packets) == (893, 0)

    def test_a_short_row_alone_does_not_say_its_protocol(self) -> None:
        line = data("cases/iperf2-csv-udp.txt").splitlines()[0]
        (record,) = read(iperf2, line).records
        assert record.protocol is None

    def test_a_client_that_got_no_further(self) -> None:
        (record,) = read(iperf2, "connect failed: Connection refused\n").records
        assert record.status is Status.FAILED
        assert record.failure.error_class == "control_unreachable"


class TestCsv:
    def test_totals_and_intervals(self) -> None:
        records = read(iperf2, data("iperf/iperf2-2.1.8-tcp-p2.csv")).records
        assert [r.kind for r in records] == ["interval"] * 4 + ["total"] * 2
        assert records[4].throughput_bps == 19140505917

    def test_minus_one_datagrams_mean_no_report(self) -> None:
        (record,) = read(iperf2, data("iperf/iperf2-2.1.8-udp-no-report.csv")).records
        assert record.loss_pct is None
        assert record.jitter_s is None
        assert record.packets is None
        assert record.status is Status.SUSPECT

    def test_a_header_names_the_columns(self) -> None:
        text = (
            "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,"
            "writecnt,writeerr,tcpretry,tcpcwnd,tcppcwnd,tcprtt,tcprttvar\n"
            "+0000:20240101000000.000000,192.0.2.1,5,192.0.2.2,5001,1,0.0,10.0,1250000000,"
            "1000000000,9537,0,3,64,44,120,7\n"
        )
        (record,) = read(iperf2, text).records
        assert record.throughput_bps == 1e9
        assert (record.writes, record.retransmits) == (9537, 3)

    def test_new_layouts_without_a_header(self) -> None:
        base = "20240101000000,192.0.2.1,5,192.0.2.2,5001,1,0.0,1.0,147000,1176000"
        tcp = f"{base},100,1,2,3,4,5,6,7,8"
        udp = f"{base},0.010,1,100,1.000,0,100,0,0,100.0"
        first, second = read(iperf2, f"{tcp}\n{udp}\n").records
        assert (first.protocol, second.protocol) == ("tcp", "udp")
        assert (second.lost_packets, second.packets, second.loss_pct) == (1, 100, 1.0)

    def test_a_rate_that_is_not_bytes_over_time_is_suspect(self) -> None:
        text = "20240101000000,192.0.2.1,5,192.0.2.2,5001,1,0.0-10.0,1250000000,10000000000\n"
        (record,) = read(iperf2, text).records
        assert record.status is Status.SUSPECT


FILES = [
    "cases/27-a.txt", "cases/27-b.txt", "cases/27-c.txt",
    *(f"iperf/iperf2-2.1.8-{n}.txt" for n in
      ("tcp", "tcp-e", "tcp-e-p2", "tcp-p2", "tcp-fd", "udp", "udp-e-p2", "server-e",
       "server-udp")),
    "iperf/iperf2-2.1.8-tcp-p2.csv",
]  # fmt: skip


class TestMutations:
    @pytest.mark.parametrize("name", FILES)
    def test_right_or_flagged(self, name: str) -> None:
        assert_right_or_flagged(iperf2, data(name), NAMES)

    @given(st.text("[]SUM0123456789.-: secGMKBytbir/\n()%ID,", max_size=200))
    @settings(max_examples=150, deadline=None)
    def test_no_text_breaks_it(self, text: str) -> None:
        doc = document(text)
        iperf2.recognise(doc)
        iperf2.parse(doc)

    @given(st.data())
    @settings(max_examples=80, deadline=None)
    def test_no_damage_breaks_it(self, draw: st.DataObject) -> None:
        text = data(draw.draw(st.sampled_from(FILES)))
        at = draw.draw(st.integers(0, len(text)))
        junk = draw.draw(st.text("[]SUM,0123456789.-eE nasfGMbitsec/()%K\n", max_size=12))
        end = min(len(text), at + draw.draw(st.integers(0, 40)))
        for record in iperf2.parse(document(text[:at] + junk + text[end:])).records:
            json.dumps(as_json(record), allow_nan=False)
