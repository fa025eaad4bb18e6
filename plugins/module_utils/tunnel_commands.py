# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands that make, change and take back a tunnel link on one host. Pure.

Keys stand in them as placeholders, see shell_step.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import List, Optional, Tuple

from .kernel_state.tunnel_facts import fou_protocol, kind_of, sci_of
from .kernel_state.tunnel_link import Link
from .shell_step import Step, with_secret
from .tunnel_keys import key_lines, placeholder

Argv = Tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """A link on a host: which end it is, the device below, the MTU of the tunnel's device."""

    link: Link
    end: int
    underlay: str
    mtu: int

    @property
    def local(self) -> str:
        """The outer address of this host."""
        return self.link.ends[self.end]

    @property
    def remote(self) -> str:
        """The outer address of the other host."""
        return self.link.ends[1 - self.end]


def create(place: Place) -> List[Step]:
    """Everything that makes the link, ready for use."""
    link, name = place.link, place.link.name
    steps = make(place)
    steps.append(Step(("ip", "link", "set", "dev", name, "mtu", str(place.mtu))))
    steps += [add_address(name, text) for text in link.addresses(place.end)]
    steps.append(Step(("ip", "link", "set", "dev", name, "up")))
    if link.type == "vxlan-gpe":
        steps += _gpe_routes(place)
    return steps


def add_address(name: str, text: str) -> Step:
    """Add an address; an IPv6 one without waiting for a duplicate that the two ends exclude."""
    sixth = ":" in text
    argv = ("ip", "address", "add", text, "dev", name) + (("nodad",) if sixth else ())
    return Step(argv, undo=(Step(("ip", "address", "del", text, "dev", name)),))


def remove(place: Place) -> List[Step]:
    """Everything that takes the link back."""
    link, name = place.link, place.link.name
    if link.type == "ovs":
        return [Step(("ovs-vsctl", "--if-exists", "del-br", name))]
    if link.type == "l2tp":
        return [Step(("ip", "l2tp", "del", "tunnel", "tunnel_id", str(link.id)))]
    steps = [Step(("ip", "link", "del", "dev", name))]
    if link.type in ("fou", "gue"):
        steps.append(_close_fou(link))
    return steps


def remove_remains(place: Place) -> List[Step]:
    """What takes back the rest of a link whose device somebody has deleted; none for most types."""
    if place.link.type in ("fou", "gue"):
        return [_close_fou(place.link)]
    return remove(place) if place.link.type in ("l2tp", "ovs") else []


def make(place: Place) -> List[Step]:
    """The device alone, with its keys, but without MTU and addresses."""
    link = place.link
    if link.type == "l2tp":
        return _l2tp(place)
    if link.type == "ovs":
        return _ovs(place)
    if link.type == "wireguard":
        return _wireguard(place)
    if link.type == "macsec":
        return _macsec(place)
    if link.type in ("fou", "gue"):
        return [*_fou(link), _device(place, *_ip_tunnel(place), *_encap(link))]
    if link.type in ("vxlan", "vxlan-gpe", "geneve"):
        return [_device(place, *_udp_tunnel(place))]
    if link.type == "stt":
        return [_device(place, *_stt(place))]
    return [_device(place, *_ip_tunnel(place))]


def _device(place: Place, *words: str) -> Step:
    name = place.link.name
    argv = ("ip", "link", "add", "name", name, "type", kind_of(place.link), *words)
    return Step(argv, undo=(Step(("ip", "link", "del", "dev", name)),))


def _words(link: Link, *keys: str) -> List[str]:
    """``ttl 64 tos 0x10`` of those keys that are declared: ip takes a TOS as hexadecimal."""
    found: List[str] = []
    for key in keys:
        value = getattr(link, key)
        if value is not None:
            found += [key, f"0x{value:02x}" if key == "tos" and value != "inherit" else str(value)]
    return found


def _flag(value: Optional[bool], word: str) -> List[str]:
    if value is None:
        return []
    return [word if value else f"no{word}"]


def _udp_tunnel(place: Place) -> List[str]:
    link = place.link
    checks = _flag(link.csum, "udpcsum")
    if link.udp6_zero_csum is not None:
        checks += _flag(link.udp6_zero_csum, "udp6zerocsumtx")
        checks += _flag(link.udp6_zero_csum, "udp6zerocsumrx")
    port = ["dstport", str(link.port)]
    if link.type == "vxlan-gpe":
        return [*port, "nolearning", "gpe", "external", *checks]
    words = ["id", str(link.id)]
    if link.device is not None and link.type == "vxlan":
        words += ["dev", link.device]
    if link.type == "vxlan":
        words += ["local", place.local]
    words += ["remote", place.remote, *port]
    if link.source_ports is not None:
        words += ["srcport", str(link.source_ports[0]), str(link.source_ports[1])]
    return [*words, *_words(link, "ttl", "tos", "df"), *checks]


def _ip_tunnel(place: Place) -> List[str]:
    link, kind = place.link, kind_of(place.link)
    words = ["mode", _mode(link)] if kind == "ip6tnl" else []
    words += ["local", place.local, "remote", place.remote]
    if link.device is not None:
        words += ["dev", link.device]
    words += _words(link, "key", "ttl", "tos")
    if link.type not in ("fou", "gue"):
        words += ["csum"] if link.csum else []
        words += ["seq"] if link.seq else []
    if kind in ("ip6tnl", "ip6gre", "ip6gretap"):
        words += ["encaplimit", "none" if link.encap_limit is None else str(link.encap_limit)]
    elif link.df is not None:
        words += ["pmtudisc" if link.df == "set" else "nopmtudisc"]
    return words


