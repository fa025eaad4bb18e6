"""A trial as it is declared, and the lines that make pktgen do it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils import pktgen_trial as trials
from ansible_collections.crossover.lab.plugins.module_utils.host.errors import HostError

LEFT = {
    "device": "eth1",
    "mac_destination": "02:00:00:00:01:0A",
    "ipv4_source": "198.18.0.1",
    "ipv4_destination": "198.19.0.1",
    "receive_device": "eth2",
}
RIGHT = {
    "device": "eth2",
    "mac_destination": "02:00:00:00:02:0A",
    "ipv4_source": "198.19.0.1",
    "ipv4_destination": "198.18.0.1",
    "receive_device": "eth1",
}
DECLARED = {
    "ports": [LEFT],
    "frame_bytes": 64,
    "rate_fps": 1000.0,
    "duration_s": 2.0,
    "frames": None,
    "flows": 1,
    "queues": 1,
    "cpus": [],
    "drain_s": 2.0,
    "udp_port": 9,
    "udp_source_port": 1024,
    "udp_checksum": False,
    "clone": 0,
    "burst": 1,
}


def read(**changed):
    return trials.read_trial({**DECLARED, **changed})


def test_the_lines_of_one_flow_at_a_rate():
    trial = read()
    (sender,) = trials.senders(trial, [0])
    assert trials.lines(sender, trial) == (
        ("kpktgend_0", "add_device eth1@0"),
        ("eth1@0", "count 2000"),
        ("eth1@0", "pkt_size 60"),
        ("eth1@0", "delay 1000000"),
        ("eth1@0", "clone_skb 0"),
        ("eth1@0", "dst_mac 02:00:00:00:01:0a"),
        ("eth1@0", "dst_min 198.19.0.1"),
        ("eth1@0", "dst_max 198.19.0.1"),
        ("eth1@0", "src_min 198.18.0.1"),
        ("eth1@0", "src_max 198.18.0.1"),
        ("eth1@0", "udp_src_min 1024"),
        ("eth1@0", "udp_src_max 1024"),
        ("eth1@0", "udp_dst_min 9"),
        ("eth1@0", "udp_dst_max 9"),
        ("eth1@0", "queue_map_min 0"),
        ("eth1@0", "queue_map_max 0"),
        ("eth1@0", "flag NO_TIMESTAMP"),
    )


@pytest.mark.parametrize("frame_bytes", [64, 512, 1518, 9018])
def test_pktgen_does_not_count_the_frame_check_sequence(frame_bytes):
    stream = read(frame_bytes=frame_bytes).ports[0].stream
    assert stream.packet_bytes == frame_bytes - 4
    assert stream.ip_bytes == frame_bytes - 18


def test_at_full_speed_there_is_neither_a_delay_nor_an_end():
    (sender,) = trials.senders(read(rate_fps=None), [0, 1])
    assert (sender.delay_ns, sender.count) == (0, 0)


def test_a_burst_of_so_many_frames_ends_by_itself():
    trial = read(rate_fps=None, frames=5000)
    assert [sender.count for sender in trials.senders(trial, [0])] == [5000]


def test_two_directions_on_one_thread_take_turns_at_full_speed():
    both = read(ports=[LEFT, RIGHT], rate_fps=None)
    assert [sender.delay_ns for sender in trials.senders(both, [0])] == [500, 500]
    assert [sender.delay_ns for sender in trials.senders(both, [0, 1])] == [0, 0]


def test_queues_share_the_rate_the_flows_and_the_frames_on_a_cpu_each():
    trial = read(ports=[LEFT, RIGHT], flows=5, queues=2, frames=2001)
    made = trials.senders(trial, [0, 1, 2, 3])
    assert [(s.name, s.cpu, s.first_port, s.flows, s.count) for s in made] == [
        ("eth1@0", 0, 1024, 3, 1001),
        ("eth2@0", 1, 1024, 3, 1001),
        ("eth1@1", 2, 1027, 2, 1000),
        ("eth2@1", 3, 1027, 2, 1000),
    ]
    assert {sender.delay_ns for sender in made} == {2_000_000}
    told = trials.settings(made[0], trial)
    assert (told["udp_src_min"], told["udp_src_max"]) == ("1024", "1027")


def test_a_burst_at_once_waits_as_much_longer():
    trial = read(burst=8)
    (sender,) = trials.senders(trial, [0])
    assert sender.delay_ns == 8_000_000
    assert trials.configured_fps(trial) == pytest.approx(1000)
    assert trials.settings(sender, trial)["burst"] == "8"


def test_the_configured_rate_is_what_whole_nanoseconds_allow():
    assert trials.configured_fps(read(rate_fps=1_488_095.0)) == pytest.approx(1e9 / 672)
    assert trials.configured_fps(read(rate_fps=None)) is None


def test_declared_cpus_are_used_in_turn():
    made = trials.senders(read(ports=[LEFT, RIGHT], cpus=[3]), [0, 1, 2, 3])
    assert [sender.cpu for sender in made] == [3, 3]
    with pytest.raises(HostError, match="cpus: found 4; wanted CPUs with a pktgen thread: 0, 1"):
        trials.senders(read(cpus=[4]), [0, 1])


def test_a_checksum_is_a_flag():
    assert trials.flags(read(udp_checksum=True)) == ("NO_TIMESTAMP", "UDPCSUM")


def test_what_a_device_did_not_take_is_named():
    trial = read()
    (sender,) = trials.senders(trial, [0])
    taken = {**trials.settings(sender, trial), "dst_mac": "02:00:00:00:01:0A"}
    assert trials.not_held(sender, trial, taken, ["NO_TIMESTAMP"]) == []
    del taken["pkt_size"]
    assert trials.not_held(sender, trial, {**taken, "delay": "0"}, []) == [
        "pkt_size wanted 60, is None",
        "delay wanted 1000000, is 0",
        "flag NO_TIMESTAMP is not set",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"frame_bytes": 63}, r"ports\[0\].frame_bytes: found 63; wanted 64 to 65535"),
        ({"ports": []}, "ports: found 0; wanted one a direction, so one or two"),
        ({"ports": [LEFT, LEFT]}, "ports: found eth1 twice; wanted a device of its own each"),
        (
            {"ports": [LEFT, {**RIGHT, "receive_device": "eth2"}]},
            "ports: found one receive_device twice",
        ),
        (
            {"ports": [{**LEFT, "mac_destination": "ff:ff:ff:ff:ff:ff"}]},
            r"ports\[0\].mac_destination: found 'ff:ff:ff:ff:ff:ff'; wanted the address of one",
        ),
        (
            {"ports": [{**LEFT, "ipv4_source": "2001:db8::1"}]},
            r"ports\[0\].ipv4_source: found '2001:db8::1'; wanted an IPv4 address",
        ),
        (
            {"ports": [{**LEFT, "device": "../eth1"}]},
            r"ports\[0\].device: found '../eth1'; wanted the name of a network device",
        ),
        ({"rate_fps": 0.0}, "rate_fps: found 0.0; wanted frames a second above 0, or none"),
        ({"duration_s": 0.0}, "duration_s: found 0; wanted above 0 and at most a day"),
        ({"drain_s": -1.0}, "drain_s: found -1; wanted 0 to 600"),
        ({"frames": 0}, "frames: found 0; wanted 1 to 9999999999"),
        ({"flows": 64512}, r"ports\[0\].flows: found 64512; wanted 1 to 64511"),
        ({"queues": 2}, "flows: found 1 for 2 queues; wanted at least one flow a queue"),
        ({"flows": 2, "clone": 9}, "clone: found 9 with 2 flows"),
        ({"burst": 0}, "burst: found 0; wanted 1 to 65535"),
        ({"udp_port": 0}, r"ports\[0\].udp_port: found 0; wanted 1 to 65535"),
    ],
)
def test_what_cannot_be_is_told_with_its_key(changed, message):
    with pytest.raises(HostError, match=message):
        read(**changed)


def test_a_rate_that_pktgen_cannot_express_is_told():
    with pytest.raises(HostError, match=r"rate_fps: found 0\.01 over 1 queues, 100000000000 ns"):
        trials.senders(read(rate_fps=0.01), [0])
    # Exactly the number of nanoseconds that the kernel takes for something else.
    with pytest.raises(HostError, match="2147483647 ns between frames"):
        trials.senders(read(rate_fps=1e9 / 0x7FFFFFFF), [0])


def test_fewer_frames_than_queues_cannot_be_shared():
    with pytest.raises(HostError, match="queues: found 4 for 3 frames"):
        trials.senders(read(queues=4, flows=4, frames=3), [0])


@given(total=st.integers(1, 10**9), parts=st.integers(1, 64))
def test_shares_add_up_and_differ_by_one_at_most(total, parts):
    found = trials.share(total, parts)
    assert sum(found) == total
    assert max(found) - min(found) <= 1


@given(
    flows=st.integers(1, 500),
    queues=st.integers(1, 8),
    rate=st.floats(1.0, 2e7),
)
def test_queues_together_have_every_flow_once_and_the_whole_rate(flows, queues, rate):
    if flows < queues:
        return
    trial = read(flows=flows, queues=queues, rate_fps=rate, duration_s=10.0)
    made = trials.senders(trial, [0, 1])
    ports = [port for s in made for port in range(s.first_port, s.first_port + s.flows)]
    assert sorted(ports) == list(range(1024, 1024 + flows))
    assert sum(sender.count for sender in made) == round(rate * 10)
    together = sum(1e9 / sender.delay_ns for sender in made)
    assert together == pytest.approx(trials.configured_fps(trial))
    # Half a nanosecond off at most.
    assert together == pytest.approx(rate, rel=0.5 * rate / queues / 1e9 + 1e-9)
