"""What is around a packet on the wire: tunnels told by their outer headers.

Formats: VXLAN RFC 7348, 5; VXLAN-GPE draft-ietf-nvo3-vxlan-gpe, 3; Geneve RFC 8926, 3.4; GRE
RFC 2784 and RFC 2890; FOU (nothing between UDP and the packet); GUE draft-ietf-intarea-gue, 3.1;
L2TPv3 RFC 3931, 4.1; WireGuard's paper, 5.4; MACsec IEEE 802.1AE, 9; STT draft-davie-stt-08, 3.
UDP tunnels are told by their port, so the ports of a declaration count before the usual ones.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from collector.wire.packets import IPV4, IPV6, Packet, frame_packet, ip_packet, read_frames

PLAIN = "plain"
MACSEC_ETHERTYPE = b"\x88\xe5"
ETHERNET_IN_GRE = b"\x65\x58"  # Transparent Ethernet Bridging
# Destination ports that are as good as names; of ports that only this project uses, its own.
UDP_PORTS = {
    4789: "vxlan",
    4790: "vxlan-gpe",
    6081: "geneve",
    5555: "fou",
    6080: "gue",
    1701: "l2tp",
    51820: "wireguard",
}
STT_PORT = 7471
TCP, UDP, IPIP, SIT, GRE, ESP, DESTINATION_OPTIONS, L2TP = 6, 17, 4, 41, 47, 50, 60, 115
# Message types of WireGuard: two of the handshake, a cookie, data.
_WIREGUARD = {1: "initiation", 2: "response", 3: "cookie", 4: "data"}


@dataclass(frozen=True, slots=True)
class Outer:
    """The outermost tunnel of a frame, or ``plain``.

    ``id`` is the tunnel's identifier (VNI, session) or key, ``port`` the destination port;
    ``inner`` is the packet inside, None if it is secret, cut off or no IP packet. ``source`` and
    ``destination`` are the outer addresses, empty for MACsec.
    """

    type: str
    source: str
    destination: str
    length: int
    id: int | None = None
    port: int | None = None
    inner: Packet | None = None
    packet: Packet | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a playbook."""
        inner = None
        if self.inner is not None:
            inner = {
                "source": self.inner.source,
                "destination": self.inner.destination,
                "protocol": self.inner.protocol,
            }
        return {
            "type": self.type,
            "source": self.source,
            "destination": self.destination,
            "id": self.id,
            "port": self.port,
            "inner": inner,
        }


def read_outer(data: bytes, where: str, ports: Mapping[int, str] | None = None) -> list[Outer]:
    """The outermost header of every IP packet and MACsec frame of a capture. Raises InputError.

    ``ports`` names the types of UDP and STT ports that differ from the usual ones.
    """
    found = (outer_of(frame, length, ports or {}) for frame, length in read_frames(data, where))
    return [one for one in found if one is not None]


def outer_of(frame: bytes, length: int, ports: Mapping[int, str]) -> Outer | None:
    """The outermost header of a frame, None for one that is neither IP nor MACsec."""
    if frame[12:14] == MACSEC_ETHERTYPE:
        return Outer("macsec", "", "", length)
    packet = frame_packet(frame, length)
    if packet is None:
        return None
    protocol, payload = packet.protocol, packet.payload
    if protocol == DESTINATION_OPTIONS and len(payload) >= 8:  # of a tunnel encapsulation limit
        protocol, payload = payload[0], payload[(payload[1] + 1) * 8 :]
    kind, number, port, inner = _decode(protocol, payload, packet, {**UDP_PORTS, **ports})
    return Outer(
        kind, packet.source, packet.destination, length, number, port, inner, packet
    )  # fmt: skip


_Decoded = tuple[str, int | None, int | None, Packet | None]


