# SPDX-License-Identifier: GPL-2.0-or-later
"""Declared IPsec connections: from a module's parameters to typed values. Pure.

A connection names both ends and is the same text on both hosts; each host finds its own end.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .ipsec_algorithms import key_sizes
from .kernel_state.declared import DeclarationError, Faults
from .kernel_state.xfrm import Limits, Mark

PROCESS = "process"
DEFAULT_POLICY_LABEL = "system_u:object_r:ipsec_spd_t:s0"
DEFAULT_PRIORITY = 1000
# Automatic numbers: far from those that IKE daemons take (from 1 and from 16384 on).
FIRST_REQID = 0x43520000
FIRST_SPI = 0x00430000
MOST_PAIRS = 16384
# No host has this many connections between one pair of ends.
MOST_CONNECTIONS = 1024
LIMITS = (
    "soft_bytes", "hard_bytes", "soft_packets", "hard_packets",
    "soft_add_s", "hard_add_s", "soft_use_s", "hard_use_s",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Match:
    """Which packets, as seen from the first end: ``port`` is that of the second end."""

    protocol: Optional[str] = None
    port: Optional[int] = None


@dataclass(frozen=True)
class Connection:
    """One declared connection. ``ends`` are its two addresses, ``networks`` what a tunnel carries.

    ``label`` is a context, :data:`PROCESS` or None. ``pairs`` SA pairs, of which the first serves
    the measured flow; the others differ from it by ``vary`` (label or selector).
    """

    name: str
    ends: Tuple[str, str]
    mode: str = "transport"
    networks: Optional[Tuple[str, str]] = None
    algorithm: str = "aes-gcm"
    key_bits: int = 128
    esn: bool = False
    replay_window: int = 32
    selectors: Tuple[Match, ...] = (Match(),)
    mark: Optional[Mark] = None
    if_id: Optional[int] = None
    offload: Optional[str] = None
    limits: Optional[Limits] = None
    label: Optional[str] = None
    policy_label: Optional[str] = None
    spi: int = FIRST_SPI
    reqid: int = FIRST_REQID
    priority: int = DEFAULT_PRIORITY
    pairs: int = 1
    vary: str = "label"

    @property
    def family(self) -> int:
        """4 or 6, of the addresses on the wire."""
        return ipaddress.ip_address(self.ends[0]).version

    @property
    def reqids(self) -> Tuple[int, int]:
        """The first and last reqid of the connection."""
        return self.reqid, self.reqid + (self.pairs - 1 if self.vary == "selector" else 0)

    def protected(self) -> Tuple[str, str]:
        """The networks whose packets are protected, one an end."""
        if self.networks is not None:
            return self.networks
        length = 32 if self.family == 4 else 128
        return f"{self.ends[0]}/{length}", f"{self.ends[1]}/{length}"


def read_connections(items: Sequence[Mapping[str, Any]]) -> Tuple[Connection, ...]:
    """The parameter ``connections``. Raises :class:`DeclarationError` with every fault found."""
    errors: List[str] = []
    found: List[Connection] = []
    if len(items) > MOST_CONNECTIONS:
        raise DeclarationError(
            f"connections: {len(items)}, wanted at most {MOST_CONNECTIONS}; for a large table "
            "declare pairs"
        )
    for index, item in enumerate(items):
        name = item.get("name") or ""
        faults = Faults(f"connections[{index}] ({name})")
        connection = _connection(item, index, faults)
        errors += faults.texts
        if connection is not None:
            found.append(connection)
    errors += _clashes(found)
    if errors:
        raise DeclarationError("; ".join(errors))
    return tuple(found)


def _pair(reader: Callable[[str], Any]) -> Callable[[Any], Tuple[Any, Any]]:
    def read(value: Any) -> Tuple[Any, Any]:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError("two")
        one, other = reader(value[0]), reader(value[1])
        if one.version != other.version or one == other:
            raise ValueError("two of one family")
        return str(one), str(other)

    return read


def _connection(item: Mapping[str, Any], index: int, faults: Faults) -> Optional[Connection]:
    name = str(item.get("name") or "")
    if not _NAME.fullmatch(name):
        faults.add("name", name, "a letter, then letters, digits, '_' or '-', at most 32")
    ends = faults.read(
        "ends", item.get("ends"), _pair(ipaddress.ip_address), "two addresses of one family"
    )
    mode = item.get("mode") or "transport"
    networks = None
    if item.get("networks"):
        networks = faults.read(
            "networks", item["networks"], _pair(ipaddress.ip_network),
            "two networks of one family without host bits",
        )  # fmt: skip
        if mode != "tunnel":
            faults.add("networks", item["networks"], "mode tunnel with it")
    algorithm = item.get("algorithm") or "aes-gcm"
    sizes = key_sizes(algorithm)
    key_bits = sizes[0] if item.get("key_bits") is None else item["key_bits"]
    if key_bits not in sizes:
        faults.add("key_bits", key_bits, f"{' or '.join(map(str, sizes))} for {algorithm}")
    label = item.get("label") or None
    policy_label = item.get("policy_label") or (DEFAULT_POLICY_LABEL if label else None)
    if policy_label and not label:
        faults.add("policy_label", policy_label, "a label with it")
    pairs = 1 if item.get("pairs") is None else item["pairs"]
    if not 1 <= pairs <= MOST_PAIRS:
        faults.add("pairs", pairs, f"1 to {MOST_PAIRS}")
    vary = item.get("vary") or "label"
    if pairs > 1 and vary == "label" and not label:
        faults.add("vary", vary, "a label with it, or vary: selector")
    spi = FIRST_SPI + index * 2 * MOST_PAIRS if item.get("spi") is None else item["spi"]
    if not 0x100 <= spi <= 0xFFFFFFFF - 2 * pairs:
        faults.add("spi", spi, "0x100 (lower ones are reserved) to 0xffffffff less all pairs")
    reqid = FIRST_REQID + index * MOST_PAIRS if item.get("reqid") is None else item["reqid"]
    if not 1 <= reqid <= 0xFFFFFFFF - pairs:
        faults.add("reqid", reqid, "1 to 0xffffffff less all pairs")
    mark = faults.read("mark", item.get("mark"), _mark, "value and mask below 2**32")
    given = item.get("lifetimes") or {}
    limits = Limits(**{key: given.get(key) for key in LIMITS}) if any(given.values()) else None
    selectors = _selectors(item.get("selectors") or [{}], faults)
    if faults.texts:
        return None
    return Connection(
        name=name, ends=ends, mode=mode, networks=networks, algorithm=algorithm,
        key_bits=key_bits, esn=bool(item.get("esn")),
        replay_window=32 if item.get("replay_window") is None else item["replay_window"],
        selectors=selectors, mark=mark, if_id=item.get("if_id") or None,
        offload=item.get("offload") or None, limits=limits, label=label,
        policy_label=policy_label, spi=spi, reqid=reqid,
        priority=DEFAULT_PRIORITY if item.get("priority") is None else item["priority"],
        pairs=pairs, vary=vary,
    )  # fmt: skip


def _mark(value: Any) -> Optional[Mark]:
    if not value:
        return None
    mask = 0xFFFFFFFF if value.get("mask") is None else value["mask"]
    if not (0 <= value["value"] < 1 << 32 and 0 <= mask < 1 << 32):
        raise ValueError("32 bits")
    return Mark(value["value"], mask)


def _selectors(items: Sequence[Mapping[str, Any]], faults: Faults) -> Tuple[Match, ...]:
    found = []
    for number, item in enumerate(items):
        protocol, port = item.get("protocol") or None, item.get("port")
        if port is not None and protocol not in ("tcp", "udp", "sctp"):
            faults.add(f"selectors[{number}].protocol", protocol, "tcp, udp or sctp with a port")
        if port is not None and not 1 <= port <= 65535:
            faults.add(f"selectors[{number}].port", port, "1 to 65535")
        found.append(Match(protocol, port))
    return tuple(found)


def _clashes(connections: Sequence[Connection]) -> List[str]:
    """Names given twice, and reqids that two connections would share."""
    errors: List[str] = []
    seen: Dict[str, int] = {}
    for index, item in enumerate(connections):
        first = seen.setdefault(item.name, index)
        if first != index:
            errors.append(f"connections[{index}].name: {item.name!r}, the same as [{first}]")
    ranges = sorted((*item.reqids, item.name) for item in connections)
    for number in range(1, len(ranges)):
        (_, end, one), (start, _, other) = ranges[number - 1], ranges[number]
        if start <= end:
            errors.append(
                f"connections: {one} and {other} share reqid {start}; wanted one's own, which is "
                "how its SAs are told from others"
            )
    return errors
