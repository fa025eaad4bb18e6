"""The wire format of STT (draft-davie-stt-08), both ways: segments, their reassembly, the header.

An STT frame is a header of 18 bytes and an Ethernet frame. It travels in segments that look like
TCP: the upper half of the sequence number is the length of the STT frame, the lower half the
offset of the segment in it, and the acknowledgement number names the frame among those of the
same addresses and ports.

Raw Ethernet frames in, Ethernet frames out; nothing here opens a socket.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from collector.errors import InputError

PORT = 7471
HEADER_LENGTH = 18
# An IPv4 packet of 65,535 bytes less the IP, TCP and STT headers.
LARGEST_FRAME = 65535 - 20 - 20 - HEADER_LENGTH
# Flags of the header.
VERIFIED, PARTIAL, IPV4, TCP = 1, 2, 4, 8

_HEADER = struct.Struct("!BBBBHHQH")
_TCP_HEADER = struct.Struct("!HHIIBBHHH")
_VLAN_VALID = 0x1000
_PSH, _ACK = 8, 16
_IP, _IP6, _TCP_PROTOCOL = b"\x08\x00", b"\x86\xdd", 6


class MalformedError(Exception):
    """A segment or frame that is none of STT; the text says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """The 18 bytes before an inner frame. ``mss`` 0 means that it is not to be segmented;
    ``vlan`` is ``(priority, id)`` or None."""

    key: int = 0
    flags: int = 0
    l4_offset: int = 0
    mss: int = 0
    vlan: tuple[int, int] | None = None

    def pack(self) -> bytes:
        """The header's bytes."""
        tag = 0
        if self.vlan is not None:
            tag = self.vlan[0] << 13 | _VLAN_VALID | self.vlan[1]
        return _HEADER.pack(0, self.flags, self.l4_offset, 0, self.mss, tag, self.key, 0)

    @classmethod
    def unpack(cls, data: bytes) -> Header:
        """The header at the start of ``data``. Raises MalformedError."""
        if len(data) < HEADER_LENGTH:
            raise MalformedError(
                f"a frame of {len(data)} bytes; a header alone has {HEADER_LENGTH}"
            )
        version, flags, l4_offset, _, mss, tag, key, _ = _HEADER.unpack_from(data)
        if version:
            raise MalformedError(f"version {version}; wanted 0")
        vlan = (tag >> 13, tag & 0xFFF) if tag & _VLAN_VALID else None
        return cls(key, flags, l4_offset, mss, vlan)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an STT frame on the wire. ``flags`` are TCP's, ``checksum`` tells whether TCP's
    sum is right, ``options`` whether the TCP header is longer than 20 bytes."""

    source: str
    destination: str
    source_port: int
    destination_port: int
    packet_id: int
    total: int
    offset: int
    payload: bytes
    flags: int
    window: int
    checksum: bool
    options: bool

    @property
    def flow(self) -> tuple[str, str, int, int, int]:
        """What the segments of one frame have in common."""
        return (
            self.source,
            self.destination,
            self.source_port,
            self.destination_port,
            self.packet_id,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame: its header, the Ethernet frame as it was carried, and its segments in the
    order of their offsets."""

    header: Header
    ethernet: bytes
    segments: tuple[Segment, ...]

    def finished(self) -> bytes:
        """The Ethernet frame with the inner checksum that the sender left to the receiver, and
        the VLAN tag of the header. Raises MalformedError."""
        data = self.ethernet
        if self.header.flags & PARTIAL:
            data = finish_checksum(data, self.header)
        if self.header.vlan is not None:
            tag = self.header.vlan[0] << 13 | self.header.vlan[1]
            data = data[:12] + struct.pack("!HH", 0x8100, tag) + data[12:]
        return data


