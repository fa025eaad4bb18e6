# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunnel devices as the kernel has them, in the words of the declaration. Pure.

Facts are a mapping with the device's ``kind`` and those properties that it has: ``id``, ``key``,
``local``, ``remote``, ``port``, ``csum``, ``ttl``, ``mtu``, ``up``, ``addresses`` … They are made
of what iproute2 (6.1 to 6.15) and wg print, and, for a declared link, of the declaration
(:func:`expected`), so that both can be compared key by key.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple

from .errors import StateError
from .tunnel_link import Link
from .tunnel_overhead import mtu_of

Facts = Dict[str, Any]
# Our type -> the kernel's kind of link (IFLA_INFO_KIND). Others have the same name.
_KINDS = {"vxlan-gpe": "vxlan", "l2tp": "l2tp", "ovs": "openvswitch"}
_ENCAPSULATED = {
    (4, "ipip"): "ipip", (4, "sit"): "sit", (4, "gre"): "gre",
    (6, "ipip"): "ip6tnl", (6, "sit"): "ip6tnl", (6, "gre"): "ip6gre",
}  # fmt: skip
# Protocol numbers of IANA, for a FOU port, which carries one protocol only.
_PROTOCOLS = {"ipip": 4, "sit": 41, "gre": 47}
_IP_KINDS = ("gre", "gretap", "ip6gre", "ip6gretap", "ipip", "sit", "ip6tnl")


def kind_of(link: Link) -> str:
    """The kernel's kind of device for a link."""
    if link.type in ("fou", "gue"):
        return _ENCAPSULATED[link.family, link.carries]
    return _KINDS.get(link.type, link.type)


def fou_protocol(link: Link) -> Optional[int]:
    """The IP protocol that a FOU port passes on, None for GUE, which says it in each packet."""
    return _PROTOCOLS[link.carries] if link.type == "fou" else None


def sci_of(link: Link, end: int) -> str:
    """The MACsec channel identifier of one end: 16 hexadecimal digits, made of the link's name."""
    # A locally administered address (IEEE 802, 8.4) and the end as the port.
    text = link.name.encode()[:5].ljust(5, b"\0").hex()
    return f"02{text}{end + 1:04x}"


def expected(link: Link, end: int, underlay_mtu: int) -> Facts:
    """What the kernel must show of a declared link on the host that is ``end``."""
    facts: Facts = {
        "kind": kind_of(link),
        "mtu": mtu_of(link, underlay_mtu),
        "up": True,
        "addresses": sorted(link.addresses(end)),
    }
    facts.update(_expected_ends(link, end))
    for key in ("ttl", "tos", "df"):
        if getattr(link, key) is not None:
            facts[key] = getattr(link, key)
    if link.type in ("fou", "gue"):
        facts["encap"] = link.type
        facts["listens"] = fou_protocol(link) or "gue"
    if link.csum is not None and link.type != "ovs":
        facts["csum"] = link.csum
    if link.udp6_zero_csum is not None:
        facts["udp6_zero_csum"] = link.udp6_zero_csum
    if link.source_ports is not None:
        facts["source_ports"] = list(link.source_ports)
    if link.seq:
        facts["seq"] = True
    if link.type == "macsec":
        facts["cipher"], facts["encrypt"] = link.cipher, link.encrypt
        facts["sci"], facts["peer_sci"] = sci_of(link, end), sci_of(link, 1 - end)
    if link.type == "ovs":
        facts["protocol"] = link.protocol
    if link.type == "l2tp":
        facts["encap"] = link.encap
    if kind_of(link) in ("ip6tnl", "ip6gre", "ip6gretap"):
        facts["encap_limit"] = link.encap_limit
    return facts


def _expected_ends(link: Link, end: int) -> Facts:
    facts: Facts = {}
    if link.type == "macsec":
        return facts
    facts["remote"] = link.ends[1 - end]
    if link.type not in ("geneve", "wireguard"):  # the kernel chooses by the route
        facts["local"] = link.ends[end]
    if link.port is not None:
        facts["port"] = link.port
    if link.id is not None:
        facts["id"] = link.id
    if "key" in link.kind.options and link.type not in ("fou", "gue"):
        facts["key"] = link.key or (0 if link.type == "stt" else None)
    elif link.key is not None:
        facts["key"] = link.key
    return facts


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Dict[str, Tuple[Any, Any]]:
    """``key -> (wanted, found)`` of every wanted property that is not so."""
    return {
        key: (value, found.get(key)) for key, value in wanted.items() if found.get(key) != value
    }


