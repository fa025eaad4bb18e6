# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of tunnel devices: what each takes, what it carries, what it needs of a host. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, FrozenSet, Optional, Tuple

OUTER_IP = frozenset({"ttl", "tos"})
OUTER_UDP = OUTER_IP | {"port", "csum", "udp6_zero_csum"}
GRE = OUTER_IP | {"key", "csum", "seq"}
# What a UDP encapsulation (FOU, GUE) can hold, by the name of the device kind within IPv4.
CARRIED = ("ipip", "sit", "gre")
OVS_PROTOCOLS = ("vxlan", "geneve", "gre")
MACSEC_CIPHERS = ("gcm-aes-128", "gcm-aes-256")


@dataclass(frozen=True)
class TunnelType:
    """``options``: what may be declared beside the common keys; ``required``: what must be.

    ``outer`` and ``inner``: address families around and inside the tunnel; ``ethernet``: whether
    it carries Ethernet frames; ``port``: its registered or usual UDP or TCP port; ``tools``:
    programs that it needs beside ``ip``; ``keyed``: whether it has secret keys.
    """

    options: FrozenSet[str]
    required: FrozenSet[str] = frozenset()
    outer: Tuple[int, ...] = (4, 6)
    inner: Tuple[int, ...] = (4, 6)
    ethernet: bool = False
    port: Optional[int] = None
    tools: Tuple[str, ...] = ()
    keyed: bool = False


TYPES: Dict[str, TunnelType] = {
    "vxlan": TunnelType(
        OUTER_UDP | {"id", "df", "source_ports"}, frozenset({"id"}), ethernet=True, port=4789
    ),
    # The kernel takes GPE in metadata mode only: what is usually set on the device (identifier,
    # ends, TTL) is then set on the route to the peer.
    "vxlan-gpe": TunnelType(
        frozenset({"id", "port", "csum", "udp6_zero_csum", "ttl"}), frozenset({"id"}), port=4790
    ),
    "geneve": TunnelType(OUTER_UDP | {"id", "df"}, frozenset({"id"}), ethernet=True, port=6081),
    "gre": TunnelType(GRE | {"df"}, outer=(4,)),
    "gretap": TunnelType(GRE | {"df"}, outer=(4,), ethernet=True),
    "ip6gre": TunnelType(GRE | {"encap_limit"}, outer=(6,)),
    "ip6gretap": TunnelType(GRE | {"encap_limit"}, outer=(6,), ethernet=True),
    "ipip": TunnelType(OUTER_IP | {"df"}, outer=(4,), inner=(4,)),
    "sit": TunnelType(OUTER_IP | {"df"}, outer=(4,), inner=(6,)),
    "ip6tnl": TunnelType(OUTER_IP | {"encap_limit"}, outer=(6,)),
    "fou": TunnelType(OUTER_IP | {"port", "csum", "df", "carries", "key"}, port=5555),
    "gue": TunnelType(OUTER_IP | {"port", "csum", "df", "carries", "key"}, port=6080),
    "l2tp": TunnelType(
        frozenset({"id", "port", "csum", "encap"}), frozenset({"id"}), ethernet=True, port=1701
    ),
    "wireguard": TunnelType(frozenset({"port"}), port=51820, tools=("wg",), keyed=True),
    "macsec": TunnelType(frozenset({"cipher", "encrypt"}), ethernet=True, keyed=True),
    "ovs": TunnelType(
        OUTER_IP | {"id", "port", "csum", "protocol"},
        frozenset({"id"}),
        ethernet=True,
        tools=("ovs-vsctl",),
    ),
    "stt": TunnelType(OUTER_IP | {"key", "port"}, ethernet=True, port=7471),
}
NAMES = tuple(TYPES)
# Options whose default is not None.
DEFAULTS = {"carries": "ipip", "encap": "udp", "cipher": "gcm-aes-128", "encrypt": True,
            "protocol": "vxlan", "seq": False}  # fmt: skip
OVS_PORTS = {"vxlan": 4789, "geneve": 6081, "gre": None}