def _mode(link: Link) -> str:
    if link.type in ("fou", "gue"):
        return {"ipip": "ipip6", "sit": "ip6ip6"}[link.carries]
    return "any"


def _gpe_routes(place: Place) -> List[Step]:
    link = place.link
    steps = []
    for text in link.addresses(1 - place.end):
        peer = ipaddress.ip_interface(text)
        argv = ["ip", "route", "add", f"{peer.ip}/{peer.max_prefixlen}", "encap"]
        argv += ["ip" if link.family == 4 else "ip6", "id", str(link.id), "src", place.local]
        argv += ["dst", place.remote]
        if isinstance(link.ttl, int):
            argv += ["ttl" if link.family == 4 else "hoplimit", str(link.ttl)]
        steps.append(Step((*argv, "dev", link.name)))
    return steps


def _fou(link: Link) -> List[Step]:
    """The receiving port. The kernel loads neither module by itself."""
    module = "fou" if link.family == 4 else "fou6"
    protocol = fou_protocol(link)
    what = ("gue",) if protocol is None else ("ipproto", str(protocol))
    argv = ("ip", "fou", "add", "port", str(link.port), *what, *_sixth(link))
    return [Step(("modprobe", module)), Step(argv, undo=(_close_fou(link),))]


def _close_fou(link: Link) -> Step:
    return Step(("ip", "fou", "del", "port", str(link.port), *_sixth(link)))


def _sixth(link: Link) -> Argv:
    return ("-6",) if link.family == 6 else ()


def _encap(link: Link) -> List[str]:
    words = ["encap", link.type, "encap-sport", "auto", "encap-dport", str(link.port)]
    return words + _flag(link.csum, "encap-csum" if link.family == 4 else "encap-udp6-csum")


def _stt(place: Place) -> List[str]:
    link = place.link
    words = ["key", str(link.key or 0), "local", place.local, "remote", place.remote]
    if link.device is not None:
        words += ["dev", link.device]
    return [*words, "port", str(link.port), *_words(link, "ttl", "tos")]


def _l2tp(place: Place) -> List[Step]:
    link, number = place.link, str(place.link.id)
    argv = ["ip", "l2tp", "add", "tunnel", "tunnel_id", number, "peer_tunnel_id", number]
    argv += ["encap", link.encap, "local", place.local, "remote", place.remote]
    if link.encap == "udp":
        argv += ["udp_sport", str(link.port), "udp_dport", str(link.port)]
        if link.csum is not None:
            # The option is one for IPv4 and a pair for IPv6.
            words = ("udp_csum",) if link.family == 4 else ("udp6_csum_tx", "udp6_csum_rx")
            for word in words:
                argv += [word, "on" if link.csum else "off"]
    session = ("ip", "l2tp", "add", "session", "name", link.name, "tunnel_id", number)
    session += ("session_id", number, "peer_session_id", number)
    return [Step(tuple(argv), undo=tuple(remove(place))), Step(session)]


def _wireguard(place: Place) -> List[Step]:
    link = place.link
    remote = f"[{place.remote}]" if link.family == 6 else place.remote
    argv = ("wg", "set", link.name, "listen-port", str(link.port), "private-key", "/dev/stdin")
    argv += ("peer", placeholder(link, "PEER"), "endpoint", f"{remote}:{link.port}")
    argv += ("allowed-ips", "0.0.0.0/0,::/0")
    return [_device(place), Step(argv, stdin=placeholder(link, "PRIVATE"))]


def _macsec(place: Place) -> List[Step]:
    link, name = place.link, place.link.name
    own, other = sci_of(link, place.end), sci_of(link, 1 - place.end)
    made = ("ip", "link", "add", "link", place.underlay, "name", name, "type", "macsec")
    made += ("sci", own, "cipher", link.cipher, "encrypt", "on" if link.encrypt else "off")
    sender = ("ip", "macsec", "add", name, "tx", "sa", "0", "pn", "1", "on", "key", "00")
    channel = ("ip", "macsec", "add", name, "rx", "sci", other)
    return [
        Step(made, undo=(Step(("ip", "link", "del", "dev", name)),)),
        Step((*sender, placeholder(link, "TX"))),
        Step((*channel, "on")),
        Step((*channel, "sa", "0", "pn", "1", "on", "key", "01", placeholder(link, "RX"))),
    ]


def port_of(name: str) -> str:
    """The tunnel port of an Open vSwitch bridge: the bridge's own port has the bridge's name."""
    return f"{name}p"


def _ovs(place: Place) -> List[Step]:
    link, port = place.link, port_of(place.link.name)
    argv = ["ovs-vsctl", "add-br", link.name, "--", "add-port", link.name, port, "--"]
    argv += ["set", "interface", port, f"type={link.protocol}"]
    argv += [f"options:local_ip={place.local}", f"options:remote_ip={place.remote}"]
    argv.append(f"options:key={link.id}")
    if link.port is not None:
        argv.append(f"options:dst_port={link.port}")
    for key in ("ttl", "tos", "csum"):
        value = getattr(link, key)
        if value is not None:
            argv.append(f"options:{key}={str(value).lower()}")
    return [Step(tuple(argv), undo=tuple(remove(place)))]


def by_hand(places: Sequence[Place]) -> List[str]:
    """The shell commands that build links on a host that has none, in order."""
    lines: List[str] = []
    for place in places:
        lines += key_lines(place.link, place.end)
        lines += [step.shell() for step in create(place)]
    return with_secret(lines)
