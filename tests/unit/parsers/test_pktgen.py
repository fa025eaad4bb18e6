"""pktgen: /proc files, sample-script output and quoted rate lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import assert_right_or_flagged, data, document, read

from collector.parsers import pktgen
from collector.parsers.base import Status

NAMES = ("packets_per_second", "throughput_bps", "packets", "elapsed_s", "frame_bytes")

THREADS = "\n".join(
    f"Device: eth0@{thread}\n"
    f"Result: OK: 10000000(c9990000+d10000) usec, {packets} (60byte,0frags)\n"
    f"  {packets // 10}pps {packets // 10 * 480 // 1000000}Mb/sec "
    f"({packets // 10 * 480}bps) errors: {thread}"
    for thread, packets in enumerate((20000000, 21000000, 19000000))
)

MODERN = """Params: count 10000000  min_pkt_size: 60  max_pkt_size: 60
     frags: 0  delay: 0  clone_skb: 64  ifname: eth1@0
     flows: 0 flowlen: 0
     queue_map_min: 0  queue_map_max: 0
     dst_min: 198.18.0.42  dst_max:
     src_min:   src_max:
     src_mac: 02:00:00:00:00:01 dst_mac: 02:00:00:00:00:02
     udp_src_min: 9  udp_src_max: 109  udp_dst_min: 9  udp_dst_max: 9
     src_mac_count: 0  dst_mac_count: 0
     burst: 32
     Flags: UDPSRC_RND  NO_TIMESTAMP
Current:
     pkts-sofar: 10000000  errors: 0
     started: 1000000us  stopped: 3000000us idle: 20us
     seq_num: 10000001  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 0.0.0.0  cur_daddr: 198.18.0.42
     cur_udp_dst: 9  cur_udp_src: 87
     cur_queue_map: 0
     flows: 0
Result: OK: 2000000(c1999980+d20) usec, 10000000 (60byte,0frags)
  5000000pps 2400Mb/sec (2400000000bps) errors: 0