def _decode(protocol: int, payload: bytes, packet: Packet, ports: Mapping[int, str]) -> _Decoded:
    plain: _Decoded = (PLAIN, None, None, packet)
    if packet.fragment:
        return plain
    if protocol in (IPIP, SIT):
        inner = ip_packet(IPV4 if protocol == IPIP else IPV6, payload, packet.length)
        return "ipip" if protocol == IPIP else "sit", None, None, inner
    if protocol == GRE:
        return _gre(payload, packet.length) or plain
    if protocol == L2TP and len(payload) >= 4:
        return "l2tp", _word(payload, 0), None, _ethernet(payload[8:], packet.length)
    if protocol == ESP:
        return "esp", None, None, None
    if protocol == TCP and len(payload) >= 20:
        port = struct.unpack_from("!H", payload, 2)[0]
        if port == STT_PORT or ports.get(port) == "stt":
            return _stt(payload, port, packet.length)
    if protocol == UDP and len(payload) >= 16:
        return _udp(payload, ports, packet.length) or plain
    return plain


def _word(data: bytes, at: int) -> int:
    return int(struct.unpack_from("!I", data, at)[0])


def _ethernet(frame: bytes, length: int) -> Packet | None:
    return frame_packet(frame, length) if len(frame) >= 14 else None


def _gre(data: bytes, length: int) -> _Decoded | None:
    """Base header, then 4 bytes each for checksum, key and sequence number as the flags say."""
    if len(data) < 4 or data[1] & 7:
        return None  # another version: PPTP
    flags, at, key = data[0], 4, None
    at += 4 if flags & 0x80 else 0
    if flags & 0x20:
        if len(data) < at + 4:
            return None
        key = _word(data, at)
        at += 4
    at += 4 if flags & 0x10 else 0
    if data[2:4] == ETHERNET_IN_GRE:
        return "gretap", key, None, _ethernet(data[at:], length)
    return "gre", key, None, ip_packet(data[2:4], data[at:], length)


def _udp(data: bytes, ports: Mapping[int, str], length: int) -> _Decoded | None:
    port = struct.unpack_from("!H", data, 2)[0]
    kind, body = ports.get(port), data[8:]
    if kind in ("vxlan", "vxlan-gpe"):
        inner = _ethernet(body[8:], length) if kind == "vxlan" else _either(body[8:], length)
        return (kind, _word(body, 4) >> 8, port, inner) if body[0] & 0x08 else None
    if kind == "geneve":
        inner = _ethernet(body[8 + (body[0] & 0x3F) * 4 :], length)
        return kind, _word(body, 4) >> 8, port, inner
    if kind == "fou":
        return kind, None, port, _carried(body, length)
    if kind == "gue":
        # Version 1 is FOU in disguise: an IP packet without header.
        if body[0] >> 6:
            return kind, None, port, _either(body, length)
        return kind, None, port, _inside(body[1], body[4 + (body[0] & 0x1F) * 4 :], length)
    if kind == "l2tp":
        # Version 3, data: no T bit.
        good = body[1] & 0x0F == 3 and not body[0] & 0x80
        return (kind, _word(body, 4), port, _ethernet(body[12:], length)) if good else None
    if kind == "wireguard":
        return (kind, None, port, None) if body[0] in _WIREGUARD and not any(body[1:4]) else None
    return None


def _either(data: bytes, length: int) -> Packet | None:
    """An IP packet of the version that its first four bits say."""
    version = data[0] >> 4 if data else 0
    return ip_packet({4: IPV4, 6: IPV6}.get(version, b""), data, length)


def _carried(data: bytes, length: int) -> Packet | None:
    """What a FOU port passes on: IP, or GRE, which begins with fewer bits set than a version."""
    if data and data[0] >> 4 in (4, 6):
        return _either(data, length)
    return _inside(GRE, data, length)


def _inside(protocol: int, data: bytes, length: int) -> Packet | None:
    if protocol in (IPIP, SIT):
        return ip_packet(IPV4 if protocol == IPIP else IPV6, data, length)
    if protocol == GRE:
        found = _gre(data, length)
        return found[3] if found else None
    return None


def _stt(data: bytes, port: int, length: int) -> _Decoded:
    """The header comes with the first segment of a frame, whose offset, the lower half of the
    sequence number, is 0."""
    head = (data[12] >> 4) * 4
    body = data[head:]
    if _word(data, 4) & 0xFFFF or len(body) < 18:
        return "stt", None, port, None
    key = int(struct.unpack_from("!Q", body, 8)[0])
    return "stt", key, port, _ethernet(body[18:], length)
