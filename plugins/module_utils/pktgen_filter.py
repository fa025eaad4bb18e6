# SPDX-License-Identifier: GPL-2.0-or-later
"""An exact filter of a stream's frames on the device where they arrive.

It matches addresses, UDP ports, length and the number that begins every pktgen payload. Preferred
is nftables' ingress hook, which also drops the frames there, before they cost the host's stack
anything; where the kernel does not have it, a packet socket with a filter of its own counts, and
the stack drops the frames later.
"""

from __future__ import annotations

import ctypes
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from .host.errors import HostError, NotInstalledError
from .host.run import Run
from .pktgen_trial import MAGIC, Stream

NFT, PACKET, NONE = "nft", "packet", "none"
MATCHED, OTHER = "matched", "other"
# Before other chains of the device, which might drop frames.
PRIORITY = -500

_ETH_P_IP = 0x0800
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_SO_ATTACH_FILTER = 26
# Classic BPF (Linux include/uapi/linux/bpf_common.h): loads of a word, half word and byte, the
# same at an index, the index from the IP header's length; jumps; return.
_LD_W, _LD_H, _LD_B = 0x20, 0x28, 0x30
_LD_W_X, _LD_H_X, _LDX_HEADER = 0x40, 0x48, 0xB1
_JEQ, _JGT, _JGE, _JSET, _RET = 0x15, 0x25, 0x35, 0x45, 0x06


@dataclass(frozen=True)
class Counted:
    """Frames that matched, and frames of the device that did not; None is unknown.

    ``matched_bytes``: without FCS.
    """

    matched: Optional[int]
    matched_bytes: Optional[int]
    other: Optional[int]


def ruleset(table: str, device: str, stream: Stream) -> Dict[str, Any]:
    """The nftables commands (libnftables-json(5)) of a filter; the table is ours alone."""
    place = {"family": "netdev", "table": table}
    ports: Any = stream.first_port
    if stream.flows > 1:
        ports = {"range": [stream.first_port, stream.last_port]}
    conditions = [
        ({"payload": {"protocol": "ip", "field": "saddr"}}, stream.source),
        ({"payload": {"protocol": "ip", "field": "daddr"}}, stream.destination),
        ({"payload": {"protocol": "ip", "field": "length"}}, stream.ip_bytes),
        ({"payload": {"protocol": "udp", "field": "sport"}}, ports),
        ({"payload": {"protocol": "udp", "field": "dport"}}, stream.udp_port),
        ({"payload": {"base": "th", "offset": 64, "len": 32}}, MAGIC),
    ]
    match = [{"match": {"op": "==", "left": left, "right": right}} for left, right in conditions]
    chain = {
        **place,
        "name": "arriving",
        "type": "filter",
        "hook": "ingress",
        "dev": device,
        "prio": PRIORITY,
        "policy": "accept",
    }
    rules = [
        {**place, "chain": "arriving", "expr": [*match, {"counter": MATCHED}, {"drop": None}]},
        {**place, "chain": "arriving", "expr": [{"counter": OTHER}]},
    ]
    commands: List[Dict[str, Any]] = [{"add": {"table": {"family": "netdev", "name": table}}}]
    commands += [{"add": {"counter": {**place, "name": name}}} for name in (MATCHED, OTHER)]
    commands += [{"add": {"chain": chain}}, *({"add": {"rule": rule}} for rule in rules)]
    return {"nftables": commands}


def parse_counters(text: str) -> Counted:
    """``nft -j list counters`` of our table. HostError on other text."""
    try:
        items = [item["counter"] for item in json.loads(text)["nftables"] if "counter" in item]
        found: Dict[str, Any] = {item["name"]: item for item in items}
        matched, other = found[MATCHED], found[OTHER]
        return Counted(int(matched["packets"]), int(matched["bytes"]), int(other["packets"]))
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"nft -j list counters: found other text ({error!r})") from None


def tables(run: Run) -> List[str]:
    """Tables of the family netdev; none where nft or the kernel's part of it is missing."""
    try:
        code, out, _err = run(["nft", "-j", "list", "tables", "netdev"])
    except NotInstalledError:
        return []
    if code != 0:
        return []
    try:
        items = json.loads(out)["nftables"]
        return [item["table"]["name"] for item in items if "table" in item]
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"nft -j list tables: found other text ({error!r})") from None