"""


class TestCases:
    @pytest.mark.parametrize("quoted", [True, False])
    def test_a_run_stopped_early(self, quoted: bool) -> None:
        text = data("cases/29-a.txt")
        if not quoted:
            text = "\n".join(line.removeprefix(">").lstrip() for line in text.splitlines())
        (record,) = read(pktgen, text).records
        assert record.status is Status.OK
        assert (record.device, record.packets, record.elapsed_s) == ("eth0", 8699475, 65.279796)
        assert (record.busy_s, record.idle_s) == (65.279796, 0)
        assert (record.frame_bytes, record.frags, record.frame_basis) == (60, 0, "without FCS")
        assert (record.packets_per_second, record.throughput_bps) == (133264, 63966720)
        assert record.errors == 0
        assert record.requested_packets == 10000000
        assert record.stopped_early is True
        assert "stopped early: 8699475 of 10000000 packets" in record.warnings
        assert record.basis == "generated"

    def test_one_packet_is_too_short_to_be_a_rate(self) -> None:
        (record,) = read(pktgen, data("cases/29-b.txt")).records
        assert (record.device, record.thread) == ("eth0", 0)
        assert (record.packets, record.elapsed_s) == (1, 19e-6)
        assert record.packets_per_second == 51762
        assert record.too_short is True
        assert record.status is Status.SUSPECT
        assert "1 packets in 19 us: too short to be a rate" in record.warnings

    def test_errors_and_a_rate_on_the_wire(self) -> None:
        first, change, second = read(pktgen, data("cases/29-c.txt")).records
        assert first.label == "Unpatched kernel"
        assert (first.packets_per_second, first.errors) == (2396594, 1417469)
        assert first.basis == "generated"
        assert first.frame_bytes == 60
        assert first.wire_packets_per_second == 256000
        assert first.wire_share_pct == pytest.approx(10.7, abs=0.05)
        assert second.packets_per_second == 2479970
        assert change.change_pct == pytest.approx(3.48, abs=0.01)
        assert any("no interval possible" in w for w in change.warnings)


class TestFormats:
    def test_a_modern_proc_file(self) -> None:
        (record,) = read(pktgen, MODERN).records
        assert record.status is Status.OK, record.warnings
        assert (record.device, record.thread, record.clone_skb) == ("eth1", 0, 64)
        assert record.flags == "UDPSRC_RND  NO_TIMESTAMP"
        assert record.stopped_early is False
        assert record.packets_per_second == 5e6

    def test_a_file_that_was_read_while_running_is_incomplete(self) -> None:
        text = MODERN.split("Result:", maxsplit=1)[0] + "Result: Starting\n"
        (record,) = read(pktgen, text).records
        assert record.status is Status.INCOMPLETE
        assert record.packets_per_second is None
        assert "no rate line; the last result is 'Starting'" in record.warnings

    def test_threads_are_added_with_errors(self) -> None:
        *runs, total = sorted(read(pktgen, THREADS).records, key=lambda r: r.kind == "threads")
        assert [r.thread for r in runs] == [0, 1, 2]
        assert total.packets_per_second == 6000000
        assert total.errors == 3
        assert total.threads == 3
        assert total.status is Status.OK

    def test_a_thread_without_a_result_gives_no_total(self) -> None:
        lines = THREADS.splitlines()
        del lines[4:6]
        records = read(pktgen, "\n".join([*lines[:4], "Params: count 0", *lines[4:]])).records
        total = next(r for r in records if r.kind == "threads")
        assert total.packets_per_second is None
        assert total.status is Status.INCOMPLETE
        assert "expected 3 results, got 2: no total" in total.warnings

    def test_result_device_of_the_single_thread_sample(self) -> None:
        text = "Running... ctrl^C to stop\nDone\nResult device: eth1@0\n" + MODERN
        (record,) = read(pktgen, text).records
        assert record.device == "eth1"
        assert record.requested_packets == 10000000

    def test_lines_broken_by_a_mail_program(self) -> None:
        text = data("cases/29-b.txt").replace("usec, 1 (", "usec, 1\n(").replace("24Mb", "\n24Mb")
        (record,) = read(pktgen, text).records
        assert (record.packets, record.packets_per_second) == (1, 51762)

    def test_a_rate_that_contradicts_its_packets_is_suspect(self) -> None:
        text = MODERN.replace("5000000pps", "7000000pps").replace("2400000000", "3360000000")
        (record,) = read(pktgen, text.replace("2400Mb", "3360Mb")).records
        assert record.status is Status.SUSPECT
        assert "10000000 packets in 2000000 us are not 7000000 pps" in record.warnings

    def test_a_line_that_does_not_match_is_a_problem(self) -> None:
        reading = read(pktgen, MODERN.replace("5000000pps", "5.000.000pps"))
        (problem,) = reading.problems
        assert problem.line == 21
        assert problem.wanted == '"Npps NMb/sec (Nbps) errors: N" with whole numbers'
        assert reading.records[0].packets_per_second is None

    def test_a_script_error(self) -> None:
        text = 'ERROR: Write error(1) occurred cmd: "start > /proc/net/pktgen/pgctrl"\n'
        (record,) = read(pktgen, text).records
        assert record.status is Status.FAILED
        assert "Write error(1) occurred" in record.failure.text

    def test_a_mix_of_sizes_has_no_one_size(self) -> None:
        (record,) = read(pktgen, data("cases/pktgen-imix.txt")).records
        assert record.status is Status.OK, record.warnings
        assert record.frame_bytes is None  # 859 is the size of the last packet
        assert record.imix_size_counts == ((256, 32082), (859, 99796), (205, 68122))
        assert record.mean_frame_bytes == pytest.approx(539.51383)
        assert (record.packets_per_second, record.throughput_bps) == (11115, 47977140)

    def test_a_mix_that_contradicts_its_rate_is_suspect(self) -> None:
        text = data("cases/pktgen-imix.txt").replace("859,99796", "60,99796")
        (record,) = read(pktgen, text).records
        assert record.status is Status.SUSPECT
        assert record.mean_frame_bytes is None
        assert "are 12523431 bit/s, printed is 47977140" in record.warnings[0]

    def test_a_mix_without_counts_has_no_size(self) -> None:
        lines = data("cases/pktgen-imix.txt").splitlines()
        (record,) = read(pktgen, "\n".join([*lines[:2], *lines[3:]])).records
        assert (record.frame_bytes, record.mean_frame_bytes) == (None, None)

    def test_packets_given_to_the_receive_path(self) -> None:
        (record,) = read(pktgen, data("cases/pktgen-receive.txt")).records
        assert (record.xmit_mode, record.burst) == ("netif_receive", 1)

    def test_errors_are_reported_with_the_result(self) -> None:
        (record,) = read(pktgen, MODERN.replace("errors: 0", "errors: 12")).records
        assert record.errors == 12
        assert record.warnings == ("12 errors: packets that the driver or the qdisc did not take",)

    @pytest.mark.parametrize(
        "text",
        [
            "ERROR: Unable to load module pktgen\n",
            "modprobe: FATAL: Module pktgen not found in directory /lib/modules/6.1.0\n",
        ],
    )
    def test_a_kernel_without_pktgen(self, text: str) -> None:
        (record,) = read(pktgen, text).records
        assert record.status is Status.FAILED
        assert record.failure.text == text.strip()

    def test_a_run_that_pktgen_refused(self) -> None:
        text = MODERN.split("Result:", maxsplit=1)[0] + "Result: ERROR: no such device\n"
        (record,) = read(pktgen, text).records
        assert record.status is Status.FAILED
        assert record.failure.text == "ERROR: no such device"

    def test_the_bit_rate_of_old_versions_counts_the_fcs(self) -> None:
        text = (
            "Result: OK: 13101142(c12220741+d880401) usec, 10000000 (60byte,0frags)\n"
            "  763292pps 390Mb/sec (390805504bps) errors: 0\n"
        )
        (record,) = read(pktgen, text).records
        assert record.status is Status.OK, record.warnings
        assert (record.frame_bytes, record.throughput_bps) == (60, 390805504)
        assert record.warnings == (
            "the bit rate counts 4 bytes of FCS a packet, as old versions do",
        )

    def test_result_and_rate_on_one_line(self) -> None:
        text = (
            "Result: OK: 26195512(c22146524+d4048988) usec, 10000000 (64byte) "
            "381745pps 195Mb/sec (195453440bps)  errors: 16384\n"
        )
        (record,) = read(pktgen, text).records
        assert record.status is Status.OK, record.warnings
        assert (record.packets, record.packets_per_second, record.errors) == (10**7, 381745, 16384)

    def test_results_under_headings_are_compared_without_an_interval(self) -> None:
        first, change, second = read(pktgen, data("cases/pktgen-patched.txt")).records
        assert (first.label, second.label) == ("vanilla", "patched")
        assert change.change_pct == pytest.approx(-8.96, abs=0.005)
        assert (change.change_from, change.label) == ("vanilla", "patched")
        assert change.status is Status.SUSPECT

    def test_prose_is_left_alone(self) -> None:
        assert not pktgen.recognise(document("pktgen gave 5000000 pps here, errors: 0\n"))


class TestMutations:
    @pytest.mark.parametrize(
        "text",
        [data("cases/29-a.txt"), data("cases/29-b.txt"), data("cases/29-c.txt"), MODERN, THREADS],
    )
    def test_right_or_flagged(self, text: str) -> None:
        kinds = [r.kind for r in pktgen.parse(document(text)).records]
        names = NAMES if "threads" not in kinds else ("frame_bytes", "elapsed_s")
        assert_right_or_flagged(pktgen, text, names)

    @given(st.text("Result: OK(c+d)usec,byteframgpsMb/1234567890\n", max_size=200))
    @settings(max_examples=150, deadline=None)
    def test_no_text_breaks_it(self, text: str) -> None:
        doc = document(text)
        pktgen.recognise(doc)
        pktgen.parse(doc)

    @given(
        packets=st.integers(1000, 10**12), us=st.integers(10000, 10**11), size=st.integers(60, 9000)
    )
    @settings(max_examples=80, deadline=None)
    def test_what_the_kernel_prints_is_sound(self, packets: int, us: int, size: int) -> None:
        pps = packets * 10**9 // (us * 1000 + 999)
        if pps == 0:
            return
        text = (
            f"Device: eth0@0\nResult: OK: {us}(c{us}+d0) usec, {packets} ({size}byte,0frags)\n"
            f"  {pps}pps {pps * 8 * size // 10**6}Mb/sec ({pps * 8 * size}bps) errors: 0\n"
        )
        (record,) = read(pktgen, text).records
        assert record.status is Status.OK, record.warnings
        assert record.packets_per_second == pps
