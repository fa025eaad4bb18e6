# SPDX-License-Identifier: GPL-2.0-or-later
"""What a tunnel takes of the MTU of the path that it runs over. Pure.

Bytes in front of, and behind, the packet (for a tunnel of Ethernet frames: behind the frame's own
14 bytes) that an application's IP packet becomes:

====================  =========================================================  ===================
part                  bytes                                                      source
====================  =========================================================  ===================
IPv4, IPv6            20, 40                                                     RFC 791, RFC 8200
UDP                   8                                                          RFC 768
VXLAN, VXLAN-GPE      8                                                          RFC 7348, 5;
                                                                                 draft-ietf-nvo3-
                                                                                 vxlan-gpe, 3
Geneve                8, no options                                              RFC 8926, 3.4
GRE                   4, and 4 each for checksum, key, sequence number           RFC 2784, RFC 2890
GUE                   4, no options                                              draft-ietf-intarea-
                                                                                 gue, 3.1
L2TPv3                4 (session) + 4 (sublayer), and 4 (flags) over UDP         RFC 3931, 4.1
WireGuard             16 (type, receiver, counter) + 16 (authenticator)          WireGuard's paper
MACsec                8 (SecTAG and EtherType) + 8 (SCI) + 16 (ICV)              IEEE 802.1AE, 9
STT                   20 (TCP's place) + 18                                      draft-davie-stt-08,
                                                                                 3
tunnel encapsulation  8 (a destination options header)                           RFC 2473, 4.1.1
limit
Ethernet              14, where frames are carried                               IEEE 802.3
====================  =========================================================  ===================

WireGuard pads to 16 bytes, but never beyond the device's MTU. MACsec's SCI is counted whether or
not it is sent, because Linux does (``macsec_change_mtu`` in drivers/net/macsec.c).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, List, Optional, Tuple

from .tunnel_types import TYPES

if TYPE_CHECKING:
    from .tunnel_link import Link

Part = Tuple[str, int]
_UDP = ("UDP", 8)
# STT cuts frames into TCP segments and joins them again, so that only its format limits them: a
# length field of 16 bits that counts its own header of 18 bytes too, and an IPv4 total length.
STT_LARGEST_FRAME = 65477
ETHERNET = 14


def _gre(link: "Link") -> List[Part]:
    found: List[Part] = [("GRE", 4)]
    if link.csum and link.type not in ("fou", "gue"):
        found.append(("checksum", 4))
    if link.key is not None:
        found.append(("key", 4))
    if link.seq:
        found.append(("sequence number", 4))
    return found


def _encapsulation(link: "Link") -> List[Part]:
    sort = link.protocol if link.type == "ovs" else link.type
    if sort == "vxlan":
        return [_UDP, ("VXLAN", 8)]
    if sort == "vxlan-gpe":
        return [_UDP, ("VXLAN-GPE", 8)]
    if sort == "geneve":
        return [_UDP, ("Geneve", 8)]
    if sort in ("gre", "gretap", "ip6gre", "ip6gretap"):
        # Open vSwitch's identifier of a GRE port is the key.
        keyed = [("key", 4)] if link.type == "ovs" else []
        return _gre(link) + keyed
    if sort in ("fou", "gue"):
        head = [_UDP] + ([("GUE", 4)] if sort == "gue" else [])
        return head + (_gre(link) if link.carries == "gre" else [])
    if sort == "l2tp":
        return ([_UDP, ("L2TPv3", 12)]) if link.encap == "udp" else [("L2TPv3", 8)]
    if sort == "wireguard":
        return [_UDP, ("WireGuard", 32)]
    if sort == "stt":
        return [("TCP", 20), ("STT", 18)]
    return []  # ipip, sit, ip6tnl: an IP header in front, nothing else


def parts(link: "Link") -> Tuple[Part, ...]:
    """``(what, bytes)`` of everything that a link adds, outermost first."""
    if link.type == "macsec":
        return ("SecTAG", 8), ("SCI", 8), ("ICV", 16)
    found: List[Part] = [("IPv4", 20) if link.family == 4 else ("IPv6", 40)]
    if link.encap_limit is not None:
        found.append(("tunnel encapsulation limit", 8))
    found += _encapsulation(link)
    if TYPES[link.type].ethernet:
        found.append(("Ethernet", ETHERNET))
    return tuple(found)


def overhead(link: "Link") -> int:
    """Bytes that a link takes of the MTU of its path."""
    return sum(size for _what, size in parts(link))


def computed_mtu(link: "Link", underlay_mtu: int) -> int:
    """The largest MTU with which no outer packet is larger than ``underlay_mtu``, bytes."""
    return underlay_mtu - overhead(link)


def largest_mtu(link: "Link", underlay_mtu: int) -> int:
    """The largest MTU that works at all: STT takes whole frames of more than a packet, bytes."""
    if link.type == "stt":
        return STT_LARGEST_FRAME - ETHERNET
    return computed_mtu(link, underlay_mtu)


def least_mtu(link: "Link") -> int:
    """The smallest MTU that the inner addresses allow: RFC 791 and RFC 8200, 5, bytes."""
    versions = {ipaddress.ip_interface(pair[0]).version for pair in link.inner}
    return 1280 if 6 in versions else 68


def mtu_of(link: "Link", underlay_mtu: int) -> int:
    """The MTU of the device: as declared, else as computed."""
    return link.mtu if link.mtu is not None else computed_mtu(link, underlay_mtu)


def explain_mtu(link: "Link", underlay_mtu: int) -> Optional[str]:
    """Why the link's MTU cannot be, None if it can: what was given, what is computed, from what."""
    computed = computed_mtu(link, underlay_mtu)
    listed = ", ".join(f"{what} {size}" for what, size in parts(link))
    reckoning = f"{underlay_mtu} of the path less {overhead(link)} ({listed})"
    given = mtu_of(link, underlay_mtu)
    if given > largest_mtu(link, underlay_mtu):
        return f"{given}, wanted at most {largest_mtu(link, underlay_mtu)}: {reckoning}"
    if given < least_mtu(link):
        return f"{given}, wanted at least {least_mtu(link)}; computed {computed}: {reckoning}"
    return None
