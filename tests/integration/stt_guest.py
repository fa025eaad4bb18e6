"""Runs on a lab guest: STT in user space, and what no honest sender would send.

    stt_guest.py endpoint DEVICE LOCAL REMOTE KEY   an end of a tunnel as the TAP device ``sttu``
    stt_guest.py fuzz LOCAL REMOTE KEY COUNT SEED MAC   segments of every wrong kind, then a summary
    stt_guest.py verified LOCAL REMOTE KEY MAC      two frames that are said to be verified, no more
    stt_guest.py shrink LOCAL REMOTE MTU            an ICMP error about a segment of REMOTE's

Independent of the kernel module: only the codec (collector/wire/stt.py, beside it) is shared with
other tests. The kernel's own TCP gives the TAP device packets that are not segmented yet and
without checksums, by virtio-net headers, and takes such packets back.
"""

import errno
import fcntl
import ipaddress
import os
import random
import select
import socket
import struct
import sys
from dataclasses import replace

from collector.wire import stt

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x2, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 = 1, 2, 4
NEEDS_CSUM, GSO_TCPV4, GSO_TCPV6 = 1, 1, 4
VNET = struct.Struct("=BBHHHH")
SEGMENT = 1428


def raw_socket(local):
    """A raw TCP socket: IP headers are the kernel's, TCP headers ours."""
    family = socket.AF_INET6 if ":" in local else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)
    sock.bind((local, 0))
    return sock


def open_tap():
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", b"sttu", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
    return tap


def from_tap(data, key):
    """The STT frame of what the kernel wrote to the TAP device."""
    flags, gso, _, gso_size, start, field = VNET.unpack_from(data)
    frame = data[VNET.size :]
    header = stt.Header(key)
    if flags & NEEDS_CSUM:
        told = stt.PARTIAL | (stt.TCP if field == 16 else 0)
        if frame[12:14] == b"\x08\x00":
            told |= stt.IPV4
        header = replace(header, flags=told, l4_offset=start, mss=gso_size if gso else 0)
    return header.pack() + frame


def to_tap(frame):
    """What to write to the TAP device for a received frame."""
    header, flags, gso, length, start, field = frame.header, 0, 0, 0, 0, 0
    if header.flags & stt.PARTIAL:
        flags, start = NEEDS_CSUM, header.l4_offset
        field = 16 if header.flags & stt.TCP else 6
        if header.mss and header.flags & stt.TCP:
            length = start + (frame.ethernet[start + 12] >> 4) * 4
            if len(frame.ethernet) - length > header.mss:
                gso = GSO_TCPV4 if header.flags & stt.IPV4 else GSO_TCPV6
    size = header.mss if gso else 0
    return VNET.pack(flags, gso, length if gso else 0, size, start, field) + frame.ethernet


def endpoint(device, local, remote, key):
    tap = open_tap()
    out = raw_socket(local)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    wire.bind((device, 0))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    reassembler = stt.Reassembler()
    number = random.getrandbits(32)
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([tap, wire], [], [])
        if tap in readable:
            number = (number + 1) & 0xFFFFFFFF
            data = from_tap(os.read(tap, 70000), key)
            for tcp in stt.segments(
                data, local, remote, source_port=50000, packet_id=number, size=SEGMENT
            ):
                out.sendto(tcp, (remote, 0))
        if wire in readable:
            raw, (_, _, kind, *_) = wire.recvfrom(70000)
            if kind == socket.PACKET_OUTGOING:
                continue
            try:
                segment = stt.segment_of(raw)
                if segment is None or segment.source != remote:
                    continue
                if not segment.checksum or segment.options:
                    raise stt.MalformedError(f"a bad checksum or options: {segment}")
                whole = reassembler.add(segment)
            except stt.MalformedError as error:
                print("malformed:", error, flush=True)
                continue
            if whole is not None and whole.header.key == key:
                try:
                    os.write(tap, to_tap(whole))
                except OSError as error:
                    if error.errno != errno.EIO:  # the device is not up yet
                        print(f"refused: {whole.header}: {error}", flush=True)


