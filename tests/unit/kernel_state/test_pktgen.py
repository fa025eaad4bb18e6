"""/proc/net/pktgen: threads and a device's report."""

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.pktgen import parse_report, parse_thread

THREAD = """Running: eth1@0 eth2@0
Stopped: eth3@0
Result: OK: add_device=eth3@0
"""
TOLD = """Params: count 1000  min_pkt_size: 60  max_pkt_size: 60
     frags: 0  delay: 100000  clone_skb: 0  ifname: eth1@0
     flows: 0 flowlen: 0
     queue_map_min: 1  queue_map_max: 1
     dst_min: 198.19.0.1  dst_max: 198.19.0.1
     src_min: 198.18.0.1  src_max: 198.18.0.1
     src_mac: 02:00:00:00:00:01 dst_mac: 02:00:00:00:00:0A
     udp_src_min: 1024  udp_src_max: 1034  udp_dst_min: 9  udp_dst_max: 9
     src_mac_count: 0  dst_mac_count: 0
     burst: 8
     Flags: UDPCSUM  NO_TIMESTAMP
"""
RUN = """Current:
     pkts-sofar: 1000  errors: 3
     started: 5000000us  stopped: 5100020us idle: 90000us
     seq_num: 1001  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 198.18.0.1  cur_daddr: 198.19.0.1
     cur_udp_dst: 9  cur_udp_src: 1031
     cur_queue_map: 1
     flows: 0
Result: OK: 100020(c10020+d90000) usec, 1000 (60byte,0frags)
  9998pps 4Mb/sec (4799040bps) errors: 3
"""
FRESH = """Current:
     pkts-sofar: 0  errors: 0
     started: 0us  stopped: 0us idle: 0us
     seq_num: 0  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
Result: OK: flag=NO_TIMESTAMP
"""


def test_a_thread_says_what_sends():
    found = parse_thread(THREAD)
    assert found.running == ("eth1@0", "eth2@0")
    assert found.stopped == ("eth3@0",)
    assert parse_thread("Running: \nStopped: \nResult: NA\n").running == ()


def test_another_text_is_no_thread():
    with pytest.raises(StateError, match="found Running; wanted Running: … and Stopped: …"):
        parse_thread("Running: eth1\n")


def test_a_report_has_what_was_told_by_the_names_it_was_told_under():
    found = parse_report(TOLD + FRESH)
    assert found.settings == {
        "count": "1000",
        "pkt_size": "60",
        "max_pkt_size": "60",
        "delay": "100000",
        "clone_skb": "0",
        "burst": "8",
        "dst_min": "198.19.0.1",
        "dst_max": "198.19.0.1",
        "src_min": "198.18.0.1",
        "src_max": "198.18.0.1",
        "dst_mac": "02:00:00:00:00:0A",
        "udp_src_min": "1024",
        "udp_src_max": "1034",
        "udp_dst_min": "9",
        "udp_dst_max": "9",
        "queue_map_min": "1",
        "queue_map_max": "1",
    }
    assert found.flags == ("UDPCSUM", "NO_TIMESTAMP")
    assert not found.finished
    assert found.elapsed_us is None


def test_a_finished_run():
    found = parse_report(TOLD + RUN)
    assert found.finished
    assert (found.sofar, found.errors) == (1000, 3)
    assert (found.started_us, found.stopped_us) == (5000000, 5100020)
    assert (found.elapsed_us, found.idle_us) == (100020, 90000)


def test_what_is_not_printed_is_not_made_up():
    found = parse_report(FRESH)
    assert found.settings == {}
    assert found.flags == ()


def test_counters_that_contradict_the_result_are_an_error():
    with pytest.raises(StateError, match="found 999 packets in the result; wanted 1000, as sent"):
        parse_report(TOLD + RUN.replace("usec, 1000 (", "usec, 999 ("))


def test_another_text_is_no_report():
    with pytest.raises(StateError, match="found no sofar; wanted a device's report of pktgen"):
        parse_report("Params: count 1\n")
