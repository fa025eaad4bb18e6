"""Devices as iproute2 and wg print them, in the words of the declaration.

tests/data/tunnels holds what a Debian 13 guest (Linux 6.12, iproute2 6.15) printed as ``client``
after the commands of the links below; ``@@ NAME`` begins a link, ``## COMMAND`` an output.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.kernel_state.errors import StateError
from collector.kernel_state.tunnel_facts import (
    Facts,
    decode,
    differences,
    expected,
    read_device,
    read_encap_route,
    read_fou,
    read_l2tp,
    read_macsec,
    read_wireguard,
    sci_of,
)
from collector.kernel_state.tunnel_link import Link, read_links
from tests.unit.tunnel_factory import ENDS4, ENDS6, INNER4, INNER6

DATA = Path(__file__).resolve().parents[2] / "data" / "tunnels" / "iproute2-6.15.txt"
FOUR: dict[str, Any] = {"ends": ENDS4}
SIX: dict[str, Any] = {"ends": ENDS6}
IN4: dict[str, Any] = {"inner_ipv4": INNER4}
IN6: dict[str, Any] = {"inner_ipv6": INNER6}
LINKS: list[dict[str, Any]] = [
    {"name": "xvxlan", "type": "vxlan", "id": 42, "csum": False, "ttl": "64", "df": "set",
     "source_ports": [20000, 30000], **FOUR, **IN4, **IN6},
    {"name": "xvxlan6", "type": "vxlan", "id": 43, "udp6_zero_csum": True, "tos": "inherit",
     **SIX, **IN4, **IN6},
    {"name": "xgpe", "type": "vxlan-gpe", "id": 44, "ttl": "9", **FOUR, **IN4, **IN6},
    {"name": "xgpe6", "type": "vxlan-gpe", "id": 44, "ttl": "9", "udp6_zero_csum": True, **SIX,
     **IN4, **IN6},
    {"name": "xgeneve", "type": "geneve", "id": 45, "csum": True, "tos": "16", "ttl": "3",
     "df": "inherit", **FOUR, **IN4},
    {"name": "xgeneve6", "type": "geneve", "id": 45, "udp6_zero_csum": True, "ttl": "inherit",
     **SIX, **IN4},
    {"name": "xgre", "type": "gre", "key": 42, "csum": True, "seq": True, "ttl": "7",
     "tos": "inherit", **FOUR, **IN4, **IN6},
    {"name": "xgretap", "type": "gretap", "key": 4294967295, "df": "unset", **FOUR, **IN4},
    {"name": "xgre6", "type": "ip6gre", "key": 42, "ttl": "7", "tos": "8", **SIX, **IN4, **IN6},
    {"name": "xgretap6", "type": "ip6gretap", "encap_limit": 4, "ttl": "inherit", "csum": True,
     **SIX, **IN4},
    {"name": "xipip", "type": "ipip", "ttl": "12", "tos": "4", **FOUR, **IN4},
    {"name": "xsit", "type": "sit", "tos": "inherit", "ttl": "inherit", **FOUR, **IN6},
    {"name": "xip6tnl", "type": "ip6tnl", **SIX, **IN4, **IN6},
    {"name": "xip6tnle", "type": "ip6tnl", "encap_limit": 4, "ttl": "5", "tos": "inherit", **SIX,
     **IN4, **IN6},
    {"name": "xfou", "type": "fou", "csum": True, **FOUR, **IN4},
    {"name": "xfou6", "type": "fou", "csum": False, **SIX, **IN4},
    {"name": "xgue", "type": "gue", "csum": False, "carries": "gre", "key": 3, **FOUR, **IN4},
    {"name": "xgue6", "type": "gue", "carries": "sit", "csum": True, **SIX, **IN6},
    {"name": "xl2tp", "type": "l2tp", "id": 77, "csum": True, **FOUR, **IN4},
    {"name": "xl2tpn", "type": "l2tp", "id": 77, "csum": False, **FOUR, **IN4},
    {"name": "xl2tpip", "type": "l2tp", "id": 78, "encap": "ip", **FOUR, **IN4},
    {"name": "xl2tp6", "type": "l2tp", "id": 79, "csum": True, **SIX, **IN4},
    {"name": "xwg", "type": "wireguard", **FOUR, **IN4, **IN6},
    {"name": "xwg6", "type": "wireguard", **SIX, **IN4, **IN6},
    {"name": "xmacsec", "type": "macsec", **FOUR, **IN4},
    {"name": "xmacsec2", "type": "macsec", "cipher": "gcm-aes-256", "encrypt": False, **FOUR,
     **IN4},
]  # fmt: skip


def sections() -> Iterator[tuple[str, dict[str, str]]]:
    """``(link's name, command -> output)`` of the recorded outputs."""
    for part in DATA.read_text().split("@@ ")[1:]:
        name, _line, rest = part.partition("\n")
        outputs = {}
        for item in rest.split("## ")[1:]:
            command, _line, text = item.partition("\n")
            outputs[command.replace(f" dev {name}", "").replace(f" {name}", "")] = text
        yield name, outputs


RECORDED = dict(sections())


def facts_of(link: Link, said: dict[str, str]) -> Facts:
    """The facts that the outputs make, as on a host."""
    (item,) = decode(said["ip -d -j address show"], "ip address")
    facts = read_device(item)
    if link.type in ("fou", "gue"):
        command = "ip -j -6 fou show" if link.family == 6 else "ip -j fou show"
        ports = read_fou(decode(said[command], command))
        facts["listens"] = ports.get((link.family, link.port or 0))
    if link.type == "l2tp":
        both = [decode(said[f"ip -j l2tp show {what}"], what) for what in ("tunnel", "session")]
        facts.update(read_l2tp(link.name, *both))
    if link.type == "wireguard":
        facts.update(read_wireguard(said["wg show"]))
    if link.type == "macsec":
        for item in decode(said["ip -j macsec show"], "ip macsec"):
            facts.update(read_macsec(item))
    if link.type == "vxlan-gpe":
        for text in link.addresses(1):
            command = "ip -6 route show" if ":" in text else "ip route show"
            facts.update(read_encap_route(said[command], text.split("/")[0]))
    return facts


def test_every_link_was_recorded():
    assert list(RECORDED) == [item["name"] for item in LINKS]


@pytest.mark.parametrize("item", LINKS, ids=lambda item: item["name"])
def test_what_the_kernel_shows_is_what_was_declared(item):
    (link,) = read_links([item])
    facts = facts_of(link, RECORDED[link.name])
    assert differences(expected(link, 0, 1500), facts) == {}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("xvxlan", {"id": 41}),
        ("xvxlan", {"csum": True}),
        ("xvxlan", {"ttl": "63"}),
        ("xvxlan", {"df": "unset"}),
        ("xvxlan", {"source_ports": [20000, 30001]}),
        ("xvxlan", {"port": 8472}),
        ("xvxlan6", {"udp6_zero_csum": False}),
        ("xvxlan6", {"tos": "2"}),
        ("xgpe", {"id": 45}),
        ("xgpe", {"ttl": "8"}),
        ("xgeneve", {"tos": "22"}),
        ("xgre", {"key": 43}),
        ("xgre", {"seq": False, "csum": False}),
        ("xgre6", {"tos": "9"}),
        ("xgretap6", {"encap_limit": 5}),
        ("xgretap6", {"encap_limit": None}),
        ("xip6tnl", {"encap_limit": 4}),
        ("xipip", {"ttl": "13"}),
        ("xfou", {"csum": False}),
        ("xfou", {"port": 5556}),
        ("xgue", {"key": 4}),
        ("xl2tp", {"csum": False}),
        ("xl2tp", {"id": 76}),
        ("xl2tpip", {"encap": "udp"}),
        ("xwg", {"port": 51821}),
        ("xwg6", {"ends": ["2001:db8:18::1", "2001:db8:18::3"]}),
        ("xmacsec", {"cipher": "gcm-aes-256"}),
        ("xmacsec", {"encrypt": False}),
    ],
)
def test_what_is_declared_otherwise_differs(name, change):
    declared = next(item for item in LINKS if item["name"] == name)
    (link,) = read_links([{**declared, **change}])
    assert differences(expected(link, 0, 1500), facts_of(link, RECORDED[name]))


def test_no_output_shows_a_secret():
    for name, said in RECORDED.items():
        for text in said.values():
            assert "private key" not in text.replace("private key: (hidden)", ""), name


def test_channels_of_macsec_are_the_two_ends_of_a_name():
    (link,) = read_links([LINKS[-2]])
    assert sci_of(link, 0) != sci_of(link, 1)
    assert len(sci_of(link, 0)) == 16


@pytest.mark.parametrize("text", ["{}", "nothing", "[1]"])
def test_a_listing_of_another_shape_is_named(text):
    with pytest.raises(StateError, match="of ip fou show"):
        decode(text, "ip fou show")


def test_an_empty_listing_is_none():
    assert decode("", "ip fou show") == decode("[{}]", "ip fou show") == []


def test_a_device_without_a_name_is_refused():
    with pytest.raises(StateError, match="ifname None"):
        read_device({"mtu": 1500})