def inner_frame(chance, mac):
    """An inner frame, some of them IP with TCP or UDP, of any size."""
    size = chance.choice([14, 15, 60, 60, 60, 200, 200, 1400, 1500, 5000, 20000, stt.LARGEST_FRAME])
    head = mac + b"\2\0\0\0\0\x99"
    kind = chance.random()
    body = chance.randbytes(max(size - 14, 0))
    if kind < 0.2:
        return head + chance.randbytes(2) + body
    protocol = chance.choice([6, 17, 1])
    if kind < 0.8:
        length = chance.choice([20 + len(body), chance.randrange(65536)]) & 0xFFFF
        ip = struct.pack("!BBHHHBBH4s4s", chance.choice([0x45, 0x45, 0x4F, 0x65]), 0, length, 1, 0,
                         64, protocol, 0, b"\x0a\x09\0\2", b"\x0a\x09\0\1")  # fmt: skip
        total = ~stt.internet_checksum(ip) & 0xFFFF
        ip = ip[:10] + struct.pack("!H", total) + ip[12:]
        return (head + b"\x08\x00" + ip + body)[: stt.LARGEST_FRAME]
    ip = struct.pack("!IHBB", 6 << 28, len(body) & 0xFFFF, chance.choice([protocol, 0, 43, 44]), 64)
    return (head + b"\x86\xdd" + ip + bytes(32) + body)[: stt.LARGEST_FRAME]


def any_header(chance, key):
    return stt.Header(
        key=chance.choice([key, key, key, key + 1]),
        flags=chance.choice([0, 1, 2, 6, 14, chance.randrange(256)]),
        l4_offset=chance.choice([0, 34, 54, 255, chance.randrange(256)]),
        mss=chance.choice([0, 1, 47, 48, 536, 1448, 65535]),
        vlan=chance.choice([None, None, (1, 1), (7, 4095)]),
    )


def packed(chance, header):
    data = bytearray(header.pack())
    if chance.random() < 0.05:
        data[0] = chance.randrange(256)
    return bytes(data)