@dataclass
class Reassembler:
    """Joins segments to frames, in any order. What is never completed stays in ``waiting``."""

    waiting: dict[tuple[str, str, int, int, int], dict[int, Segment]] = field(default_factory=dict)

    def add(self, segment: Segment) -> Frame | None:
        """Take one segment; the frame if it was the last of it. A duplicate changes nothing.
        Raises MalformedError when it contradicts those before."""
        parts = self.waiting.setdefault(segment.flow, {})
        if any(part.total != segment.total for part in parts.values()):
            raise MalformedError(
                f"offset {segment.offset}: another length than the segments before"
            )
        parts.setdefault(segment.offset, segment)
        ordered = [parts[offset] for offset in sorted(parts)]
        if sum(len(part.payload) for part in ordered) < segment.total:
            return None
        del self.waiting[segment.flow]
        data = b""
        for part in ordered:
            if part.offset != len(data):
                raise MalformedError("segments overlap")
            data += part.payload
        return Frame(Header.unpack(data), data[HEADER_LENGTH:], tuple(ordered))


def internet_checksum(data: bytes, start: int = 0) -> int:
    """The ones' complement sum of RFC 1071, not yet complemented; ``start`` is a sum before."""
    if len(data) % 2:
        data += b"\0"
    # Folding carries back keeps a number modulo 65,535, except that only zero becomes zero.
    total = int.from_bytes(data, "big") + start
    return total and (total % 0xFFFF or 0xFFFF)


def pseudo_sum(source: bytes, destination: bytes, protocol: int, length: int) -> int:
    """The sum of the pseudo-header (RFC 9293 and RFC 8200); addresses as bytes."""
    return internet_checksum(source + destination + struct.pack("!II", protocol, length))


