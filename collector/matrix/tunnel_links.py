"""The tunnels of a configuration, as the controller sees them: the measured link, its addresses,
what its headers leave of the path's MTU."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from collector.errors import InputError
from collector.kernel_state.declared import DeclarationError
from collector.kernel_state.tunnel_link import Link, read_links
from collector.kernel_state.tunnel_overhead import explain_mtu, mtu_of

OFFLOADS = ("on", "off")


def links_of(subjects: Mapping[str, Any], where: str = "tunnels.links") -> tuple[Link, ...]:
    """The declared links in order; empty for a configuration without. Raises DeclarationError."""
    declared = subjects.get("tunnels") or {}
    unknown = sorted(set(declared) - {"links"})
    if unknown:
        raise DeclarationError(f"tunnels: {', '.join(unknown)}, wanted links and nothing else")
    return read_links(declared.get("links") or [], where)


def measured_link(subjects: Mapping[str, Any]) -> Link | None:
    """The link that the measured flow goes through: the last one; None without tunnels."""
    links = links_of(subjects)
    return links[-1] if links else None


def carrying_link(subjects: Mapping[str, Any]) -> Link | None:
    """The link whose packets are on the test device: the lowest below the measured one."""
    links = links_of(subjects)
    current = links[-1] if links else None
    while current is not None:
        below = below_of(current, links)
        if below is None:
            break
        current = below
    return current


def below_of(link: Link, links: Sequence[Link]) -> Link | None:
    """The link that another one runs over, None if it runs over a device of the host."""
    remote = ipaddress.ip_address(link.ends[1])
    for other in links:
        if other is link:
            return None
        for text in other.addresses(1):
            network = ipaddress.ip_interface(text).network
            if network.version == remote.version and remote in network:
                return other
    return None


def mtus(subjects: Mapping[str, Any], path_mtu: int) -> dict[str, int]:
    """The MTU of every link by name, bytes; ``path_mtu`` is the largest outer packet.

    Raises InputError for one that cannot be.
    """
    links = links_of(subjects)
    found: dict[str, int] = {}
    for number, link in enumerate(links):
        below = below_of(link, links)
        room = found[below.name] if below is not None else path_mtu
        if link.underlay_mtu is not None:
            room = link.underlay_mtu
        wrong = explain_mtu(link, room)
        if wrong is not None:
            came, _comma, wanted = wrong.partition(", wanted ")
            raise InputError(f"tunnels.links[{number}] ({link.name}).mtu", came, wanted)
        found[link.name] = mtu_of(link, room)
    return found


def inner_mtu(subjects: Mapping[str, Any], path_mtu: int) -> int:
    """The MTU of the measured link, bytes; that of the path without tunnels."""
    link = measured_link(subjects)
    return path_mtu if link is None else mtus(subjects, path_mtu)[link.name]


def outer_addresses(subjects: Mapping[str, Any]) -> tuple[str, str] | None:
    """The addresses of the client and the server around the tunnels, None without tunnels."""
    link = carrying_link(subjects)
    return None if link is None else link.ends


def inner_addresses(subjects: Mapping[str, Any], family: str) -> tuple[str, str] | None:
    """The measured addresses of the client and the server, None without tunnels."""
    link = measured_link(subjects)
    if link is None:
        return None
    found = link.address(0, family), link.address(1, family)
    if found[0] is None or found[1] is None:
        raise DeclarationError(f"{link.name}.inner_{family}: none, wanted the measured addresses")
    return found[0], found[1]


def over_path(subjects: Mapping[str, Any], path_mtu: int, device_mtu: int) -> dict[str, Any]:
    """The subjects with ``underlay_mtu`` for links on a path that takes less than its device."""
    if path_mtu >= device_mtu or not (subjects.get("tunnels") or {}).get("links"):
        return dict(subjects)
    links = links_of(subjects)
    declared = [
        {"underlay_mtu": path_mtu, **item} if below_of(link, links) is None else item
        for link, item in zip(links, subjects["tunnels"]["links"], strict=True)
    ]
    return {**subjects, "tunnels": {**subjects["tunnels"], "links": declared}}
