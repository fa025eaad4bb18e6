# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters: what the module forwarding is told, from the links that the inventory declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

DUT, TESTER = "dut", "tester"
# A tester that merged frames would count fewer.
TESTER_OFFLOADS = {"gro": False, "gso": False, "tso": False}


def _of(link: Mapping[str, Any], key: str, what: str) -> str:
    value = link.get(key)
    if not value:
        raise AnsibleFilterError(
            f"bench_links {link.get('name', '?')}: found no {key}; wanted {what} in the inventory"
        )
    return str(value)


def _plain(address: str) -> str:
    return address.partition("/")[0]


def devices(
    links: Sequence[Mapping[str, Any]],
    side: str,
    offloads: Mapping[str, bool] | None = None,
    channels: Mapping[str, int] | None = None,
    ipv6: bool = False,
) -> list[dict[str, Any]]:
    """The devices of a host, ``side`` dut or tester, from its ``bench_links``.

    A tester forwards nothing and says nothing by itself; ``offloads`` and ``channels`` are those
    of each device. ``ipv6``: whether the device under test forwards it.
    """
    if side not in (DUT, TESTER):
        raise AnsibleFilterError(f"side: found {side!r}; wanted {DUT} or {TESTER}")
    forwards = side == DUT
    found = []
    for link in links:
        device: dict[str, Any] = {
            "name": _of(link, "device", "the device"),
            "mac": _of(link, "mac", "its MAC address"),
            "addresses": [_of(link, "ipv4", "its IPv4 address with the length")],
            "forwards": forwards,
            "offloads": dict(offloads or ({} if forwards else TESTER_OFFLOADS)),
            "channels": dict(channels or {}),
        }
        if link.get("mtu"):
            device["mtu"] = int(link["mtu"])
        if not forwards:
            device["ipv6"] = False
        elif ipv6:
            device["ipv6"] = True
            device["addresses"].append(_of(link, "ipv6", "its IPv6 address with the length"))
        found.append(device)
    return found


def neighbours(
    links: Sequence[Mapping[str, Any]], side: str, ipv6: bool = False
) -> list[dict[str, str]]:
    """The permanent neighbours of a host from its ``bench_links``: the other end of each."""
    found = []
    for link in links:
        families = ["ipv4", "ipv6"] if ipv6 and side == DUT else ["ipv4"]
        for family in families:
            found.append(
                {
                    "device": _of(link, "device", "the device"),
                    "address": _plain(_of(link, f"peer_{family}", "the peer's address")),
                    "mac": _of(link, "peer_mac", "the peer's MAC address"),
                }
            )
    return found


def ports(links: Sequence[Mapping[str, Any]], bidirectional: bool = False) -> list[dict[str, str]]:
    """The ``ports`` of the module pktgen on a tester whose two ``bench_links`` join the device
    under test: from the first to the second, and back."""
    if len(links) != 2:
        raise AnsibleFilterError(f"bench_links: found {len(links)}; wanted the tester's two")
    pairs = [(links[0], links[1]), (links[1], links[0])]
    return [
        {
            "device": _of(near, "device", "the device"),
            "mac_destination": _of(near, "peer_mac", "the peer's MAC address"),
            "ipv4_source": _plain(_of(near, "ipv4", "the tester's address")),
            "ipv4_destination": _plain(_of(far, "ipv4", "the tester's address")),
            "receive_device": _of(far, "device", "the device"),
        }
        for near, far in pairs[: 2 if bidirectional else 1]
    ]


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """See the functions."""
        return {
            "forwarding_devices": devices,
            "forwarding_neighbours": neighbours,
            "forwarding_ports": ports,
        }