# --- what iproute2 prints -----------------------------------------------------------------------


def decode(text: str, command: str) -> List[Dict[str, Any]]:
    """A JSON listing of iproute2; empty text is an empty one. Raises :class:`StateError`."""
    if not text.strip():
        return []
    try:
        found = json.loads(text)
    except ValueError:
        raise StateError(1, f"{text[:40]!r} of {command}", "a list in JSON") from None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise StateError(1, f"JSON of another shape of {command}", "a list of objects")
    return [item for item in found if item]


def read_device(item: Mapping[str, Any]) -> Facts:
    """Facts of one entry of ``ip -d -j address``. Raises :class:`StateError`."""
    name = item.get("ifname")
    if not isinstance(name, str) or not isinstance(item.get("mtu"), int):
        raise StateError(1, f"ifname {name!r} and mtu {item.get('mtu')!r}", "a device")
    info = item.get("linkinfo") or {}
    data = info.get("info_data") or {}
    facts: Facts = {
        "kind": info.get("info_kind"),
        "mtu": item["mtu"],
        "up": "UP" in item.get("flags", ()),
        "addresses": sorted(
            f"{one['local']}/{one['prefixlen']}"
            for one in item.get("addr_info", ())
            if one.get("scope") != "link"
        ),
    }
    if facts["kind"] in _IP_KINDS:
        facts.update(_read_ip(data))
    elif facts["kind"] in ("vxlan", "geneve", "stt"):
        facts.update(_read_udp(data))
    elif facts["kind"] == "macsec":
        facts.update(
            cipher=str(data.get("cipher_suite", "")).lower(),
            encrypt=data.get("encrypt"),
            sci=_sci(data["sci"]) if "sci" in data else None,
        )
    return facts


def _tunable(value: Any) -> Any:
    """TTL or TOS: 0, an absent value and the word mean that it is taken from the inner packet."""
    if value in (None, 0, "inherit", "0x0"):
        return "inherit"
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16)
    return value


def _tos(data: Mapping[str, Any]) -> Any:
    """iproute2 prints 1, the kernel's own sign, as ``inherit`` or ``0x1``, and 0 as nothing,
    ``0x0`` or 0."""
    value = data.get("tos", data.get("tclass"))
    if isinstance(value, str) and value != "inherit":
        value = int(value, 0)
    return "inherit" if value == 1 else value or 0


def _read_udp(data: Mapping[str, Any]) -> Facts:
    facts: Facts = {
        "local": data.get("local", data.get("local6")),
        "remote": data.get("remote", data.get("remote6")),
        "port": data.get("port"),
        "ttl": _tunable(data.get("ttl")),
        "tos": _tos(data),
        "df": data.get("df", "unset"),
        "csum": data.get("udp_csum"),
    }
    if "id" in data:
        facts["id"] = data["id"]
    if "key" in data:  # STT
        facts["key"] = int(str(data["key"]), 0)
    zero = data.get("udp_zero_csum6_tx"), data.get("udp_zero_csum6_rx")
    facts["udp6_zero_csum"] = zero[0] if zero[0] == zero[1] else None
    ports = data.get("port_range")
    if isinstance(ports, Mapping) and (ports.get("low") or ports.get("high")):
        facts["source_ports"] = [ports.get("low"), ports.get("high")]
    if data.get("gpe"):
        facts["gpe"] = True
    return facts


def _key(value: Any) -> Optional[int]:
    """A GRE key is printed as an IPv4 address, or as a number."""
    if value is None:
        return None
    text = str(value)
    return int(ipaddress.IPv4Address(text)) if "." in text else int(text, 0)


def _read_ip(data: Mapping[str, Any]) -> Facts:
    facts: Facts = {
        "local": data.get("local"),
        "remote": data.get("remote"),
        "ttl": _tunable(data.get("ttl", data.get("hoplimit", data.get("hop_limit")))),
        "tos": _tos(data),
        "df": "set" if data.get("pmtudisc") else "unset",
        "csum": bool(data.get("ocsum")) and bool(data.get("icsum")),
        "seq": bool(data.get("oseq")) and bool(data.get("iseq")),
    }
    if data.get("ip6_tnl_f_use_orig_tclass"):
        facts["tos"] = "inherit"
    keys = _key(data.get("ikey")), _key(data.get("okey"))
    facts["key"] = keys[0] if keys[0] == keys[1] else list(keys)
    limit = data.get("encap_limit")
    facts["encap_limit"] = None if data.get("ip6_tnl_f_ign_encap_limit") else limit
    encap = data.get("encap")
    if isinstance(encap, Mapping) and encap.get("type") not in (None, "none"):
        facts["encap"] = encap.get("type")
        facts["port"] = encap.get("dport")
        sixth = ":" in str(facts["remote"])
        facts["csum"] = bool(encap.get("csum6" if sixth else "csum"))
    return facts


