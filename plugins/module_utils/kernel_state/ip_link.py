"""``ip -s link`` (also ``-s -s``, ``-d``, ``-j``): interfaces and their counters.

Format: iproute2 ip/ipaddress.c, 3.x to 6.15. Columns are told by their headings, which changed
over the versions (``overrun`` became ``missed``, the second block's ``missed`` became
``overrun``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .errors import NumberedLine, StateError, Text, decimal, number_lines

_HEAD = re.compile(
    r"([0-9]+): ([^:@\s]+)(?:@([^:\s]+))?: <([A-Z0-9_,-]*)> mtu ([0-9]+)((?: \S+)*?)\s*"
)
_BLOCK = re.compile(r"(RX|TX)( errors)?:\s+([a-z_ ]+?)\s*")
_NUMBERS = re.compile(r"[0-9]+(?:\s+[0-9]+)*")
# Heading in the text -> name; the JSON form has the kernel's own names (struct rtnl_link_stats64).
_RX = {
    "bytes": "bytes", "packets": "packets", "errors": "errors", "dropped": "dropped",
    "overrun": "over_errors", "missed": "missed_errors", "mcast": "multicast",
    "compressed": "compressed",
}  # fmt: skip
_RX_ERRORS = {
    "length": "length_errors", "crc": "crc_errors", "frame": "frame_errors",
    "fifo": "fifo_errors", "missed": "missed_errors", "overrun": "over_errors",
    "nohandler": "nohandler", "otherhost": "otherhost_dropped",
}  # fmt: skip
_TX = {
    "bytes": "bytes", "packets": "packets", "errors": "errors", "dropped": "dropped",
    "carrier": "carrier_errors", "collsns": "collisions", "compressed": "compressed",
}  # fmt: skip
_TX_ERRORS = {
    "aborted": "aborted_errors", "fifo": "fifo_errors", "window": "window_errors",
    "heartbt": "heartbeat_errors", "heartbeat": "heartbeat_errors", "transns": "carrier_changes",
}  # fmt: skip
_HEADINGS = {
    ("RX", False): _RX, ("RX", True): _RX_ERRORS, ("TX", False): _TX, ("TX", True): _TX_ERRORS,
}  # fmt: skip
# Problems in these mean packets that a measurement lost.
LOSSES = (
    "errors", "dropped", "over_errors", "missed_errors", "fifo_errors", "carrier_errors",
)  # fmt: skip


@dataclass(frozen=True)
class Link:
    """An interface. ``rx`` and ``tx`` hold counters by name, in bytes and packets; a counter
    that was not printed is absent. ``details`` are the other words of the first line
    (``qdisc``, ``state``, ``master`` …) and what ``-d`` adds."""

    index: int
    name: str
    parent: Optional[str]
    flags: Tuple[str, ...]
    mtu: int
    state: Optional[str]
    kind: Optional[str]
    address: Optional[str]
    rx: Mapping[str, int]
    tx: Mapping[str, int]
    details: Mapping[str, str]


def parse_links(text: Text) -> Tuple[Link, ...]:
    """Every interface of the text form, in order.

    Raises :class:`StateError` on other text, an interface twice, or a heading without numbers.
    """
    groups: List[List[NumberedLine]] = []
    for number, line in number_lines(text):
        if not line.strip():
            continue
        if _HEAD.fullmatch(line.strip()):
            groups.append([])
        elif not groups:
            raise StateError(number, repr(line[:60]), "'1: lo: <FLAGS> mtu N …'")
        groups[-1].append((number, line.strip()))
    found: Dict[int, Link] = {}
    for group in groups:
        link = _link(group)
        if link.index in found:
            raise StateError(group[0][0], f"interface {link.index} a second time", "each once")
        found[link.index] = link
    return tuple(found.values())


def _pairs(words: List[str]) -> Dict[str, str]:
    return {words[at]: words[at + 1] for at in range(0, len(words) - 1, 2)}


def _link(group: List[NumberedLine]) -> Link:
    number, line = group[0]
    head = _HEAD.fullmatch(line)
    if head is None:
        raise StateError(number, repr(line), "'1: lo: <FLAGS> mtu N …'")
    details = _pairs(head.group(6).split())
    kind = address = None
    counters: Dict[str, Dict[str, int]] = {"RX": {}, "TX": {}}
    pending: Optional[Tuple[str, List[str]]] = None
    for at, text in group[1:]:
        block = _BLOCK.fullmatch(text)
        if pending is not None:
            _take(counters, pending, text, at)
            pending = None
        elif block is not None:
            pending = (block.group(1), _names(block, at))
        elif text.startswith("link/"):
            words = text.split()
            kind = words[0][len("link/") :]
            address = words[1] if len(words) > 1 and words[1] != "brd" else None
        elif _NUMBERS.fullmatch(text):
            raise StateError(at, "numbers without their heading", "RX: bytes packets …")
    if pending is not None:
        raise StateError(group[-1][0], f"the end after the heading of {pending[0]}", "numbers")
    return Link(
        int(head.group(1)), head.group(2), head.group(3),
        tuple(flag for flag in head.group(4).split(",") if flag), int(head.group(5)),
        details.get("state"), kind, address, counters["RX"], counters["TX"], details,
    )  # fmt: skip


def _names(block: re.Match[str], number: int) -> List[str]:
    known = _HEADINGS[(block.group(1), block.group(2) is not None)]
    names = []
    for word in block.group(3).split():
        if word not in known:
            raise StateError(number, repr(word), f"one of {', '.join(known)}")
        names.append(known[word])
    return names


def _take(
    counters: Dict[str, Dict[str, int]], pending: Tuple[str, List[str]], text: str, number: int
) -> None:
    side, names = pending
    words = text.split()
    if len(words) != len(names):
        raise StateError(number, f"{len(words)} numbers for {side}", f"{len(names)}")
    for at, name in enumerate(names):
        if name in counters[side]:
            raise StateError(number, f"{side} {name} a second time", "it once")
        counters[side][name] = decimal(words[at], number, f"{side} {name}")


def parse_links_json(text: str) -> Tuple[Link, ...]:
    """Every interface of ``ip -s -j link`` (``-s -s``, ``-d`` add to it).

    Raises :class:`StateError` when it is not that.
    """
    try:
        items = json.loads(text)
    except ValueError as error:
        raise StateError(
            getattr(error, "lineno", 1), "text that is no JSON", "ip -j link"
        ) from None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise StateError(1, "JSON of another shape", "a list of interfaces")
    # Interfaces that a filter left out are empty objects in older versions.
    return tuple(_json_link(item) for item in items if item)


def _json_link(item: Dict[str, Any]) -> Link:
    name = item.get("ifname")
    for key, kind in (("ifindex", int), ("ifname", str), ("mtu", int), ("flags", list)):
        if not isinstance(item.get(key), kind) or isinstance(item.get(key), bool):
            raise StateError(1, f"{key} {item.get(key)!r} of {name}", f"{key} as {kind.__name__}")
    stats = item.get("stats64", item.get("stats", {}))
    return Link(
        item["ifindex"], item["ifname"], item.get("link"),
        tuple(str(flag) for flag in item["flags"]), item["mtu"], item.get("operstate"),
        item.get("link_type"), item.get("address"), _json_counters(stats, "rx", name),
        _json_counters(stats, "tx", name),
        {key: str(item[key]) for key in ("qdisc", "master", "group", "txqlen") if key in item},
    )  # fmt: skip


def _json_counters(stats: Any, side: str, name: object) -> Dict[str, int]:
    found = stats.get(side, {}) if isinstance(stats, dict) else None
    if not isinstance(found, dict):
        raise StateError(1, f"{side} statistics of {name} of another shape", "counters by name")
    for key, value in found.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise StateError(1, f"{side} {key} {value!r} of {name}", "a counter")
    return dict(found)


def grown_between(before: Link, after: Link) -> Dict[str, Dict[str, int]]:
    """``{"rx": …, "tx": …}``: by how much each counter grew that both readings have.

    Raises :class:`StateError` when one went back (the interface was made anew, or 32 bits wrapped).
    """
    found: Dict[str, Dict[str, int]] = {"rx": {}, "tx": {}}
    for side, first, second in (("rx", before.rx, after.rx), ("tx", before.tx, after.tx)):
        for name, count in second.items():
            if name not in first:
                continue
            if count < first[name]:
                raise StateError(
                    1,
                    f"{side} {name} of {after.name} went from {first[name]} to {count}",
                    "two readings of one interface",
                )
            found[side][name] = count - first[name]
    return found
