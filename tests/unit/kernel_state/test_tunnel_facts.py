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
    {"name": "xgeneve", "type": "geneve", "id": 45, "csum": True, "tos": "22", "ttl": "3",
     "df": "inherit", **FOUR, **IN4},
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
        ("xgeneve", {"tos": "16"}),
    ],
)
def test_what_is_declared_otherwise_differs(name, change):
    declared = next(item for item in LINKS if item["name"] == name)
    (link,) = read_links([{**declared, **change}])
    assert differences(expected(link, 0, 1500), facts_of(link, RECORDED[name]))


@pytest.mark.parametrize("text", ["{}", "nothing", "[1]"])
def test_a_listing_of_another_shape_is_named(text):
    with pytest.raises(StateError, match="of ip fou show"):
        decode(text, "ip fou show")


def test_an_empty_listing_is_none():
    assert decode("", "ip fou show") == decode("[{}]", "ip fou show") == []


def test_a_device_without_a_name_is_refused():
    with pytest.raises(StateError, match="ifname None"):
        read_device({"mtu": 1500})
