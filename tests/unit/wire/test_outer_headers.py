"""Outer headers are told from frames that are written out by hand after the formats."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.crossover.lab.plugins.module_utils.capture import pcap
from collector.wire.outer_headers import UDP_PORTS, Outer, outer_of, read_outer

ETHERNET = b"\x02" * 12


def ipv4(protocol: int, payload: bytes, source: int = 1, destination: int = 2) -> bytes:
    """An IPv4 packet between 198.18.0.x, header checksum left out."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0)
    return head + bytes([198, 18, 0, source, 198, 18, 0, destination]) + payload


def ipv6(protocol: int, payload: bytes) -> bytes:
    head = struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64)
    return head + bytes(15) + b"\x01" + bytes(15) + b"\x02" + payload


def udp(port: int, body: bytes) -> bytes:
    return struct.pack("!HHHH", 40000, port, 8 + len(body), 0) + body


def tcp(port: int, sequence: int, body: bytes) -> bytes:
    return struct.pack("!HHIIBBHHH", 40000, port, sequence, 7, 0x50, 0x18, 65535, 0, 0) + body


FLOW = ipv4(6, bytes(20), 7, 8)
FRAME = ETHERNET + b"\x08\x00" + FLOW
GRE = struct.pack("!HHI", 0x2000, 0x0800, 42) + FLOW
CASES: list[tuple[str, bytes, str, int | None, int | None]] = [
    ("vxlan", udp(4789, struct.pack("!II", 0x08000000, 42 << 8) + FRAME), "vxlan", 42, 4789),
    ("gpe", udp(4790, struct.pack("!II", 0x0C000001, 42 << 8) + FLOW), "vxlan-gpe", 42, 4790),
    ("geneve", udp(6081, struct.pack("!HHII", 1 << 8, 0x6558, 42 << 8, 0) + FRAME),
     "geneve", 42, 6081),
    ("fou", udp(5555, FLOW), "fou", None, 5555),
    ("fou gre", udp(5555, GRE), "fou", None, 5555),
    ("gue", udp(6080, b"\0\x04\0\0" + FLOW), "gue", None, 6080),
    ("gue gre", udp(6080, b"\0\x2f\0\0" + GRE), "gue", None, 6080),
    ("gue 1", udp(6080, FLOW), "gue", None, 6080),
    ("l2tp", udp(1701, struct.pack("!III", 0x00030000, 42, 0) + FRAME), "l2tp", 42, 1701),
    ("stt", tcp(7471, (18 + len(FRAME)) << 16,
                struct.pack("!BBBBHHQH", 0, 0, 0, 0, 0, 0, 42, 0) + FRAME), "stt", 42, 7471),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "body", "kind", "number", "port"), CASES, ids=[c[0] for c in CASES]
)
@pytest.mark.parametrize("sixth", [False, True], ids=["ipv4", "ipv6"])
def test_a_tunnel_over_udp_or_segments_is_told(name, body, kind, number, port, sixth):
    protocol = 6 if name == "stt" else 17
    packet = ipv6(protocol, body) if sixth else ipv4(protocol, body)
    seen = outer(packet, sixth)
    assert (seen.type, seen.id, seen.port) == (kind, number, port)
    assert seen.inner is not None
    assert (seen.inner.source, seen.inner.destination) == ("198.18.0.7", "198.18.0.8")


def outer(packet: bytes, sixth: bool = False, ports: dict[int, str] | None = None) -> Outer:
    found = outer_of(ETHERNET + (b"\x86\xdd" if sixth else b"\x08\x00") + packet, 1500, ports or {})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("protocol", "payload", "kind", "number"),
    [
        (4, FLOW, "ipip", None),
        (41, ipv6(6, bytes(20)), "sit", None),
        (47, struct.pack("!HH", 0, 0x0800) + FLOW, "gre", None),
        (47, GRE, "gre", 42),
        (47, struct.pack("!HHIII", 0xB000, 0x0800, 0, 42, 1) + FLOW, "gre", 42),
        (47, struct.pack("!HHI", 0x2000, 0x6558, 42) + FRAME, "gretap", 42),
        (115, struct.pack("!II", 42, 0) + FRAME, "l2tp", 42),
    ],
)
def test_a_tunnel_directly_in_ip_is_told(protocol, payload, kind, number):
    seen = outer(ipv4(protocol, payload))
    assert (seen.type, seen.id, seen.port) == (kind, number, None)
    assert seen.inner is not None


def test_a_tunnel_encapsulation_limit_is_looked_through():
    option = bytes([4, 0, 4, 1, 4, 1, 0, 0])  # next header, length, limit 4, padding
    seen = outer(ipv6(60, option + FLOW), sixth=True)
    assert seen.type == "ipip"
    assert seen.inner is not None


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_wireguard_is_told_by_its_messages_and_shows_nothing_inside(kind):
    seen = outer(ipv4(17, udp(51820, bytes([kind, 0, 0, 0]) + bytes(44))))
    assert (seen.type, seen.inner) == ("wireguard", None)
    assert outer(ipv4(17, udp(51820, bytes([9, 0, 0, 0]) + bytes(44)))).type == "plain"


def test_esp_and_macsec_show_nothing_inside():
    assert outer(ipv4(50, bytes(40))).type == "esp"
    seen = outer_of(ETHERNET + b"\x88\xe5" + bytes(60), 74, {})
    assert seen is not None
    assert (seen.type, seen.source, seen.packet) == ("macsec", "", None)


def test_later_segments_of_stt_have_no_key():
    assert outer(ipv4(6, tcp(7471, (900 << 16) | 1448, bytes(100)))).id is None


def test_what_is_no_tunnel_is_plain():
    for packet in (
        FLOW,
        ipv4(17, udp(53, bytes(20))),
        ipv4(1, bytes(20)),
        ipv4(17, udp(4789, b"")),
    ):
        assert outer(packet).type == "plain"
    # No VNI flag; a control message of L2TP; PPTP.
    assert outer(ipv4(17, udp(4789, bytes(30)))).type == "plain"
    assert outer(ipv4(17, udp(1701, b"\xc8\x03" + bytes(30)))).type == "plain"
    assert outer(ipv4(47, b"\x20\x01\x88\x0b" + bytes(20))).type == "plain"


def test_a_declared_port_counts_before_the_usual_ones():
    body = struct.pack("!II", 0x08000000, 42 << 8) + FRAME
    assert outer(ipv4(17, udp(8472, body)), ports={8472: "vxlan"}).type == "vxlan"
    assert outer(ipv4(17, udp(8472, body))).type == "plain"


def test_other_frames_are_left_out_of_a_capture():
    arp = ETHERNET + b"\x08\x06" + bytes(28)
    data = pcap([(0.0, 60, arp), (0.1, 34, ETHERNET + b"\x08\x00" + ipv4(4, FLOW))])
    assert [one.as_dict()["type"] for one in read_outer(data, "c")] == ["ipip"]
    assert read_outer(data, "c")[0].as_dict()["inner"]["protocol"] == 6


@given(st.sampled_from([4, 6, 17, 41, 47, 50, 60, 115]), st.sampled_from([*UDP_PORTS, 7471, 53]),
       st.binary(max_size=80), st.booleans())  # fmt: skip
def test_no_bytes_make_it_fail(protocol: int, port: int, body: bytes, sixth: bool) -> None:
    payload: Any = struct.pack("!HH", 1, port) + body
    packet = ipv6(protocol, payload) if sixth else ipv4(protocol, payload)
    assert outer(packet, sixth).length == 1500
