"""The case bank: netperf output that people posted, with the values it must give."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.parsers import netperf, read
from collector.parsers.base import Status
from collector.parsers.document import from_text, load
from collector.parsers.netperf.records import Bucket, NetperfResult

CASES = Path(__file__).parents[2] / "data" / "cases"


def results(name: str) -> list[NetperfResult]:
    """The records of a case file, which must be read without a problem."""
    reading = read(load(str(CASES / f"{name}.txt")))
    assert reading.problems == []
    found = [record for record in reading.records if isinstance(record, NetperfResult)]
    assert len(found) == len(reading.records)
    return found


def test_01_mbytes_are_powers_of_two() -> None:
    stream, udp = results("01-a")
    assert (stream.test, stream.host, stream.family) == ("TCP_STREAM", "server", None)
    assert (stream.recv_socket_bytes, stream.send_socket_bytes) == (524288, 524288)
    assert (stream.message_bytes, stream.elapsed_s) == (524288, 9.99)
    assert stream.throughput_bps == pytest.approx(1475.30e6, rel=1e-5)
    assert stream.printed["unit"] == "MBytes"
    assert udp.test == "UDP_STREAM"
    assert udp.throughput_bps == udp.send_throughput_bps == pytest.approx(1654.40e6, rel=1e-5)
    assert (udp.messages_ok, udp.errors, udp.lost_messages) == (63054, 0, 0)
    assert stream.status is udp.status is Status.OK


def test_02_the_second_row_is_the_receiver() -> None:
    first, second = results("02-a")
    assert first.throughput_bps == first.receive_throughput_bps == 61689.4e6
    assert first.send_throughput_bps == 63577.2e6
    assert (first.messages_ok, first.messages_received) == (36395320, 35314623)
    assert (first.message_bytes, first.errors, first.lost_messages) == (65507, 0, 1080697)
    assert first.loss_pct == pytest.approx(2.969, abs=5e-4)
    assert (first.cpu_local_pct, first.cpu_remote_pct) == (24.11, 24.11)
    assert (first.cpu_method_local, first.cpu_method_remote) == ("S", "S")
    assert first.service_demand_local_us_per_kb == 3.977
    assert first.service_demand_remote_us_per_kb == 3.977
    sums = [(first.send_throughput_bps or 0) + (second.send_throughput_bps or 0)]
    sums.append((first.throughput_bps or 0) + (second.throughput_bps or 0))
    assert sums == [126030.3e6, 122292.0e6]
    assert (first.lost_messages or 0) + (second.lost_messages or 0) == 2140021


def test_02_nothing_received_is_suspect_and_the_sender_is_not_the_result() -> None:
    (udp,) = results("02-b")
    assert udp.status is Status.SUSPECT
    assert udp.warnings == ("nothing received",)
    assert (udp.throughput_bps, udp.send_throughput_bps) == (0.0, 2786.99e6)
    assert udp.loss_pct == 100.0
    assert (udp.send_socket_bytes, udp.remote_recv_socket_bytes) == (124928, 65536)


def test_03_short_second_row_is_the_remote_sockets() -> None:
    (rr,) = results("03-a")
    assert (rr.test, rr.family, rr.migrated) == ("TCP_RR", "AF_INET6", True)
    assert rr.banner_flags == ("first burst 0", "cpu bind")
    assert (rr.send_socket_bytes, rr.recv_socket_bytes) == (262144, 540000)
    assert (rr.remote_send_socket_bytes, rr.remote_recv_socket_bytes) == (262144, 540000)
    assert (rr.request_bytes, rr.response_bytes, rr.elapsed_s) == (70000, 70000, 10.0)
    assert rr.transactions_per_second == 6591.45
    assert rr.throughput_bps is None
    assert (rr.cpu_local_pct, rr.cpu_remote_pct) == (0.86, 1.34)
    assert rr.service_demand_local_us_per_transaction == 62.490
    assert rr.service_demand_remote_us_per_transaction == 97.446
    assert rr.derived["cpus_local"] == pytest.approx(47.9, abs=0.05)
    assert rr.derived["cpus_remote"] == pytest.approx(47.9, abs=0.05)
    assert rr.derived["latency_mean_us"] == pytest.approx(151.7, abs=0.05)
    assert rr.command == "netperf -H server -t TCP_RR -T2,2 -l 10 -Cc -- -r 70000,70000"


def test_06_banner_over_two_lines_below_a_failed_run() -> None:
    failed, stream = results("06-a")
    assert failed.status is Status.FAILED
    assert failed.throughput_bps is None
    assert failed.failure is not None
    assert failed.failure.error_class == "control_closed"
    assert failed.failure.text == "recv_response: partial response received: 0 bytes"
    assert (stream.host, stream.address, stream.family) == ("192.0.2.9", "192.0.2.9", "AF_INET")
    assert (stream.recv_socket_bytes, stream.send_socket_bytes) == (43689, 16384)
    assert (stream.message_bytes, stream.elapsed_s) == (16384, 30.02)
    assert stream.throughput_bps == 20.95e6


def test_07_interim_results_are_no_result() -> None:
    failed, good = results("07-a")
    assert failed.failure is not None
    assert failed.failure.error_class == "control_closed"
    assert failed.throughput_bps is None
    series = [(one.end_s, one.interval_s, one.throughput_bps) for one in failed.interim]
    assert series == [(1377579676.901, 5.064, 128.46e6), (1377579676.989, 0.088, 118.14e6)]
    assert (good.status, good.throughput_bps, good.elapsed_s) == (Status.OK, 119.96e6, 10.26)
    assert [one.throughput_bps for one in good.interim] == [125.10e6, 120.97e6]
    assert good.message_bytes == 1460
    assert good.command is not None
    assert good.command.endswith("-P 20052,20052")


def test_07_a_run_without_its_last_block_is_incomplete() -> None:
    (run,) = results("07-b")
    assert run.status is Status.INCOMPLETE
    assert run.throughput_bps is None
    assert [one.throughput_bps for one in run.interim] == [8.60539e6, 8.88970e6]
    assert (run.family, run.host) == ("AF_INET6", "2001:db8:12::1")


def test_09_detail_blocks_are_not_results() -> None:
    (stream,) = results("09-a")
    assert (stream.status, stream.throughput_bps) == (Status.OK, 562.02e6)
    detail = stream.detail
    assert detail is not None
    assert (detail.send_align_local, detail.recv_align_remote) == (8, 8)
    assert (detail.send_offset_local, detail.recv_offset_remote) == (0, 0)
    assert (detail.bytes_transferred, detail.bytes_per_send) == (7.036e8, 16384.0)
    assert (detail.sends, detail.bytes_per_recv, detail.recvs) == (42942, 3373.96, 208527)
    assert stream.mss_bytes == 1448


def test_09_request_response_in_bits() -> None:
    (rr,) = results("09-b")
    assert (rr.test, rr.status, rr.throughput_bps) == ("TCP_RR", Status.OK, 1821.30e6)
    assert rr.transactions_per_second == 3473.252
    assert rr.round_trip_us == 2015.402
    assert rr.first_burst == 6
    assert "latency_mean_us" not in rr.derived
    assert rr.detail is not None
    assert rr.detail.outbound_bps == rr.detail.inbound_bps == 910.492e6


def test_10_warning_above_key_values() -> None:
    (rr,) = results("10-a")
    assert (rr.status, rr.test, rr.transactions_per_second) == (Status.OK, "TCP_RR", 2841.07)
    assert rr.warnings == ("enable_enobufs failed: getprotobyname",)
    assert (rr.latency_p50_us, rr.latency_p90_us, rr.latency_mean_us) == (334, 391, 351.66)
    assert rr.round_trip_us == 351.980
    assert (rr.retransmits_local, rr.retransmits_remote) == (0, 0)


def test_10_zero_and_nan_are_a_failed_run() -> None:
    (run,) = results("10-b")
    assert (run.status, run.throughput_bps) == (Status.FAILED, 0.0)
    assert run.failure is not None
    assert run.failure.text == "zero throughput"
    assert run.throughput_unit == "10^3bits/s"
    assert run.cpu_local_pct is run.cpu_remote_pct is None
    assert run.confidence is not None
    assert (run.confidence.level_pct, run.confidence.wanted_half_width_pct) == (99, 2.5)
    assert run.confidence.got_half_width_pct.throughput is None
    assert run.confidence.met.throughput is None
    assert run.printed["THROUGHPUT_CONFID"] == "-nan"


def test_10_a_table_with_zero_is_a_failed_run() -> None:
    (run,) = results("10-c")
    assert (run.status, run.throughput_bps, run.elapsed_s) == (Status.FAILED, 0.0, 64.0)


def test_11_wrapped_titles_and_a_histogram() -> None:
    (rr,) = results("11-a")
    assert (rr.test, rr.transactions_per_second) == ("UDP_RR", 2217.06)
    latencies = (rr.latency_p50_us, rr.latency_p90_us, rr.latency_p99_us, rr.latency_stddev_us)
    assert latencies == (442, 487, 589, 81.26)
    assert (rr.latency_min_us, rr.latency_max_us) == (361, 9688)
    assert rr.confidence is not None
    assert rr.confidence.iterations == 1
    assert rr.confidence.got_half_width_pct.throughput is None
    assert [(b.lower_us, b.count) for b in rr.histogram] == [
        (300, 5771), (400, 118948), (500, 7121), (600, 639), (700, 199), (800, 90), (900, 53),
        (1000, 149), (2000, 31), (3000, 11), (4000, 8), (5000, 1), (6000, 1), (7000, 1), (9000, 1),
    ]  # fmt: skip
    assert sum(bucket.count for bucket in rr.histogram) == 133024
    assert rr.histogram[0] == Bucket(300, 5771)


def test_12_confidence_is_compared_although_omni_output_never_warns() -> None:
    (rr,) = results("12-a")
    assert rr.transactions_per_second == 55555.94
    confidence = rr.confidence
    assert confidence is not None
    assert (confidence.level_pct, confidence.wanted_half_width_pct) == (99, 0.5)
    assert confidence.iterations == 26
    assert confidence.got_half_width_pct.throughput == pytest.approx(0.492)
    assert confidence.met.throughput is True
    assert confidence.met.cpu_local is None


def test_12_one_header_for_ten_rows() -> None:
    found = results("12-b")
    assert [one.tag for one in found] == [f"iteration {n}" for n in range(1, 11)]
    rates = [one.transactions_per_second or 0 for one in found]
    assert sum(rates) / len(rates) == pytest.approx(55602.178)


@pytest.mark.parametrize(
    ("name", "error_class", "errno_name"),
    [
        ("15-a", "control_unreachable", None),
        ("15-b1", "control_timeout", "ETIMEDOUT"),
        ("15-b2", "control_timeout", "EINTR"),
    ],
)
def test_15_lost_control_connection(name: str, error_class: str, errno_name: str | None) -> None:
    (run,) = results(name)
    assert run.status is Status.FAILED
    assert run.throughput_bps is None
    assert run.failure is not None
    assert (run.failure.error_class, run.failure.errno_name) == (error_class, errno_name)
    if name == "15-a":
        assert (run.printed["server"], run.printed["port"]) == ("192.0.2.2", "12865")


def test_17_one_cause_in_two_spellings_is_one_error() -> None:
    found = results("17-a")
    assert [one.failure and one.failure.errno_name for one in found] == [
        "EMSGSIZE", "ENETUNREACH", "EMSGSIZE", "ENETUNREACH", "EHOSTUNREACH", "EINVAL",
        "ECONNRESET",
    ]  # fmt: skip
    assert all(one.status is Status.FAILED and one.throughput_bps is None for one in found)
    assert found[1].failure is not None
    assert "-R 1" in (found[1].failure.hint or "")


def test_18_sctp_runs_at_once_after_their_command_lines() -> None:
    first, second = results("18-a")
    assert {first.test, second.test} == {"SCTP_STREAM_MANY"}
    assert (first.throughput_bps, second.throughput_bps) == (7572.02e6, 7787.03e6)
    assert (first.message_bytes, first.migrated) == (10240, False)
    assert (first.cpu_local_pct, first.cpu_remote_pct) == (32.07, 32.07)
    assert second.service_demand_local_us_per_kb == 43.180
    assert first.service_demand_shared is second.service_demand_shared is True


def test_18_a_started_command_without_output_is_reported() -> None:
    text = (CASES / "18-a.txt").read_text()
    cut = text[: text.rindex("SCTP 1-TO-MANY")]
    first, missing = netperf.parse(from_text(cut)).records
    assert {first.status, missing.status} == {Status.OK, Status.INCOMPLETE}
    assert any("2 commands were started" in w for w in (*first.warnings, *missing.warnings))


def test_labelled_ipsec_keeps_the_parentheses_apart_and_marks_what_was_not_met() -> None:
    found = results("labelled_ipsec")
    got = [
        (
            one.test,
            one.throughput_bps or one.transactions_per_second,
            one.alternate_throughput_bps or one.alternate_transactions_per_second,
        )
        for one in found
    ]
    assert got == [
        ("TCP_STREAM", 22.87e6, 23.22e6),
        ("TCP_STREAM", 23.05e6, 23.02e6),
        ("TCP_RR", 878.09, 877.30),
        ("UDP_RR", 1105.25, 1105.03),
        ("UDP_RR", 756.26, 689.66),
        ("UDP_STREAM", 21.88e6, 23.75e6),
        ("UDP_STREAM", 18.91e6, 20.94e6),
    ]
    confidences = [one.confidence for one in found]
    assert all(c and (c.level_pct, c.wanted_half_width_pct) == (99, 2.5) for c in confidences)
    assert [c and c.met.throughput for c in confidences] == [True, False, *[True] * 5]
    unmet = confidences[1]
    assert unmet is not None
    assert unmet.got_half_width_pct.throughput == 4.1  # 8.2 % is the full width
    assert unmet.got_half_width_pct.cpu_local is None  # 0.0 without -c is not measured
    assert unmet.met.cpu_local is None
    beside = [one.alternate for one in found]
    assert [a and a.confidence_met for a in beside] == [
        None, False, None, None, False, None, None,
    ]  # fmt: skip
    assert [a and a.confidence_width_pct for a in beside if a and a.confidence_met is False] == [
        9.8,
        57.0,
    ]
    assert (found[4].remote_send_socket_bytes, found[4].remote_recv_socket_bytes) == (
        262142,
        262142,
    )
    assert beside[5] is not None
    assert beside[5].send_throughput_bps == 34.45e6
    assert found[1].command == (
        "/opt/netperf/netperf -t TCP_STREAM -l 60 -H xxxx -i 10,3 -I 99,5"
        " -- -s 32768 -S 32768 -m 4096"
    )