def frame_segments(chance, local, remote, key, mac):
    """The segments of one frame as ``(payload, sequence, id, flags)``, some of them spoiled."""
    data = packed(chance, any_header(chance, key)) + inner_frame(chance, mac)
    number = chance.getrandbits(32)
    size = chance.choice([SEGMENT, SEGMENT, 536, 100, 1000])
    # A frame in hundreds of segments would leave no time for others.
    size = max(size, len(data) // 60)
    size = min(size, SEGMENT)
    parts = [
        [data[at : at + size], len(data) << 16 | at, number, 16] for at in range(0, len(data), size)
    ]
    spoil = chance.random()
    if spoil < 0.3:
        part = chance.choice(parts)
        what = chance.randrange(6)
        if what == 0:
            part[1] = chance.getrandbits(32)
        elif what == 1:
            part[1] = (part[1] + chance.randrange(-50, 50)) & 0xFFFFFFFF
        elif what == 2:
            part[3] = chance.randrange(64)
        elif what == 3:
            part[0] = part[0][: chance.randrange(len(part[0]) + 1)]
        elif what == 4:
            part[1] = (part[1] & 0xFFFF) | chance.choice([0, 17, 31, 65535]) << 16
        else:
            part[0] += chance.randbytes(chance.randrange(1, 20))
    if spoil > 0.5:
        parts += chance.sample(parts, max(1, len(parts) // 4))
    if spoil > 0.4:
        chance.shuffle(parts)
    return [part for part in parts if chance.random() > 0.01]


def fuzz(local, remote, key, count, seed, mac):
    chance = random.Random(seed)
    out = raw_socket(local)
    sent = frames = 0
    waiting = []
    while sent < count:
        frames += 1
        waiting += frame_segments(chance, local, remote, key, mac)
        if len(waiting) < 50 and chance.random() < 0.5:
            continue  # segments of several frames between each other
        if chance.random() < 0.3:
            chance.shuffle(waiting)
        for payload, sequence, number, flags in waiting:
            tcp = stt.tcp_segment(
                local,
                remote,
                ports=(chance.choice([50000, 50001]), stt.PORT),
                sequence=sequence,
                acknowledgement=number,
                flags=flags,
                payload=payload,
            )
            spoil = chance.random()
            if spoil < 0.01:
                tcp = tcp[:16] + chance.randbytes(2) + tcp[18:]
            elif spoil < 0.02:
                tcp = tcp[:12] + bytes([chance.randrange(16) << 4]) + tcp[13:]
            elif spoil < 0.025:
                tcp = tcp[: chance.randrange(1, 20)]
            out.sendto(tcp, (remote, 0))
        sent += len(waiting)
        waiting = []
    print(f"{sent} segments of {frames} frames")


def verified(local, remote, key, mac):
    """An ICMP message and a datagram in headers as Open vSwitch fills them in for what its card has
    checked: the flag, no offset and no protocol."""
    out = raw_socket(local)
    datagram = struct.pack("!4H", 9, 9, 8, 0)
    for number, (protocol, body) in enumerate([(1, bytes(8)), (17, datagram)]):
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0,
                         b"\x0a\x09\0\2", b"\x0a\x09\0\1")  # fmt: skip
        total = ~stt.internet_checksum(ip) & 0xFFFF
        ip = ip[:10] + struct.pack("!H", total) + ip[12:]
        frame = mac + b"\2\0\0\0\0\x99" + b"\x08\x00" + ip + body
        data = stt.Header(key, flags=stt.VERIFIED).pack() + frame
        for tcp in stt.segments(
            data, local, remote, source_port=50000, packet_id=number, size=SEGMENT
        ):
            out.sendto(tcp, (remote, 0))


def shrink(local, remote, mtu):
    """Tell REMOTE that a segment which it sent to LOCAL was too long for a link of MTU."""
    addresses = [ipaddress.ip_address(text).packed for text in (remote, local)]
    tcp = struct.pack("!HHI", 50000, stt.PORT, 1500 << 16)
    if ":" in local:
        quoted = struct.pack("!IHBB", 6 << 28, 1460, 6, 64) + b"".join(addresses) + tcp
        quoted += bytes(1232 - len(quoted) - 8)
        message = struct.pack("!BBHI", 2, 0, 0, mtu) + quoted
        # The kernel fills in the checksum of ICMPv6.
        sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    else:
        quoted = struct.pack("!BBHHHBBH", 0x45, 0, 1500, 1, 0x4000, 64, 6, 0)
        quoted += b"".join(addresses) + tcp
        message = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + quoted
        total = ~stt.internet_checksum(message) & 0xFFFF
        message = message[:2] + struct.pack("!H", total) + message[4:]
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sock.bind((local, 0))
    sock.sendto(message, (remote, 0))


def main(verb, *arguments):
    if verb == "endpoint":
        device, local, remote, key = arguments
        endpoint(device, local, remote, int(key))
    elif verb == "fuzz":
        local, remote, key, count, seed, mac = arguments
        fuzz(local, remote, int(key), int(count), int(seed), bytes.fromhex(mac.replace(":", "")))
    elif verb == "verified":
        local, remote, key, mac = arguments
        verified(local, remote, int(key), bytes.fromhex(mac.replace(":", "")))
    elif verb == "shrink":
        local, remote, mtu = arguments
        shrink(local, remote, int(mtu))
    else:
        sys.exit(f"{verb}: wanted endpoint, fuzz, verified or shrink")


if __name__ == "__main__":
    main(*sys.argv[1:])
