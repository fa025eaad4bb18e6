"""STT between the lab's guests: the module against itself, tshark and an end in user space, then
against loss and a sender of nonsense."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab_plays import ROOT, Lab
from stt_links import (
    ENDS,
    ENDS6,
    INNER,
    MAC,
    TROUBLE,
    add_link,
    counters,
    links,
    process,
    wait_until_empty,
)

from collector.wire.packets import read_frames
from collector.wire.stt import PARTIAL, Header, read_stt, segment_of

# Slow: the image with the module is baked and booted beside the usual one.
pytestmark = [pytest.mark.lab, pytest.mark.slow]

GUEST = "/root/stt-test"
PYTHON = f"env -C {GUEST} PYTHONPATH=. python3 stt_guest.py"


@pytest.fixture(scope="module")
def guests(stt_lab: Lab) -> Iterator[Lab]:
    """The lab with netserver and the codec on its guests; no kernel complaint at its end."""
    files = {
        "stt_guest.py": ROOT / "tests/integration/stt_guest.py",
        "collector/wire/stt.py": ROOT / "collector/wire/stt.py",
        "collector/errors.py": ROOT / "collector/errors.py",
    }
    for host in ENDS:
        stt_lab.ssh(
            host,
            f"mkdir -p {GUEST}/collector/wire;"
            f" touch {GUEST}/collector/__init__.py {GUEST}/collector/wire/__init__.py",
        )
        for name, path in files.items():
            subprocess.run(
                stt_lab.ssh_argv(host, f"cat > {GUEST}/{name}"), input=path.read_bytes(), check=True
            )
        stt_lab.ssh(host, "dmesg -C")
    stt_lab.ssh("server", "ss -ltn | grep -q :12865 || netserver")
    yield stt_lab
    for host in ENDS:
        stt_lab.ssh(host, f"rm -r {GUEST}; ! lsmod | grep -q ^stt || rmmod stt")
        assert not TROUBLE.search(stt_lab.ssh(host, "dmesg"))
    stt_lab.ssh("server", "pkill -x netserver")


def stream(guests: Lab, seconds: int = 3, test: str = "TCP_STREAM", more: str = "") -> float:
    """What netperf measures through the tunnel; fails the test when it measures nothing."""
    text = guests.ssh(
        "client", f"netperf -H {INNER['server']} -t {test} -l {seconds} -P0 -v0 {more}", 90
    )
    assert float(text.split()[-1]) > 0
    return float(text.split()[-1])


@contextmanager
def without_gro(guests: Lab, host: str) -> Iterator[None]:
    guests.ssh(host, "ethtool -K eth1 gro off")
    try:
        yield
    finally:
        guests.ssh(host, "ethtool -K eth1 gro on")


def tshark(path: Path) -> Any:
    """Every packet of a capture as Wireshark's dissector reads it. It must be told that a segment
    that looks like TCP may be STT."""
    argv = ["tshark", "-r", str(path), "-o", "ip.try_heuristic_first:TRUE"]
    argv += ["--enable-heuristic", "stt_ip", "-T", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_the_command_of_the_thread_makes_a_link_and_is_read_back(guests: Lab) -> None:
    guests.ssh("client", "ip link add stt1 type stt key 1 remote 192.0.2.2")
    (shown,) = json.loads(guests.ssh("client", "ip -d -j link show stt1"))
    text = guests.ssh("client", "ip -d link show stt1")
    guests.ssh("client", "ip link delete stt1")
    assert shown["linkinfo"] == {
        "info_kind": "stt",
        "info_data": {"key": 1, "remote": "192.0.2.2", "port": 7471, "ttl": 0, "tos": 0},
    }
    assert "stt key 1 remote 192.0.2.2 port 7471 ttl auto tos 0" in text


def test_every_option_is_read_back(guests: Lab) -> None:
    command = (
        "ip link add stt1 mtu 9000 type stt key 0xffffffffffffffff remote 2001:db8:18::2"
        " local 2001:db8:18::1 port 7472 dev eth1 ttl 9 tos inherit"
    )
    guests.ssh("client", f"{command} && ip link set stt1 type stt ttl 10")
    (shown,) = json.loads(guests.ssh("client", "ip -d -j link show stt1"))
    guests.ssh("client", "ip link delete stt1")
    assert shown["mtu"] == 9000
    assert shown["linkinfo"]["info_data"] == {
        "key": 2**64 - 1, "remote": "2001:db8:18::2", "local": "2001:db8:18::1", "port": 7472,
        "link": "eth1", "ttl": 10, "tos": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("key 1", "remote: a unicast address is needed"),
        ("remote 224.0.0.1", "remote: a unicast address is needed"),
        ("remote 192.0.2.2 local 2001:db8::1", "local: a unicast address of remote's family"),
        ("remote fe80::1", "dev: needed with a link-local remote"),
        ("remote 192.0.2", "remote: got \"192.0.2\", wanted an IPv4 or IPv6 address"),
        ("remote 192.0.2.2 port 0", "port: got \"0\", wanted a number from 1 to 65535"),
        ("remote 192.0.2.2 key x", "key: got \"x\", wanted a number from 0 to 1844674407370955161"),
        ("remote 192.0.2.2 vni 4", "\"vni\" is none of its options"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(guests: Lab, options: str, told: str) -> None:
    text = guests.ssh("client", f"! ip link add stt1 type stt {options} 2>&1")
    assert told in text


@pytest.mark.parametrize(
    ("ends", "mtu"), [(ENDS, 1428), (ENDS6, 1408)], ids=["over IPv4", "over IPv6"]
)
def test_traffic_passes_with_large_frames_both_ways(
    guests: Lab, ends: dict[str, tuple[str, str]], mtu: int
) -> None:
    with links(guests, ends):
        (shown,) = json.loads(guests.ssh("client", "ip -j link show stt1"))
        assert shown["mtu"] == mtu
        guests.ssh("client", f"ping -c2 -i0.2 -W5 {INNER['server']}")
        guests.ssh("client", f"ping -c2 -i0.2 -W5 -s 60000 {INNER['server']}")
        stream(guests)
        stream(guests, test="TCP_MAERTS")
        stream(guests, test="UDP_STREAM", more="-- -R1 -m 1300")
        sent, received = counters(guests, "client"), counters(guests, "server")
    assert sent["tx_large_frames"] > 10
    assert received["rx_large_frames"] > 10
    assert received["rx_checksum_partial"] > 10
    assert sent["tx_segments"] > sent["tx_packets"]
    for bad in ("rx_errors", "netns_malformed", "netns_bad_checksum", "netns_no_device"):
        assert (sent[bad], received[bad]) == (0, 0), bad


def test_a_jumbo_mtu_works_on_a_small_path(guests: Lab) -> None:
    with links(guests):
        for host in ENDS:
            guests.ssh(host, "ip link set stt1 mtu 65463")
        guests.ssh("client", f"ping -c2 -i0.2 -W5 -M do -s 65000 {INNER['server']}")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed here")
def test_tshark_and_the_codec_read_what_the_module_sends(guests: Lab, tmp_path: Path) -> None:
    with links(guests):
        # Of 96 bytes of data in a frame of its own, then a stream with large frames.
        capture = "timeout 20 tcpdump -i eth1 -w /root/stt.pcap -U -s0 -c 400 tcp port 7471"
        guests.ssh(
            "server",
            f"ethtool -K eth1 gro off; {capture} >/dev/null 2>&1 & sleep 2; exit 0",
        )
        guests.ssh("client", f"ping -c2 -i0.2 -W5 -s 96 {INNER['server']}")
        stream(guests, 3)
        time.sleep(1)
        guests.ssh("server", "ethtool -K eth1 gro on; pkill -x tcpdump || true")
    done = subprocess.run(
        guests.ssh_argv("server", "cat /root/stt.pcap && rm /root/stt.pcap"),
        capture_output=True,
        check=True,
    )
    path = tmp_path / "stt.pcap"
    path.write_bytes(done.stdout)
    frames = [frame for frame, _ in read_frames(done.stdout, "capture")]
    incoming = [frame for frame in frames if frame[26:30] == bytes((198, 18, 0, 1))]
    whole, waiting = read_stt(incoming, "capture")
    assert waiting <= 1  # the capture may end inside a frame
    assert all(segment.checksum for frame in whole for segment in frame.segments)
    assert {frame.header.key for frame in whole} == {1}
    large = [frame for frame in whole if frame.header.mss]
    assert large
    assert {frame.header.mss for frame in large} == {1376}
    assert all(frame.header.flags & PARTIAL for frame in large)
    assert max(len(frame.segments) for frame in whole) > 4

    dissected = tshark(path)
    layers = [packet["_source"]["layers"] for packet in dissected]
    headers: dict[Any, Header] = {}
    for frame, layer in zip(frames, layers, strict=True):
        segment = segment_of(frame)
        assert segment
        told = layer["stt"]
        assert (segment.total, segment.offset) == (
            int(told["stt.pkt_len"]),
            int(told["stt.seg_off"]),
        )
        assert segment.packet_id == int(told["stt.pkt_id"], 16)
        if segment.offset == 0:
            headers[segment.flow] = Header.unpack(segment.payload)
        if "stt.version" in told:  # the dissector shows the header with a frame's last segment
            header = headers[segment.flow]
            assert header.key == int(told["stt.context_id"], 16)
            assert header.flags == int(told["stt.flags"], 16)
            assert header.l4_offset == int(told["stt.l4offset"])
            assert header.mss == int(told["stt.mss"])
    assert {"icmp", "tcp"} <= {name for layer in layers for name in layer}


def test_links_are_told_apart_by_key_port_and_address(guests: Lab) -> None:
    try:
        for number, options in enumerate(("key 1", "key 2", "key 1 port 7472"), 1):
            for host, (local, remote) in ENDS.items():
                end = INNER[host][-1]
                guests.ssh(
                    host,
                    f"ip link add stt{number} type stt {options} remote {remote} local {local}"
                    f" && ip address add 10.9.{number}.{end}/24 dev stt{number}"
                    f" && ip link set stt{number} up",
                )
        told = guests.ssh("client", f"! ip link add stt4 type stt key 2 remote {ENDS['client'][1]}"
                          f" local {ENDS['client'][0]} 2>&1")  # fmt: skip
        assert "exists" in told
        for number in (1, 2, 3):
            guests.ssh("client", f"ping -c1 -W5 10.9.{number}.2")
        # Where nobody has the key, nobody gets it.
        guests.ssh("server", "ip link delete stt2")
        guests.ssh("client", "! ping -c1 -W1 10.9.2.2")
        assert counters(guests, "server")["netns_no_device"] > 0
    finally:
        for host in ENDS:
            guests.ssh(host, "for n in 1 2 3; do ip link delete stt$n 2>&- || true; done")


def test_a_link_serves_another_namespace_and_ends_with_its_own(guests: Lab) -> None:
    with links(guests):
        guests.ssh(
            "client",
            "ip netns add inside && ip link set stt1 netns inside"
            f" && ip -n inside address add {INNER['client']}/24 dev stt1"
            " && ip -n inside link set stt1 up",
        )
        guests.ssh("client", f"ip netns exec inside ping -c2 -i0.2 -W5 {INNER['server']}")
        guests.ssh("client", "ip netns delete inside; sleep 1; ! ip link show stt1 2>&-")


def test_a_vlan_travels_in_the_header(guests: Lab) -> None:
    with links(guests):
        for host in ENDS:
            end = INNER[host][-1]
            guests.ssh(
                host,
                "ip link add link stt1 name stt1.5 type vlan id 5 egress-qos-map 0:3"
                f" && ip address add 10.9.5.{end}/24 dev stt1.5 && ip link set stt1.5 up",
            )
        guests.ssh("client", "ping -c2 -i0.2 -W5 10.9.5.2")
        text = guests.ssh("client", "netperf -H 10.9.5.2 -t TCP_STREAM -l 2 -P0 -v0", 60)
        assert float(text.split()[-1]) > 0


def test_an_icmp_error_makes_segments_fit_the_path(guests: Lab) -> None:
    with links(guests):
        guests.ssh("client", f"ping -c1 -W5 {INNER['server']}")
        guests.ssh("server", f"{PYTHON} shrink {ENDS['server'][0]} {ENDS['server'][1]} 1000")
        route = guests.ssh("client", f"sleep 0.5; ip route get {ENDS['client'][1]}")
        before = counters(guests, "client")
        guests.ssh("client", f"ping -c1 -W5 -s 1300 {INNER['server']}")
        after = counters(guests, "client")
        guests.ssh("client", "ip route flush cache")
    assert "mtu 1000" in route
    assert before["icmp_path_mtu"] == 1
    segments = after["tx_segments"] - before["tx_segments"]
    frames = after["tx_packets"] - before["tx_packets"]
    # IPv6 speaks up on a new link by itself, in frames of one segment; the request has two.
    assert segments - frames == 1


def test_a_frame_that_is_only_said_to_be_verified_arrives(guests: Lab) -> None:
    local, remote = ENDS["server"]
    with links(guests):
        before = counters(guests, "client")
        guests.ssh("server", f"{PYTHON} verified {local} {remote} 1 {MAC['client']}")
        guests.ssh("client", "sleep 0.5")
        after = counters(guests, "client")
    assert after["rx_packets"] - before["rx_packets"] >= 2
    assert after["rx_checksum_verified"] - before["rx_checksum_verified"] == 1  # ICMP has no say
    assert after["rx_errors"] == 0


def test_an_end_in_user_space_talks_to_the_module(guests: Lab) -> None:
    local, remote = ENDS["server"]
    # The guests make no device nodes for modules that are not loaded.
    guests.ssh("server", "modprobe tun")
    add_link(guests, "client")
    try:
        with (
            without_gro(guests, "server"),
            process(guests, "server", f"{PYTHON} endpoint eth1 {local} {remote} 1") as end,
        ):
            assert end.stdout
            first = end.stdout.readline()
            assert first == "ready\n", first + end.communicate("end\n", timeout=60)[0]
            guests.ssh(
                "server",
                f"ip link set sttu address {MAC['server']} mtu 1428 && ip link set sttu up"
                f" && ip address add {INNER['server']}/24 dev sttu",
            )
            guests.ssh("client", f"ping -c3 -i0.2 -W5 {INNER['server']}")
            guests.ssh("client", f"ping -c2 -i0.2 -W5 -s 20000 {INNER['server']}")
            stream(guests, 3)
            stream(guests, 3, "TCP_MAERTS")
            found = counters(guests, "client")
        assert found["tx_large_frames"] > 0
        assert found["rx_large_frames"] > 0
        assert found["rx_errors"] == 0
        assert found["netns_malformed"] == 0
        assert found["netns_bad_checksum"] == 0
    finally:
        guests.ssh("client", "ip link delete stt1")


def test_lost_segments_cost_frames_and_no_memory(guests: Lab) -> None:
    rule = "tcp dport 7471 numgen random mod 100 == 0 drop"
    with links(guests), without_gro(guests, "server"):
        guests.ssh(
            "server",
            "nft add table inet stt_test && nft add chain inet stt_test in"
            " '{ type filter hook input priority -10; }'"
            f" && nft add rule inet stt_test in {rule}",
        )
        try:
            stream(guests, 5)
            guests.ssh("client", f"ping -q -c50 -i0.05 -W2 -s 8000 {INNER['server']} || true", 60)
        finally:
            guests.ssh("server", "nft delete table inet stt_test")
        found = wait_until_empty(guests, "server")
        assert found["netns_reassembled"] > 0
        assert found["netns_reassembly_timeout"] > 0
        assert found["netns_reassembly_bytes"] == 0
        guests.ssh("client", f"ping -c2 -i0.2 -W5 {INNER['server']}")


@pytest.mark.slow
@pytest.mark.parametrize("gro", ["on", "off"])
def test_nonsense_leaves_the_kernel_as_it_was(guests: Lab, gro: str) -> None:
    local, remote = ENDS["server"]
    with links(guests):
        guests.ssh("server", "ip link delete stt1")  # so that no answers of TCP go out
        guests.ssh("client", f"ethtool -K eth1 gro {gro}")
        guests.ssh("client", "echo 300000 > /sys/module/stt/parameters/reasm_memory")
        try:
            text = guests.ssh(
                "server", f"{PYTHON} fuzz {local} {remote} 1 4000 {len(gro)} {MAC['client']}", 400
            )
            assert int(text.split()[0]) >= 4000
            during = counters(guests, "client")
            after = wait_until_empty(guests, "client")
        finally:
            guests.ssh("client", "ethtool -K eth1 gro on")
            guests.ssh("client", "echo 8388608 > /sys/module/stt/parameters/reasm_memory")
        assert during["netns_reassembly_bytes"] <= 300000
        assert after["netns_reassembly_bytes"] == 0
        for name in ("netns_malformed", "netns_bad_checksum", "netns_length_mismatch",
                     "netns_duplicate", "netns_reassembly_timeout", "netns_unknown_version",
                     "netns_no_device", "rx_bad_offload_fields", "rx_packets"):  # fmt: skip
            assert after[name] > 0, (name, after)
        add_link(guests, "server")
        guests.ssh("client", f"ping -c2 -i0.2 -W5 {INNER['server']}")
        assert not TROUBLE.search(guests.ssh("client", "dmesg"))
        # The cache of incomplete frames complains, when it is taken away, if one is left.
        guests.ssh("client", "ip link delete stt1 && rmmod stt")
        assert not TROUBLE.search(guests.ssh("client", "dmesg"))


@pytest.mark.slow
def test_the_module_comes_and_goes_under_traffic(guests: Lab) -> None:
    netperf = f"netperf -H {INNER['server']} -t TCP_STREAM -l 60 -P0 -v0"
    for host in ("client", "server"):
        with links(guests):
            with process(guests, "client", f"timeout 90 {netperf}"):
                time.sleep(2)
                for _ in range(3):
                    guests.ssh(host, "ip link delete stt1 && rmmod stt && ! lsmod | grep -q ^stt")
                    add_link(guests, host)
                    time.sleep(1)
                    guests.ssh("client", f"ping -c1 -W5 {INNER['server']}")
            guests.ssh("client", "pkill -x netperf || true")
        for name in ENDS:
            assert not TROUBLE.search(guests.ssh(name, "dmesg"))
