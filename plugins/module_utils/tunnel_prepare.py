# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare a change of the host's tunnel links, without effect.

Keys are new for a link when its device must be made, and are kept otherwise: a run that changes
nothing changes no key. Both hosts make them from the same seed, and name it by its generation, so
that two hosts can be told to hold keys of one seed.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from . import guard, tunnel_host, tunnel_offloads
from .host.run import run
from .host.settings import Plan
from .ipsec_host import is_local
from .kernel_state import declared
from .kernel_state.declared import DeclarationError
from .kernel_state.tunnel_facts import Facts
from .kernel_state.tunnel_link import Link, read_links
from .kernel_state.tunnel_overhead import explain_mtu, mtu_of, overhead
from .management import find_ancestry, plain_address
from .tunnel_commands import Place, by_hand
from .tunnel_host import Record, Row, TunnelError
from .tunnel_keys import SEED_BYTES, make_keys
from .tunnel_plan import TunnelPlan, plan, show, wanted_facts

ETHERNET_MTU = 1500


@dataclass(frozen=True)
class Change:
    """What is there, what shall be, and the way between."""

    places: Tuple[Place, ...]
    present: Mapping[str, Facts]
    before: Record
    after: Record
    steps: TunnelPlan
    keys: Mapping[str, str]
    old_keys: Mapping[str, str]
    preset: str
    offload_devices: Tuple[str, ...]
    managed: Tuple[str, ...]
    warnings: Tuple[str, ...]

    def declared_offloads(
        self, features: Mapping[str, tunnel_offloads.Features]
    ) -> Dict[str, Dict[str, str]]:
        """``device -> feature -> on|off`` that is declared, given what the devices have."""
        own = {place.link.name: place.link.offloads for place in self.places}
        return {
            device: tunnel_offloads.wanted(features[device], self.preset, own.get(device, ()))
            for device in self.devices
            if device in features
        }

    @property
    def devices(self) -> Tuple[str, ...]:
        """Devices whose offloads are declared: named ones, those below links, the links."""
        found = [*self.offload_devices]
        for place in self.places:
            if self.preset != tunnel_offloads.UNCHANGED:
                found.append(place.underlay)
            if self.preset != tunnel_offloads.UNCHANGED or place.link.offloads:
                found.append(place.link.name)
        return tuple(dict.fromkeys(found))

    def plan_offloads(self) -> Tuple[Plan, Dict[str, Dict[str, tunnel_offloads.Feature]]]:
        """The change of offloads with the devices as they are now."""
        recorded = dict(self.before.offloads)
        names = [*self.devices, *(key.split()[0] for key in recorded)]
        features = {name: tunnel_offloads.read(name, run) for name in dict.fromkeys(names)}
        there = {name: found for name, found in features.items() if found}
        return (
            tunnel_offloads.changes(there, self.declared_offloads(there), recorded),
            there,
        )

    def result(self) -> Dict[str, Any]:
        """The module's result, as if the target were reached."""
        offloads, _features = self.plan_offloads()
        target = {place.link.name: wanted_facts(place) for place in self.places}
        texts = tuple(
            show(places, facts)
            for places, facts in (
                (self.before.places, self.present), (self.places, target),
            )
        )  # fmt: skip
        lines = [
            "".join(f"offload {one.key} = {value}\n" for one, value in pairs)
            for pairs in (
                [(one, one.before) for one in offloads.changes],
                [(one, one.after) for one in offloads.changes],
            )
        ]
        return {
            "changed": bool(self.steps.actions) or bool(offloads.changes),
            "by_hand": by_hand(self.places),
            "actions": [
                {"verb": one.verb, "name": one.name, "why": list(one.why)}
                for one in self.steps.actions
            ],
            "links": self.shown_links(),
            "state": target,
            "renewed": list(self.steps.renewed),
            "diff": {"before": texts[0] + lines[0], "after": texts[1] + lines[1]},
            "guard": None,
        }

    def shown_links(self) -> List[Dict[str, Any]]:
        """Each link with what was computed for it."""
        return [
            {
                "name": place.link.name,
                "type": place.link.type,
                "underlay": place.underlay,
                "overhead": overhead(place.link),
                "mtu": place.mtu,
                "generation": self.after.generation(place.link.name),
            }
            for place in self.places
        ]


def prepare(parameters: Mapping[str, Any]) -> Change:
    """Read the host and plan. Nothing is changed.

    Raises :class:`DeclarationError` for what is declared wrongly, :class:`TunnelError` and
    :class:`~.guard.GuardError` for what the host refuses.
    """
    waited = guard.settle()
    before = tunnel_host.read_record()
    present_wanted = parameters["state"] == "present"
    links = read_links(parameters["links"] if present_wanted else [])
    missing = tunnel_host.missing_tool(links)
    if missing is not None:
        raise TunnelError(missing)
    devices = tunnel_host.read_devices()
    _check_foreign(links, before, devices)
    places = locate(links, devices)
    managed = _managed(parameters.get("management"))
    named = tuple(parameters["offload_devices"]) if present_wanted else ()
    for name in named:
        if name not in devices:
            raise DeclarationError(f"offload_devices: {name!r}, wanted a device of this host")
    check_management(places, named, managed, devices)
    recorded = {row.place.link.name: row.place for row in before.rows}
    known = [*recorded.values(), *(one for one in places if one.link.name not in recorded)]
    present = tunnel_host.read_present(known, devices)
    renew = [one.link.name for one in places if one.link.kind.keyed and parameters.get("rekey")]
    remains = tunnel_host.read_remains(before.places, devices)
    steps = plan(places, before.places, present, renew, remains)
    generation = parameters.get("generation") or secrets.token_hex(8)
    rows = tuple(Row(place, _generation(place, before, steps, generation)) for place in places)
    gone = [one.name for one in steps.actions if one.verb == "delete"]
    return Change(
        places=tuple(places), present=present, before=before,
        after=Record(rows, before.offloads), steps=steps,
        keys=_keys(places, steps, parameters.get("seed")),
        old_keys=tunnel_host.secrets_of(before.places, gone),
        preset=parameters["offloads"] if present_wanted else tunnel_offloads.UNCHANGED,
        offload_devices=named, managed=tuple(sorted(managed)), warnings=tuple(waited),
    )  # fmt: skip