def _ip(packet: bytes) -> tuple[bytes, bytes, int, bytes, bool] | None:
    """``(source, destination, protocol, payload, whole)`` of an IP packet without padding."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        header, total = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
        if struct.unpack_from("!H", packet, 6)[0] & 0x3FFF:
            return None
        return (packet[12:16], packet[16:20], packet[9], packet[header:total], len(packet) >= total)
    if len(packet) >= 40 and packet[0] >> 4 == 6:
        total = 40 + struct.unpack_from("!H", packet, 4)[0]
        return (packet[8:24], packet[24:40], packet[6], packet[40:total], len(packet) >= total)
    return None


def segment_of(frame: bytes, port: int = PORT) -> Segment | None:
    """The STT segment in an Ethernet frame, None for anything else. Raises MalformedError."""
    if frame[12:14] not in (_IP, _IP6):
        return None
    found = _ip(frame[14:])
    if found is None or found[2] != _TCP_PROTOCOL or len(found[3]) < _TCP_HEADER.size:
        return None
    source, destination, _, tcp, whole = found
    source_port, destination_port, sequence, packet_id, words, flags, window, _, _ = (
        _TCP_HEADER.unpack_from(tcp)
    )
    if destination_port != port or not flags & _ACK:
        return None
    if not whole:
        raise MalformedError("a segment cut off by the capture")
    header = (words >> 4) * 4
    payload = tcp[header:]
    total, offset = sequence >> 16, sequence & 0xFFFF
    if header < _TCP_HEADER.size or not payload or offset + len(payload) > total:
        raise MalformedError(f"{len(payload)} bytes at offset {offset} of a frame of {total}")
    summed = internet_checksum(tcp, pseudo_sum(source, destination, _TCP_PROTOCOL, len(tcp)))
    return Segment(
        source=str(ipaddress.ip_address(source)),
        destination=str(ipaddress.ip_address(destination)),
        source_port=source_port,
        destination_port=destination_port,
        packet_id=packet_id,
        total=total,
        offset=offset,
        payload=payload,
        flags=flags,
        window=window,
        checksum=summed == 0xFFFF,
        options=header > _TCP_HEADER.size,
    )


def read_stt(frames: Iterable[bytes], where: str, port: int = PORT) -> tuple[list[Frame], int]:
    """The STT frames of a capture in the order of completion, and how many stayed incomplete.

    Raises InputError with the number of the captured frame that is malformed, from 1.
    """
    whole = []
    reassembler = Reassembler()
    for number, data in enumerate(frames, 1):
        try:
            segment = segment_of(data, port)
            frame = None if segment is None else reassembler.add(segment)
        except MalformedError as error:
            raise InputError(f"{where}: frame {number}", str(error), "an STT segment") from error
        if frame is not None:
            whole.append(frame)
    return whole, len(reassembler.waiting)


def segments(
    data: bytes, source: str, destination: str, *, source_port: int, packet_id: int, size: int
) -> Iterator[bytes]:
    """TCP headers with payload, checksums filled in, for an STT frame (header and Ethernet frame)
    cut into ``size`` bytes. Raises MalformedError for one that is too long."""
    if len(data) > LARGEST_FRAME + HEADER_LENGTH:
        raise MalformedError(
            f"a frame of {len(data)} bytes; at most {LARGEST_FRAME + HEADER_LENGTH}"
        )
    for offset in range(0, len(data), size):
        last = offset + size >= len(data)
        yield tcp_segment(
            source,
            destination,
            ports=(source_port, PORT),
            sequence=len(data) << 16 | offset,
            acknowledgement=packet_id,
            flags=_ACK | (_PSH if last else 0),
            payload=data[offset : offset + size],
        )


def tcp_segment(
    source: str,
    destination: str,
    *,
    ports: tuple[int, int],
    sequence: int,
    acknowledgement: int,
    flags: int,
    payload: bytes,
) -> bytes:
    """A TCP header of 20 bytes with its payload and the right checksum."""
    head = (*ports, sequence, acknowledgement, 5 << 4, flags, 0xFFFF)
    tcp = _TCP_HEADER.pack(*head, 0, 0) + payload
    addresses = (ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed)
    total = internet_checksum(tcp, pseudo_sum(*addresses, _TCP_PROTOCOL, len(tcp)))
    return _TCP_HEADER.pack(*head, ~total & 0xFFFF, 0) + payload


def finish_checksum(ethernet: bytes, header: Header) -> bytes:
    """An inner frame whose checksum field holds the pseudo-header's sum, with the whole sum put
    in its place. Raises MalformedError when the header's offset lies outside the frame."""
    field_at = header.l4_offset + (16 if header.flags & TCP else 6)
    if field_at + 2 > len(ethernet):
        raise MalformedError(f"checksum at {field_at} of a frame of {len(ethernet)} bytes")
    total = ~internet_checksum(ethernet[header.l4_offset :]) & 0xFFFF
    # An UDP checksum of zero would mean that there is none (RFC 768).
    if not header.flags & TCP:
        total = total or 0xFFFF
    return ethernet[:field_at] + struct.pack("!H", total) + ethernet[field_at + 2 :]


def with_partial_checksum(ethernet: bytes, key: int, mss: int = 0) -> tuple[Header, bytes]:
    """What a sender that leaves the inner checksum to the receiver sends of a TCP or UDP packet:
    the header and the frame with the pseudo-header's sum in the checksum field. Any other frame
    comes back as it is, with a header that promises nothing."""
    found = _ip(ethernet[14:]) if ethernet[12:14] in (_IP, _IP6) else None
    if found is None or found[2] not in (6, 17):
        return Header(key), ethernet
    source, destination, protocol, payload, _ = found
    l4_offset = 14 + ((ethernet[14] & 15) * 4 if ethernet[14] >> 4 == 4 else 40)
    flags = PARTIAL | (IPV4 if len(source) == 4 else 0) | (TCP if protocol == 6 else 0)
    header = replace(Header(key), flags=flags, l4_offset=l4_offset, mss=mss)
    field_at = l4_offset + (16 if protocol == 6 else 6)
    total = pseudo_sum(source, destination, protocol, len(payload))
    return header, ethernet[:field_at] + struct.pack("!H", total) + ethernet[field_at + 2 :]
