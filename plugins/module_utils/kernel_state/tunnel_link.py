# SPDX-License-Identifier: GPL-2.0-or-later
"""Declared tunnel links: read strictly, every fault named. Pure.

One declaration serves both hosts: ``ends`` are the two outer addresses, and whatever differs
between the hosts comes in pairs in the same order.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from .declared import DeclarationError, Faults
from .tunnel_overhead import least_mtu
from .tunnel_types import (
    CARRIED,
    DEFAULTS,
    MACSEC_CIPHERS,
    NAMES,
    OVS_PORTS,
    OVS_PROTOCOLS,
    TYPES,
    TunnelType,
)

MOST_LINKS = 64
# A device name has 15 characters (IFNAMSIZ); one of them is kept for what belongs to the device.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,13}")
_FEATURE = re.compile(r"[a-z0-9][a-z0-9-]*")
COMMON = ("name", "type", "ends", "device", "inner_ipv4", "inner_ipv6", "mtu", "underlay_mtu",
          "offloads")  # fmt: skip
_RANGES = {
    "id": (0, (1 << 24) - 1), "key": (0, (1 << 32) - 1), "port": (1, 65535), "tos": (0, 255),
    "ttl": (1, 255), "mtu": (68, 65535), "underlay_mtu": (68, 65535), "encap_limit": (0, 255),
}  # fmt: skip
# A session of L2TPv3 has an identifier of 32 bits that is not zero, STT a key of 64 bits.
_RANGES_OF = {("l2tp", "id"): (1, (1 << 32) - 1), ("stt", "key"): (0, (1 << 64) - 1)}
_CHOICES = {
    "carries": CARRIED, "encap": ("udp", "ip"), "cipher": MACSEC_CIPHERS,
    "protocol": OVS_PROTOCOLS, "df": ("set", "unset", "inherit"),
}  # fmt: skip
_FLAGS = ("csum", "udp6_zero_csum", "seq", "encrypt")


@dataclass(frozen=True)
class Link:
    """A tunnel between two hosts. ``inner`` holds one pair ``address/length`` a family.

    What was not declared is None and left to the kernel; ``port`` is never None where the type
    has one.
    """

    name: str
    type: str
    ends: Tuple[str, str]
    inner: Tuple[Tuple[str, str], ...] = ()
    device: Optional[str] = None
    mtu: Optional[int] = None
    underlay_mtu: Optional[int] = None
    id: Optional[int] = None
    key: Optional[int] = None
    port: Optional[int] = None
    source_ports: Optional[Tuple[int, int]] = None
    carries: str = "ipip"
    csum: Optional[bool] = None
    udp6_zero_csum: Optional[bool] = None
    ttl: Optional[Union[int, str]] = None
    tos: Optional[Union[int, str]] = None
    df: Optional[str] = None
    seq: bool = False
    encap_limit: Optional[int] = None
    encap: str = "udp"
    cipher: str = "gcm-aes-128"
    encrypt: bool = True
    protocol: str = "vxlan"
    offloads: Tuple[Tuple[str, bool], ...] = ()

    @property
    def family(self) -> int:
        """Version of IP around the tunnel: 4 or 6."""
        return ipaddress.ip_address(self.ends[0]).version

    @property
    def kind(self) -> TunnelType:
        """The row of its type."""
        return TYPES[self.type]

    def addresses(self, end: int) -> Tuple[str, ...]:
        """The inner addresses of one end, ``address/length``."""
        return tuple(pair[end] for pair in self.inner)

    def address(self, end: int, family: str) -> Optional[str]:
        """The inner address of one end in ``ipv4`` or ``ipv6``, without its length."""
        for text in self.addresses(end):
            found = ipaddress.ip_interface(text)
            if f"ipv{found.version}" == family:
                return str(found.ip)
        return None

    def as_dict(self) -> Dict[str, Any]:
        """For the record on the host; :func:`from_dict` reads it."""
        return dict(vars(self))


def from_dict(data: Mapping[str, Any]) -> Link:
    """A link of a record. Raises TypeError for another shape."""
    known = dict(data)
    known["ends"] = tuple(known["ends"])
    known["inner"] = tuple(tuple(pair) for pair in known["inner"])
    known["offloads"] = tuple((str(name), bool(value)) for name, value in known["offloads"])
    if known.get("source_ports"):
        known["source_ports"] = tuple(known["source_ports"])
    return Link(**known)


def read_links(items: Any, where: str = "links") -> Tuple[Link, ...]:
    """The declared links in order. Raises :class:`DeclarationError` with every fault found."""
    if not isinstance(items, (list, tuple)) or not all(isinstance(one, Mapping) for one in items):
        raise DeclarationError(f"{where}: {items!r}, wanted a list of links")
    if len(items) > MOST_LINKS:
        raise DeclarationError(f"{where}: {len(items)}, wanted at most {MOST_LINKS}")
    errors: List[str] = []
    found: List[Link] = []
    for index, item in enumerate(items):
        faults = Faults(f"{where}[{index}] ({item.get('name')})")
        link = _link(item, faults)
        errors += faults.texts
        if link is not None:
            found.append(link)
    errors += _clashes(found, where)
    if errors:
        raise DeclarationError("; ".join(errors))
    return tuple(found)


def _link(item: Mapping[str, Any], faults: Faults) -> Optional[Link]:
    given = {key: value for key, value in item.items() if value is not None}
    name, sort = given.get("name"), given.get("type")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "lo":
        faults.add("name", name, "a letter, then letters, digits, '_' or '-', at most 14")
    if not isinstance(sort, str) or sort not in TYPES:
        faults.add("type", sort, f"one of {', '.join(NAMES)}")
        return None
    kind = TYPES[sort]
    _check_keys(given, sort, kind, faults)
    ends = _pair(given.get("ends"), "ends", faults)
    inner = tuple(
        pair
        for family, key in ((4, "inner_ipv4"), (6, "inner_ipv6"))
        for pair in [_inner(given.get(key), key, family, faults)]
        if pair is not None
    )
    made: Dict[str, Any] = {
        key: _value(sort, key, given[key], faults) for key in given if key in kind.options
    }
    for key in ("mtu", "underlay_mtu"):
        if key in given:
            made[key] = _value(sort, key, given[key], faults)
    made.setdefault("port", _default_port(sort, kind, made))
    device = given.get("device")
    if device is not None and (not isinstance(device, str) or not device.strip()):
        faults.add("device", device, "the name of a device")
    offloads = _offloads(given.get("offloads"), faults)
    if faults.texts or ends is None or not isinstance(name, str):
        return None
    link = Link(
        name=name, type=sort, ends=ends, inner=inner, device=device, offloads=offloads,
        **{key: value for key, value in made.items() if value is not None},
    )  # fmt: skip
    _check_whole(link, faults)
    return None if faults.texts else link


def _check_keys(given: Mapping[str, Any], sort: str, kind: TunnelType, faults: Faults) -> None:
    for key, value in given.items():
        if key in COMMON or key in kind.options:
            continue
        # A module fills in every key; a default that was not asked for is no wish.
        if value == DEFAULTS.get(key) and key in DEFAULTS:
            continue
        takes = ", ".join(sorted(kind.options))
        faults.add(key, value, f"nothing: {sort} takes {takes}")
    for key in sorted(kind.required):
        if key not in given:
            faults.add(key, None, f"a number: {sort} has no other way to tell its links apart")


def _default_port(sort: str, kind: TunnelType, made: Mapping[str, Any]) -> Optional[int]:
    if sort == "ovs":
        return OVS_PORTS.get(str(made.get("protocol") or DEFAULTS["protocol"]))
    if sort == "l2tp" and made.get("encap") == "ip":
        return None
    return kind.port


def _value(sort: str, key: str, value: Any, faults: Faults) -> Any:
    if key in _FLAGS:
        if not isinstance(value, bool):
            faults.add(key, value, "true or false")
        return value
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            faults.add(key, value, f"one of {', '.join(_CHOICES[key])}")
        return value
    if key == "source_ports":
        return _port_range(value, faults)
    low, high = _RANGES_OF.get((sort, key)) or _RANGES.get(key, (0, 0))
    if key in ("ttl", "tos") and isinstance(value, str):
        if value == "inherit":
            return value
        if value.isdecimal():
            value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        also = " or inherit" if key in ("ttl", "tos") else ""
        faults.add(key, value, f"{low} to {high}{also}")
    return value


def _port_range(value: Any, faults: Faults) -> Optional[Tuple[int, int]]:
    good = (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(one, int) and 1 <= one <= 65535 for one in value)
        and value[0] < value[1]
    )
    if not good:
        faults.add("source_ports", value, "the lowest port and one above the highest")
        return None
    return value[0], value[1]


def _pair(value: Any, key: str, faults: Faults) -> Optional[Tuple[str, str]]:
    try:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError("two")
        one, other = (ipaddress.ip_address(str(text)) for text in value)
        if one.version != other.version or one == other:
            raise ValueError("two of one family")
    except ValueError:
        faults.add(key, value, "two different addresses of one family")
        return None
    return str(one), str(other)


def _inner(value: Any, key: str, family: int, faults: Faults) -> Optional[Tuple[str, str]]:
    if value is None:
        return None
    try:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError("two")
        one, other = (ipaddress.ip_interface(str(text)) for text in value)
        if one.version != family or one.network != other.network or one.ip == other.ip:
            raise ValueError("two of one network")
        if "/" not in str(value[0]) or "/" not in str(value[1]):
            raise ValueError("with length")
    except ValueError:
        faults.add(key, value, f"two IPv{family} addresses with length in one network")
        return None
    return str(one), str(other)


def _offloads(value: Any, faults: Faults) -> Tuple[Tuple[str, bool], ...]:
    if value is None:
        return ()
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and _FEATURE.fullmatch(name) and isinstance(on, bool)
        for name, on in value.items()
    ):
        faults.add("offloads", value, "features of ethtool -K, each true or false")
        return ()
    return tuple(value.items())


def _check_whole(link: Link, faults: Faults) -> None:
    kind = link.kind
    if link.family not in kind.outer:
        wanted = f"IPv{kind.outer[0]} addresses: {link.type} is carried by no other"
        faults.add("ends", list(link.ends), wanted)
    for pair in link.inner:
        version = ipaddress.ip_interface(pair[0]).version
        if version not in _inner_families(link):
            faults.add(f"inner_ipv{version}", list(pair), f"none: {link.type} does not carry it")
        # The route to the other end would lead into the link itself.
        network = ipaddress.ip_interface(pair[0]).network
        inside = [end for end in link.ends if ipaddress.ip_address(end) in network]
        if inside:
            wanted = f"a network without {' and '.join(inside)} of ends"
            faults.add(f"inner_ipv{version}", list(pair), wanted)
    if link.key is not None and link.type in ("fou", "gue") and link.carries != "gre":
        faults.add("key", link.key, "carries: gre with it")
    if link.type == "l2tp" and link.encap == "ip" and (link.port or link.csum is not None):
        faults.add("port", link.port, "encap: udp with a port or a checksum")
    if link.mtu is not None and link.mtu < least_mtu(link):
        faults.add("mtu", link.mtu, f"at least {least_mtu(link)} for what it carries")
    fixed = {"unset"} if isinstance(link.ttl, int) else set()
    if link.df in fixed and link.type in ("gre", "gretap", "ipip", "sit", "fou", "gue"):
        faults.add("df", link.df, f"no ttl of its own with it (found {link.ttl}), as Linux asks")
    if link.ttl == "inherit" and link.type in ("stt", "vxlan-gpe"):
        faults.add("ttl", link.ttl, f"a number: {link.type} does not look into packets for it")
    if link.df == "inherit" and link.type not in ("vxlan", "geneve"):
        faults.add("df", link.df, f"set or unset: {link.type} knows no other")


def _inner_families(link: Link) -> Tuple[int, ...]:
    if link.type in ("fou", "gue"):
        return {"ipip": (4,), "sit": (6,), "gre": (4, 6)}[link.carries]
    return link.kind.inner


def _clashes(links: Sequence[Link], where: str) -> List[str]:
    """Names, inner networks and receiving ports that are given twice."""
    errors: List[str] = []
    ports: Dict[Tuple[int, Optional[int]], str] = {}
    names: Dict[str, int] = {}
    networks: List[Tuple[Any, str]] = []
    for index, link in enumerate(links):
        first = names.setdefault(link.name, index)
        if first != index:
            errors.append(f"{where}[{index}].name: {link.name!r}, the same as [{first}]")
        for text in link.addresses(0):
            network = ipaddress.ip_interface(text).network
            for other, name in networks:
                if other.version == network.version and network.overlaps(other):
                    errors.append(
                        f"{where}[{index}] ({link.name}): {network} overlaps {other} of {name}; "
                        "wanted a network of its own"
                    )
            networks.append((network, link.name))
        if link.type in ("fou", "gue", "wireguard"):
            owner = ports.setdefault((link.family, link.port), link.name)
            if owner != link.name:
                errors.append(
                    f"{where}[{index}] ({link.name}): port {link.port} of {owner}; wanted a port "
                    "of its own"
                )
    return errors
