"""Reading the evidence captures: pcap files of Ethernet frames, and what their IP headers say."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from collector.errors import InputError

_MAGIC = 0xA1B2C3D4
_ETHERNET = 1
# EtherTypes.
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
CIPSO = 134


@dataclass(frozen=True, slots=True)
class Packet:
    """One IP packet of a capture. ``options`` are the raw IPv4 options (empty for IPv6);
    ``protocol`` is the IP protocol or next header; ``length`` its bytes on the wire, Ethernet
    header included; ``ports`` are None unless TCP or UDP; ``fragment`` tells whether it is a
    part of a larger datagram."""

    source: str
    destination: str
    protocol: int
    options: bytes
    length: int
    ports: tuple[int, int] | None
    fragment: bool
    payload: bytes


def read_pcap(data: bytes, where: str) -> list[Packet]:
    """The IP packets of a capture file (other frames are left out). Raises InputError."""
    found = (frame_packet(frame, length) for frame, length in read_frames(data, where))
    return [packet for packet in found if packet is not None]


def read_frames(data: bytes, where: str) -> Iterator[tuple[bytes, int]]:
    """``(first bytes, length on the wire)`` of each frame of a capture. Raises InputError."""
    if len(data) < 24 or struct.unpack_from("<I", data)[0] != _MAGIC:
        raise InputError(where, "no pcap header", "a pcap file (microseconds, little endian)")
    if struct.unpack_from("<I", data, 20)[0] != _ETHERNET:
        raise InputError(where, "another link type", "a capture of Ethernet frames")
    at = 24
    while at < len(data):
        if len(data) < at + 16:
            raise InputError(where, "a cut-off packet header", "whole packets")
        captured, length = struct.unpack_from("<II", data, at + 8)
        frame = data[at + 16 : at + 16 + captured]
        if len(frame) < captured:
            raise InputError(where, "a cut-off packet", "whole packets")
        at += 16 + captured
        yield frame, length


def frame_packet(frame: bytes, length: int) -> Packet | None:
    """The IP packet in an Ethernet frame, None for another frame."""
    return ip_packet(frame[12:14], frame[14:], length)


def ip_packet(kind: bytes, ip: bytes, length: int) -> Packet | None:
    """An IP packet; ``kind`` is the EtherType before it. None if it is none, or cut off."""
    if kind == IPV4 and len(ip) >= 20:
        header = (ip[0] & 15) * 4
        protocol, options = ip[9], ip[20:header]
        source, destination = ip[12:16], ip[16:20]
        fragment = bool(struct.unpack_from("!H", ip, 6)[0] & 0x3FFF)
    elif kind == IPV6 and len(ip) >= 40:
        header, protocol, options, fragment = 40, ip[6], b"", ip[6] == 44
        source, destination = ip[8:24], ip[24:40]
    else:
        return None
    payload = ip[header:]
    ports = None
    if protocol in (6, 17) and len(payload) >= 4 and not fragment:
        ports = struct.unpack_from("!HH", payload)
    return Packet(
        source=str(ipaddress.ip_address(source)),
        destination=str(ipaddress.ip_address(destination)),
        protocol=protocol,
        options=options,
        length=length,
        ports=ports,
        fragment=fragment,
        payload=payload,
    )


def ip_options(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """``(type, whole option)`` for each option of an IPv4 header (RFC 791, 3.1); padding is left
    out, and a malformed rest ends the list."""
    at = 0
    while at < len(raw):
        kind = raw[at]
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        if at + 1 >= len(raw) or raw[at + 1] < 2 or at + raw[at + 1] > len(raw):
            return
        yield kind, raw[at : at + raw[at + 1]]
        at += raw[at + 1]


def cipso_option(packet: Packet) -> bytes | None:
    """The packet's CIPSO option, None without one."""
    return next((option for kind, option in ip_options(packet.options) if kind == CIPSO), None)