class NftFilter:
    """A filter on the ingress hook. ``table`` is the name of the table that it makes."""

    kind = NFT

    def __init__(self, table: str, run: Run) -> None:
        self.table, self.run = table, run

    def add(self, device: str, stream: Stream) -> None:
        """Make it. HostError with nft's reason when the kernel cannot."""
        self.remove()
        commands = json.dumps(ruleset(self.table, device, stream))
        code, _out, err = self.run(["nft", "-j", commands])
        if code != 0:
            raise HostError(f"nft: {' '.join(err.split()) or f'ended with {code}'}")

    def read(self) -> Counted:
        """Frames since it was made."""
        code, out, err = self.run(["nft", "-j", "list", "counters", "table", "netdev", self.table])
        if code != 0:
            raise HostError(f"nft: table netdev {self.table}: {err.strip()}")
        return parse_counters(out)

    def remove(self) -> bool:
        """Remove it; whether it was there."""
        if self.table not in tables(self.run):
            return False
        code, _out, err = self.run(["nft", "delete", "table", "netdev", self.table])
        if code != 0:
            raise HostError(f"nft: delete table netdev {self.table}: {err.strip()}")
        return True


def program(stream: Stream) -> List[Tuple[int, int, int, int]]:
    """The classic BPF program of a stream on Ethernet: (code, if true, if false, value) each."""
    source, destination = (
        struct.unpack("!I", socket.inet_aton(address))[0]
        for address in (stream.source, stream.destination)
    )
    # (load, offset), then tests that must hold: jump code and value; JSET and JGT must not.
    wanted = [
        ((_LD_W, 26), [(_JEQ, source)]),
        ((_LD_W, 30), [(_JEQ, destination)]),
        ((_LD_H, 16), [(_JEQ, stream.ip_bytes)]),
        ((_LD_B, 23), [(_JEQ, socket.IPPROTO_UDP)]),
        ((_LD_H, 20), [(_JSET, 0x1FFF)]),  # no fragment
        ((_LDX_HEADER, 14), []),
        ((_LD_H_X, 14), [(_JGE, stream.first_port), (_JGT, stream.last_port)]),
        ((_LD_H_X, 16), [(_JEQ, stream.udp_port)]),
        ((_LD_W_X, 22), [(_JEQ, MAGIC)]),
    ]
    length = sum(1 + len(tests) for _load, tests in wanted) + 2
    found: List[Tuple[int, int, int, int]] = []
    for (load, offset), tests in wanted:
        found.append((load, 0, 0, offset))
        for jump, value in tests:
            refuse = length - 1 - (len(found) + 1)
            found.append(
                (jump, refuse, 0, value) if jump in (_JGT, _JSET) else (jump, 0, refuse, value)
            )
    return [*found, (_RET, 0, 0, 1), (_RET, 0, 0, 0)]


def attach(opened: socket.socket, stream: Stream) -> None:
    """Have a packet socket of Ethernet see nothing but the stream's frames. OSError."""
    code = b"".join(struct.pack("HBBI", *step) for step in program(stream))
    held = ctypes.create_string_buffer(code)
    attached = struct.pack("HP", len(code) // 8, ctypes.addressof(held))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attached)


class PacketFilter:
    """A filter on a packet socket, which ends with this process."""

    kind = PACKET

    def __init__(self) -> None:
        self._socket: Optional[socket.socket] = None
        self._matched = 0

    def add(self, device: str, stream: Stream) -> None:
        """Make it. HostError with the kernel's reason when it cannot."""
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            # Nobody reads the frames; those that find no room are counted all the same.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            attach(opened, stream)
            opened.bind((device, _ETH_P_IP))
        except OSError as error:
            opened.close()
            raise HostError(f"packet socket on {device}: {error.strerror}") from None
        self._socket = opened

    def read(self) -> Counted:
        """Frames since it was made (struct tpacket_stats; those without room included).

        The kernel counts from 0 again after each reading.
        """
        if self._socket is None:
            return Counted(None, None, None)
        found = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._matched += int(struct.unpack("II", found)[0])
        return Counted(self._matched, None, None)

    def remove(self) -> bool:
        """Remove it; whether it was there."""
        if self._socket is None:
            return False
        self._socket.close()
        self._socket = None
        return True


Filter = Union[NftFilter, PacketFilter]


def add_filter(
    table: str, device: str, stream: Stream, run: Run
) -> Tuple[Optional[Filter], Optional[str]]:
    """The best filter that this kernel can have, and why no better one (None: it is the best)."""
    reasons = []
    for made in (NftFilter(table, run), PacketFilter()):
        try:
            made.add(device, stream)
            return made, "; ".join(reasons) or None
        except (HostError, OSError) as error:
            reasons.append(str(error))
    return None, "; ".join(reasons)