def read_fou(items: Sequence[Mapping[str, Any]]) -> Dict[Tuple[int, int], Any]:
    """``(family, port) -> IP protocol, or "gue"`` of ``ip -j fou show``."""
    found: Dict[Tuple[int, int], Any] = {}
    for item in items:
        family = 6 if item.get("family") in ("inet6", 10) or item.get("ipv6") else 4
        # A flag of JSON output: there, and null.
        found[family, int(item["port"])] = "gue" if "gue" in item else item.get("ipproto")
    return found


def read_l2tp(
    name: str, tunnels: Sequence[Mapping[str, Any]], sessions: Sequence[Mapping[str, Any]]
) -> Facts:
    """Facts of the session whose device has this name, of ``ip -j l2tp show``; empty without."""
    session = next((one for one in sessions if one.get("interface") == name), None)
    if session is None:
        return {}
    tunnel = next((one for one in tunnels if one.get("tunnel_id") == session.get("tunnel_id")), {})
    ours, theirs = session.get("session_id"), session.get("peer_session_id")
    same = ours == theirs == session.get("tunnel_id") == tunnel.get("peer_tunnel")
    udp = tunnel.get("encap") == "UDP"
    facts: Facts = {
        "kind": "l2tp",
        "id": ours if same else None,
        "local": tunnel.get("local"),
        "remote": tunnel.get("peer"),
        "encap": "udp" if udp else "ip",
    }
    if udp:
        ports = tunnel.get("local_port"), tunnel.get("peer_port")
        facts["port"] = ports[0] if ports[0] == ports[1] else list(ports)
        both = bool(tunnel.get("checksum_tx")) and bool(tunnel.get("checksum_rx"))
        facts["csum"] = bool(tunnel.get("checksum", both))
    return facts


_WG = re.compile(r"\s*([a-z ]+): (.*)")


def read_wireguard(text: str) -> Facts:
    """Facts of ``wg show DEVICE``, which shows no secret: ports, the peer, both public keys."""
    matches = [match for match in map(_WG.fullmatch, text.splitlines()) if match]
    pairs = [(match.group(1), match.group(2)) for match in matches]
    peers = [value for key, value in pairs if key == "peer"]
    found = dict(pairs)
    facts: Facts = {"public": found.get("public key"), "peers": peers}
    if found.get("listening port", "").isdecimal():
        facts["port"] = int(found["listening port"])
    endpoint = found.get("endpoint")
    if endpoint and len(peers) == 1:
        address, _colon, port = endpoint.rpartition(":")
        facts["remote"] = address.strip("[]")
        if port != str(facts.get("port")):
            facts["port"] = [facts.get("port"), int(port)]
    return facts


def _sci(value: Any) -> str:
    """A channel identifier as 16 digits: `ip macsec` leaves out leading zeros, `ip link` 0x."""
    return f"{int(str(value), 16):016x}"


def read_macsec(item: Mapping[str, Any]) -> Facts:
    """The peer of ``ip -j macsec show DEVICE``: its channel, and whether both ways have a key."""
    channels = item.get("rx_sc") or []
    sender = item.get("sa_list") or item.get("tx_sc") or []
    keyed = bool(sender) and bool(channels) and all(one.get("sa_list") for one in channels)
    return {
        "peer_sci": _sci(channels[0].get("sci")) if len(channels) == 1 else None,
        "keyed": keyed,
    }


def read_encap_route(text: str, peer: str) -> Facts:
    """What the route to the peer says of the encapsulation (``ip route show dev DEVICE``).

    The text form is read: the JSON form has one name twice in an object.
    """
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == peer and "encap" in words:
            rest = words[words.index("encap") + 2 :]
            found = dict(zip(rest[::2], rest[1::2]))  # noqa: B905 - Python 3.9
            ttl = found.get("ttl", found.get("hoplimit"))
            return {
                "id": int(found["id"]) if "id" in found else None,
                "remote": found.get("dst"),
                "local": found.get("src"),
                "ttl": _tunable(int(ttl) if ttl and ttl.isdecimal() else ttl),
            }
    return {}
