"""iperf3: JSON of all versions and text reports become records, or say why not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, doubtful, read

from collector.parsers import iperf3
from collector.parsers.base import Status, as_json

NAMES = (
    "throughput_bps",
    "sent_bps",
    "received_bps",
    "retransmits",
    "packets",
    "lost_packets",
    "loss_pct",
)


class TestJsonCases:
    def test_an_error_object_with_an_empty_end_is_a_failed_session(self) -> None:
        (record,) = read(iperf3, data("cases/22-a.txt")).records
        assert record.status is Status.FAILED
        assert record.version == "iperf 3.0.11"
        assert record.failure.text == "error - unable to connect to server: No route to host"
        assert record.failure.error_class == "control_unreachable"
        assert record.failure.errno_name == "EHOSTUNREACH"
        assert record.throughput_bps is None

    def test_minus_nan_is_null_and_reported_with_its_offset(self) -> None:
        text = data("cases/22-b.txt")
        (record,) = read(iperf3, text).records
        assert record.loss_pct is None
        assert record.packets == 0
        assert record.jitter_s is None
        assert (
            f"offset {text.index('-nan')}: -nan is no JSON number; read as null" in record.warnings
        )
        assert "interval: jitter 6.11273e+08 ms is implausible" in record.warnings
        assert record.printed["jitter_ms"] == "6.11273e+08"

    def test_a_lost_plus_sign_is_mended_only_with_a_warning(self) -> None:
        (record,) = read(iperf3, data("cases/22-c.txt")).records
        assert record.throughput_bps == 5.924e6
        assert record.status is Status.SUSPECT
        assert any("'5.924e 06' is no JSON number; read as 5.924e+06" in w for w in record.warnings)
        assert not any("bytes x 8" in w for w in record.warnings)

    def test_text_after_a_document_is_its_failure(self) -> None:
        (record,) = read(iperf3, data("cases/23-a.txt")).records
        assert record.status is Status.FAILED
        assert record.failure.text == "error - unable to send control message: Broken pipe"
        assert record.failure.errno_name == "EPIPE"
        assert record.congestion == "cubic"

    def test_a_whole_document_with_an_error_behind_it_keeps_its_numbers(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.json") + "iperf3: error - control socket has closed\n"
        (record,) = read(iperf3, text).records
        assert record.status is Status.FAILED
        assert record.sent_bps == pytest.approx(24609697269.69232)

    def test_the_same_document_twice_is_one_result(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.json")
        (record,) = read(iperf3, text + text).records
        assert "the same document is there twice; taken once" in record.warnings

    def test_two_documents_are_two_sessions_and_the_sender_flag_is_not_believed(self) -> None:
        first, second = read(iperf3, data("cases/23-c.txt")).records
        assert (first.sent_bps, second.sent_bps) == (20e9, 22e9)
        assert (first.received_bps, second.received_bps) == (19.9e9, 21.8e9)
        assert first.throughput_basis == "received"
        assert second.source.line == 2

    def test_two_documents_on_one_line(self) -> None:
        text = data("cases/23-c.txt").replace("\n", "")
        assert [r.sent_bps for r in read(iperf3, text).records] == [20e9, 22e9]

    def test_udp_end_sum_is_the_senders_rate_with_the_receivers_loss(self) -> None:
        (record,) = read(iperf3, data("cases/25-a.txt")).records
        assert record.sent_bps == pytest.approx(1048716.92, abs=0.01)
        assert record.received_estimate_bps == pytest.approx(712853.3, abs=0.1)
        assert record.throughput_basis == "received (estimate)"
        assert record.loss_pct == pytest.approx(32.026, abs=0.001)
        assert (record.lost_packets, record.packets) == (294, 918)
        assert any("is 1015648 bit/s, printed is 1048717" in w for w in record.warnings)

    def test_an_old_udp_document_has_an_estimate_too(self) -> None:
        end = json.loads("{" + data("cases/25-a.txt") + "}")
        text = json.dumps({"start": {"version": "iperf 3.1.3"}, "intervals": [], "end": end})
        (record,) = read(iperf3, text).records
        assert record.kind == "session"
        assert record.received_bps is None
        assert record.throughput_bps == pytest.approx(712853.3, abs=0.1)


class TestJson:
    def test_a_real_document(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp.json")).records
        assert record.status is Status.OK
        assert record.version == "iperf 3.12"
        assert record.protocol == "tcp"
        assert record.requested_s == 2
        assert record.retransmits == 1
        assert len(record.intervals) == 2
        assert record.cpu_local_pct == pytest.approx(40.7088309771101)

    def test_a_real_bidirectional_document_with_doubled_keys(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp-p2-bidir.json")).records
        assert record.status is Status.OK
        assert record.bidirectional is True
        assert record.reverse_received.throughput_bps == pytest.approx(9456539752.640524)
        assert 'the key "sock_bufsize" occurs more than once' in record.warnings

    def test_a_key_twice_with_different_values_gives_none(self) -> None:
        text = (
            '{"start":{},"intervals":[],"end":{'
            '"sum_sent":{"seconds":1,"bytes":125000,"bits_per_second":1000000},'
            '"sum_sent":{"seconds":1,"bytes":250000,"bits_per_second":2000000}}}'
        )
        (record,) = read(iperf3, text).records
        assert record.throughput_bps is None
        assert record.status is not Status.OK
        assert "sum_sent is there 2 times; none is taken" in record.warnings

    def test_udp_senders_do_not_know_the_loss(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-udp-reverse.json")).records
        assert record.direction == "reverse"
        assert record.sent.lost_packets is None
        assert record.received.lost_packets == 0

    def test_a_cut_off_document_is_a_problem_with_its_offset(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.json")[:2000]
        reading = iperf3.parse(document(text))
        assert reading.records == []
        (problem,) = reading.problems
        assert "at offset 19" in problem.found or "at offset 20" in problem.found
        assert problem.wanted == "a complete JSON document of iperf3"

    def test_a_whole_document_after_a_cut_off_one_is_still_read(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.json")
        reading = iperf3.parse(document(text[:2000] + "\n" + text))
        assert len(reading.problems) == 1
        assert [r.status for r in reading.records] == [Status.OK]

    @pytest.mark.parametrize("token", ["nan", "-nan", "inf", "-inf", "NaN", "Infinity", "1e999"])
    def test_a_rate_that_is_no_number_is_none(self, token: str) -> None:
        text = data("cases/23-c.txt").split("\n")[0].replace("19900000000.0", token)
        (record,) = read(iperf3, text).records
        assert record.throughput_bps is None
        assert record.status is not Status.OK
        json.dumps(as_json(record), allow_nan=False)

    def test_a_saturated_counter_is_unknown(self) -> None:
        text = (
            '{"start":{},"intervals":[],"end":{"sum":{"seconds":1,"bytes":125000,'
            '"bits_per_second":1000000,"jitter_ms":0.1,"lost_packets":0,"packets":2147483647,'
            '"lost_percent":0}}}'
        )
        (record,) = read(iperf3, text).records
        assert record.packets is None
        assert record.loss_pct is None
        assert record.status is Status.SUSPECT

    def test_a_percentage_that_contradicts_the_counts_is_none(self) -> None:
        text = data("iperf/iperf3-3.12-udp.json").replace(
            '"lost_packets":\t0', '"lost_packets":\t3'
        )
        (record,) = read(iperf3, text).records
        assert record.loss_pct is None
        assert record.status is Status.SUSPECT


class TestStream:
    """--json-stream of iperf 3.17 and later: one event a line."""

    def lines(self) -> list[str]:
        whole = json.loads(data("iperf/iperf3-3.12-tcp.json"))
        events = [("start", whole["start"]), *(("interval", i) for i in whole["intervals"])]
        events.append(("end", whole["end"]))
        return [json.dumps({"event": name, "data": value}) for name, value in events]

    def test_events_are_one_session(self) -> None:
        (record,) = read(iperf3, "\n".join(self.lines())).records
        assert record.status is Status.OK
        assert record.version == "iperf 3.12"
        assert len(record.intervals) == 2
        assert record.sent_bps == pytest.approx(24609697269.69232)
        assert (record.source.line, record.source.last_line) == (1, 4)

    def test_without_its_end_a_session_is_incomplete(self) -> None:
        (record,) = read(iperf3, "\n".join(self.lines()[:-1])).records
        assert record.status is Status.INCOMPLETE
        assert record.throughput_bps is None

    def test_an_error_event_is_a_failure(self) -> None:
        error = json.dumps({"event": "error", "data": "error - control socket has closed"})
        (record,) = read(iperf3, "\n".join([*self.lines()[:-1], error])).records
        assert record.status is Status.FAILED
        assert record.failure.error_class == "control_lost"

    def test_two_sessions(self) -> None:
        assert len(read(iperf3, "\n".join(self.lines() * 2)).records) >= 1


class TestTwoWays:
    """Documents of 3.7 to 3.10, which have both directions under the same keys."""

    def test_the_streams_tell_the_directions_apart(self) -> None:
        (record,) = read(iperf3, data("cases/iperf3-bidir-doubled.txt")).records
        assert record.status is Status.OK, record.warnings
        assert (record.bidirectional, record.direction) == (True, "forward")
        assert (record.sent.bytes, record.received.bytes) == (3903324160, 3903324160)
        assert (record.reverse_sent.bytes, record.reverse_received.bytes) == (
            3903062016, 3902000000,
        )  # fmt: skip
        assert [i.direction for i in record.intervals] == ["forward", "reverse"]
        assert "both directions are under one key: told apart by their streams" in record.warnings

    def test_totals_that_the_streams_do_not_give_are_not_taken(self) -> None:
        text = data("cases/iperf3-bidir-doubled.txt")
        at = text.index('"sum_sent"')
        text = text[:at] + text[at:].replace("3903062016", "3903062017", 1)
        (record,) = read(iperf3, text).records
        assert record.status is Status.INCOMPLETE
        assert record.throughput_bps is None
        assert "the totals contradict each other" in record.warnings

    def test_on_the_server_the_flags_are_the_other_way_round(self) -> None:
        text = data("cases/iperf3-bidir-doubled.txt").replace(
            '"version"', '"accepted_connection":{"host":"192.0.2.1","port":1},"version"'
        )
        (record,) = read(iperf3, text).records
        assert record.sent.bytes == 3903062016
        assert record.reverse_sent.bytes == 3903324160


class TestCounters:
    def test_what_a_server_did_not_count_is_none(self) -> None:
        (record,) = read(iperf3, data("cases/iperf3-server-reverse.txt")).records
        assert record.status is Status.OK, record.warnings
        assert (record.throughput_bps, record.throughput_basis) == (941834730, "sent")
        assert record.received is None

    def test_a_client_that_received_nothing_did_count_it(self) -> None:
        text = data("cases/iperf3-server-reverse.txt").replace("accepted_connection", "other")
        (record,) = read(iperf3, text).records
        assert record.status is Status.FAILED
        assert record.throughput_bps is None

    def test_counters_below_zero_are_none(self) -> None:
        (record,) = read(iperf3, data("cases/iperf3-counters-below-zero.txt")).records
        assert record.status is Status.SUSPECT
        assert record.throughput_bps == 1e9
        assert record.retransmits is None
        assert "interval: negative number of bytes -1234" in record.warnings
        (interval,) = record.intervals
        assert (interval.bytes, interval.throughput_bps, interval.retransmits) == (None,) * 3


class TestLogs:
    def test_the_sums_of_several_runs_are_kept_apart(self) -> None:
        first, second = read(iperf3, data("cases/iperf3-sums-only.txt")).records
        assert (first.throughput_bps, second.throughput_bps) == (950e6, 975e6)
        assert len(first.intervals) == 2

    def test_a_total_above_every_interval_is_marked(self) -> None:
        first, _ = read(iperf3, data("cases/iperf3-sums-only.txt")).records
        assert first.status is Status.SUSPECT
        assert "the total of 950 Mbits/sec is above every interval" in first.warnings[-1]

    def test_the_errors_of_a_loop_are_one_run_each(self) -> None:
        text = (
            "iperf3: error - unable to connect to server: Connection refused\n"
            "iperf3: error - the server is busy running a test. try again later\n"
        )
        first, second = read(iperf3, text).records
        assert {first.status, second.status} == {Status.FAILED}
        assert (first.failure.error_class, second.failure.error_class) == (
            "control_unreachable", "server_busy",
        )  # fmt: skip
        assert [r.source.line for r in (first, second)] == [1, 2]

    def test_a_misspelt_unit_is_taken_with_a_warning(self) -> None:
        text = "[SUM]   0.00-10.04  sec   177 MBytes  147641 Kbis/sec              receiver\n"
        (record,) = read(iperf3, text).records
        assert record.throughput_bps == 147641e3
        assert record.status is Status.SUSPECT
        assert "line 1: Kbis/sec is taken as Kbits/sec" in record.warnings


class TestTextCases:
    def test_a_negative_loss_is_unknown(self) -> None:
        (record,) = read(iperf3, data("cases/25-b.txt")).records
        assert record.lost_packets is None
        assert record.loss_pct is None
        assert record.throughput_bps == 955e6
        assert record.printed["loss"] == "-104080/81068 (-1.3e+02%)"
        assert any("negative loss -104080 of 81068" in w and "--omit" in w for w in record.warnings)

    def test_a_saturated_datagram_counter(self) -> None:
        (record,) = read(iperf3, data("cases/25-c.txt")).records
        assert record.out_of_order == 1338478610
        assert record.packets is None
        assert record.loss_pct is None
        assert record.throughput_bps == 1000e6
        assert record.status is Status.SUSPECT


class TestText:
    @pytest.mark.parametrize(
        ("name", "sent", "received", "retransmits"),
        [
            ("tcp", 24.4e9, 24.3e9, 2),
            ("tcp-p2", 24.4e9, 24.4e9, 5),
            ("tcp-omit-verbose", 23.6e9, 23.6e9, 0),
            ("tcp-reverse", 24.6e9, 24.6e9, 2),
            ("tcp-bidir", 13.3e9, 13.3e9, 0),
            ("udp", 5.11e6, 5.11e6, None),
            ("udp-p2-reverse", 10.2e6, 10.2e6, None),
        ],
    )
    def test_real_reports(
        self, name: str, sent: float, received: float, retransmits: int | None
    ) -> None:
        (record,) = read(iperf3, data(f"iperf/iperf3-3.12-{name}.txt")).records
        assert record.status is Status.OK, record.warnings
        assert (record.sent_bps, record.received_bps) == (sent, received)
        assert record.retransmits == retransmits

    def test_verbose_facts(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp-omit-verbose.txt")).records
        assert record.version == "iperf 3.12"
        assert (record.requested_s, record.omit_s, record.streams_wanted) == (2, 1, 1)
        assert (record.cpu_local_pct, record.cpu_remote_pct) == (37.5, 53.2)
        assert [i.omitted for i in record.intervals] == [True, False, False]

    def test_directions(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp-bidir.txt")).records
        assert record.bidirectional is True
        assert record.reverse_received.throughput_bps == 12.0e9
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp-reverse.txt")).records
        assert record.direction == "reverse"

    def test_bytes_per_second_are_powers_of_1024(self) -> None:
        (record,) = read(iperf3, data("iperf/iperf3-3.12-tcp-fM-ts.txt")).records
        assert record.received_bps == 2901 * 2**20 * 8
        assert record.printed["rate"] == "2901 MBytes/sec"

    def test_a_server_log_is_one_record_a_client(self) -> None:
        records = read(iperf3, data("iperf/iperf3-3.12-server.txt")).records
        assert len(records) == 15
        assert [r.status for r in records[:-1]] == [Status.OK] * 14
        assert records[-1].failure.error_class == "terminated"
        assert records[6].direction == "reverse"
        assert records[6].throughput_basis == "sent"

    def test_server_output_is_a_session_of_its_own(self) -> None:
        client, server = read(iperf3, data("iperf/iperf3-3.12-getserver.txt")).records
        assert client.sent_bps == 24.0e9
        assert server.sent_bps is None
        assert server.received_bps == 23.9e9

    def test_old_udp_without_sender_and_receiver_is_an_estimate(self) -> None:
        text = (
            "Connecting to host 192.0.2.2, port 5201\n"
            "[  4] local 192.0.2.1 port 50000 connected to 192.0.2.2 port 5201\n"
            "[ ID] Interval           Transfer     Bandwidth       Total Datagrams\n"
            "[  4]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  16  \n"
            "[  4]   1.00-2.00   sec   128 KBytes  1.05 Mbits/sec  16  \n"
            "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
            "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
            "[  4]   0.00-2.00   sec   256 KBytes  1.05 Mbits/sec  0.021 ms  8/32 (25%)  \n"
            "[  4] Sent 32 datagrams\n\niperf Done.\n"
        )
        (record,) = read(iperf3, text).records
        assert record.throughput_basis == "received (estimate)"
        assert record.throughput_bps == pytest.approx(1.05e6 * 0.75)
        assert record.sent_bps == 1.05e6

    def test_a_quoted_table_alone(self) -> None:
        text = (
            "[ ID] Interval           Transfer     Bandwidth       Retr\n"
            "[  4]   0.00-10.00  sec  1.09 GBytes   937 Mbits/sec  123             sender\n"
            "[  4]   0.00-10.00  sec  1.09 GBytes   935 Mbits/sec                  receiver\n"
        )
        (record,) = read(iperf3, text).records
        assert (record.retransmits, record.protocol, record.status) == (123, "tcp", Status.OK)

    def test_a_run_without_final_rows_is_incomplete(self) -> None:
        text = "\n".join(data("iperf/iperf3-3.12-tcp.txt").splitlines()[:5])
        (record,) = read(iperf3, text).records
        assert record.status is Status.INCOMPLETE
        assert record.throughput_bps is None

    def test_a_run_that_lost_its_connection_has_failed(self) -> None:
        text = "\n".join(data("iperf/iperf3-3.12-tcp.txt").splitlines()[:5])
        (record,) = read(
            iperf3, text + "\niperf3: error - control socket has closed unexpectedly\n"
        ).records
        assert record.status is Status.FAILED
        assert record.failure.error_class == "control_lost"

    def test_a_row_broken_by_a_mail_program(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.txt")
        broken = text.replace("Gbits/sec    2             sender", "Gbits/sec    2\nsender")
        broken = broken.replace("5.67 GBytes   24.3", "5.67 GBytes\n24.3")
        assert broken != text
        (record,) = read(iperf3, broken).records
        assert (record.sent_bps, record.received_bps) == (24.4e9, 24.3e9)

    def test_a_decimal_comma_is_a_problem_with_file_and_line(self) -> None:
        text = data("iperf/iperf3-3.12-tcp.txt").replace("24.3 Gbits/sec", "24,3 Gbits/sec")
        reading = read(iperf3, text)
        (problem,) = reading.problems
        assert problem.line == 9
        assert "24,3 Gbits/sec" in problem.found
        assert "decimal points" in problem.wanted
        assert reading.records[0].status is Status.SUSPECT

    def test_a_sum_that_its_streams_do_not_add_up_to_is_not_taken(self) -> None:
        text = data("iperf/iperf3-3.12-tcp-p2.txt").replace("5.68 GBytes", "7.68 GBytes")
        (record,) = read(iperf3, text).records
        assert record.received_bps is None
        assert record.status is Status.SUSPECT

    def test_streams_without_a_sum_row_are_not_added(self) -> None:
        text = data("iperf/iperf3-3.12-tcp-p2.txt")
        lines = [line for line in text.splitlines() if "SUM" not in line]
        (record,) = read(iperf3, "\n".join(lines)).records
        assert record.throughput_bps is None
        assert record.status is Status.INCOMPLETE

    def test_prose_and_other_tools_are_left_alone(self) -> None:
        for text in (
            "We see 24.3 Gbits/sec with iperf on this box.\n",
            data("cases/27-a.txt"),
            data("iperf/iperf2-2.1.8-tcp.txt"),
            '{"a": 1}\n',
            "iperf3 was run by the\nsender\n",
        ):
            assert not iperf3.recognise(document(text))


FILES = [
    "cases/22-b.txt", "cases/23-c.txt", "cases/25-a.txt", "cases/25-c.txt",
    *(f"iperf/iperf3-3.12-{n}.txt" for n in
      ("tcp", "tcp-p2", "tcp-omit-verbose", "tcp-bidir", "udp", "udp-p2-reverse", "getserver")),
    "iperf/iperf3-3.12-udp.json",
]  # fmt: skip


class TestMutations:
    @pytest.mark.parametrize("name", FILES)
    def test_right_or_flagged(self, name: str) -> None:
        text = data(name)
        names = NAMES if name.endswith(".txt") else ("throughput_bps", "received_bps")
        assert_right_or_flagged(iperf3, text, names)

    @pytest.mark.parametrize("name", [f for f in FILES if "tcp" in f])
    def test_decimal_commas_everywhere_give_no_number(self, name: str) -> None:
        text = data(name).replace(".", ",").replace("127,0,0,1", "127.0.0.1")
        reading = iperf3.parse(document(text))
        assert doubtful(reading)
        assert all(r.throughput_bps is None for r in reading.records)

    @given(st.text(max_size=300))
    @settings(max_examples=150, deadline=None)
    def test_no_text_breaks_it(self, text: str) -> None:
        doc = document(text)
        iperf3.recognise(doc)
        iperf3.parse(doc)

    @given(st.data())
    @settings(max_examples=80, deadline=None)
    def test_no_damage_breaks_it(self, draw: st.DataObject) -> None:
        text = data(draw.draw(st.sampled_from(FILES)))
        at = draw.draw(st.integers(0, len(text)))
        junk = draw.draw(st.text('{}[]",:0123456789.-eE nasfiGMbitsec/\n', max_size=12))
        end = min(len(text), at + draw.draw(st.integers(0, 40)))
        for record in iperf3.parse(document(text[:at] + junk + text[end:])).records:
            json.dumps(as_json(record), allow_nan=False)

    @given(rate=st.floats(1e3, 1e12), seconds=st.floats(0.1, 1e4), lost=st.integers(0, 1000))
    @settings(max_examples=60, deadline=None)
    def test_what_json_says_comes_back(self, rate: float, seconds: float, lost: int) -> None:
        block = {
            "seconds": seconds,
            "bytes": rate * seconds / 8,
            "bits_per_second": rate,
            "lost_packets": lost,
            "packets": 1000,
            "lost_percent": lost / 10,
            "jitter_ms": 0.01,
        }
        text = json.dumps({"start": {}, "intervals": [], "end": {"sum_received": block}})
        (record,) = read(iperf3, text).records
        assert record.throughput_bps == rate
        assert record.loss_pct == pytest.approx(lost / 10)
        assert record.status is Status.OK