def _generation(place: Place, before: Record, steps: TunnelPlan, generation: str) -> Optional[str]:
    if not place.link.kind.keyed:
        return None
    name = place.link.name
    return generation if name in steps.renewed else before.generation(name)


def _check_foreign(
    links: Sequence[Link], before: Record, devices: Mapping[str, Mapping[str, Any]]
) -> None:
    ours = {row.place.link.name for row in before.rows}
    for link in links:
        if link.name in devices and link.name not in ours:
            raise TunnelError(
                f"device {link.name} is there, and this role has not made it; wanted a name of "
                "its own"
            )


def locate(links: Sequence[Link], devices: Mapping[str, Mapping[str, Any]]) -> List[Place]:
    """Which end of each link this host is, what is below it, and the MTU that results.

    Raises :class:`DeclarationError`, also for an MTU that cannot be.
    """
    found: List[Place] = []
    errors: List[str] = []
    for link in links:
        end = own_end(link, found)
        below = _below(link, end, found)
        if below is not None:
            underlay, room = below.link.name, below.mtu
        else:
            underlay = link.device or tunnel_host.device_of(link.ends[end], link.ends[1 - end])
            if underlay not in devices:
                errors.append(f"{link.name}.device: {underlay!r}, wanted a device of this host")
                continue
            room = int(devices[underlay].get("mtu") or ETHERNET_MTU)
        room = link.underlay_mtu if link.underlay_mtu is not None else room
        wrong = explain_mtu(link, room)
        if wrong is not None:
            errors.append(f"{link.name}.mtu: {wrong}")
        found.append(Place(link, end, underlay, mtu_of(link, room)))
    if errors:
        raise DeclarationError("; ".join(errors))
    return found


def own_end(link: Link, earlier: Sequence[Place]) -> int:
    """0 or 1: which end this host is. Raises :class:`DeclarationError`."""
    inner = {
        str(ipaddress.ip_interface(text).ip)
        for place in earlier
        for text in place.link.addresses(place.end)
    }
    local = [end in inner or is_local(end) for end in link.ends]
    return declared.own_end(link.name, link.ends, local)


def _below(link: Link, end: int, earlier: Sequence[Place]) -> Optional[Place]:
    """The declared link that this one runs over, None if it runs over a device of the host."""
    remote = ipaddress.ip_address(link.ends[1 - end])
    for place in earlier:
        for text in place.link.addresses(place.end):
            network = ipaddress.ip_interface(text).network
            if network.version == remote.version and remote in network:
                return place
    return None


def _managed(given: Optional[Sequence[str]]) -> Tuple[str, ...]:
    """The addresses that manage this host."""
    if given is not None:
        return tuple(plain_address(text) or text for text in given)
    peer = find_ancestry().peer
    return (peer,) if peer else ()


def check_management(
    places: Sequence[Place],
    named: Sequence[str],
    managed: Sequence[str],
    devices: Mapping[str, Mapping[str, Any]],
) -> None:
    """Raises :class:`DeclarationError` for what would touch the way by which a host is managed."""
    for address in managed:
        device = tunnel_host.device_of("", address)
        networks = [
            ipaddress.ip_interface(f"{one['local']}/{one['prefixlen']}").network
            for one in devices.get(device, {}).get("addr_info", ())
        ]
        for place in places:
            where = f"{place.link.name}: "
            if device in (place.underlay, place.link.device):
                raise DeclarationError(
                    f"{where}runs over {device}, the management device ({address} is reached "
                    "through it); wanted a device of a test link"
                )
            for text in place.link.addresses(place.end):
                inner = ipaddress.ip_interface(text).network
                also = [one for one in networks if one.version == inner.version]
                if plain_address(address) and (
                    ipaddress.ip_address(address) in inner
                    or any(inner.overlaps(one) for one in also)
                ):
                    raise DeclarationError(
                        f"{where}{inner} would take the way to {address}, which manages this "
                        f"host through {device}; wanted another network inside"
                    )
        if device in named:
            raise DeclarationError(
                f"offload_devices: {device} is the management device; wanted another one"
            )


def _keys(places: Sequence[Place], steps: TunnelPlan, seed: Optional[str]) -> Dict[str, str]:
    """The keys of the links that are made."""
    fresh = [place for place in places if place.link.name in steps.renewed]
    if not fresh:
        return {}
    if seed is None:
        raise DeclarationError(
            f"seed: none, wanted one: {fresh[0].link.name} ({fresh[0].link.type}) needs keys"
        )
    try:
        data = base64.b64decode(seed, validate=True)
    except (binascii.Error, ValueError):
        raise DeclarationError(f"seed: wanted {SEED_BYTES} bytes in base64") from None
    found: Dict[str, str] = {}
    for place in fresh:
        found.update(make_keys(place.link, place.end, data))
    return found
