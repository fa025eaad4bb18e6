# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host of a forwarding test shall be, as settings by key, in the order of making them.

Keys beside those of :mod:`.host.quiet` (``offload DEV NAME``, ``channels DEV NAME``, ``irq N DEV``,
``module NAME``) and plain names of kernel parameters: ``up DEV``, ``mtu DEV``,
``address DEV ADDRESS/LENGTH``, ``neighbour DEV ADDRESS``, ``route NETWORK`` and ``rules KIND``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .host import ethtool, kmod
from .host.errors import HostError
from .kernel_state.errors import StateError

PRESENT, ABSENT = "present", "absent"
# An IPv6 address of which nobody else is asked whether he has it (duplicate address detection).
UNCHECKED = "present, unchecked"
UP, DOWN = "up", "down"
EMPTY, NO_RULES = "empty", "none"
NFT, IPTABLES = "nft", "iptables"
# The kernel turns it off for a device that forwards, and never on again.
LRO = "large-receive-offload"
# What iptables' filter table is made of; the last holds it.
IPTABLES_MODULES = ("x_tables", "ip_tables", "iptable_filter")


@dataclass(frozen=True)
class Found:
    """What a declaration is read against.

    ``macs``: devices and their MAC addresses. ``ipv6``: IPv6 addresses of each, but link-local
    ones, present or unchecked. ``features``: offloads of each, by ``ethtool -k``'s names.
    ``interrupts`` of each, in order. ``cpus`` that are online. ``knows_ipv6``: whether the kernel
    does. ``management``: the device that SSH comes over, and ``peer`` the address that it comes
    from; None if it does not.
    """

    macs: Mapping[str, str]
    ipv6: Mapping[str, Mapping[str, str]]
    features: Mapping[str, Mapping[str, str]]
    interrupts: Mapping[str, Sequence[int]]
    cpus: Sequence[int]
    knows_ipv6: bool
    management: Optional[str]
    peer: Optional[str]


def devices_of(params: Mapping[str, Any]) -> Tuple[str, ...]:
    """The declared devices. HostError when one is declared twice."""
    names = tuple(device["name"] for device in params["devices"])
    for name in names:
        if names.count(name) > 1:
            raise HostError(f"devices: found {name} twice; wanted each once")
    return names


def check(params: Mapping[str, Any], found: Found) -> None:
    """HostError for a declaration that this host cannot have, or that could cut SSH."""
    devices = devices_of(params)
    for device in params["devices"]:
        name = device["name"]
        if name not in found.macs:
            raise HostError(f"device {name}: not on this host")
        if name == found.management:
            raise HostError(
                f"device {name}: carries the SSH connection from {found.peer}; wanted a device of "
                "the test network"
            )
        if device["mac"] and device["mac"].lower() != found.macs[name]:
            raise HostError(
                f"device {name}: mac wanted {device['mac']}, is {found.macs[name]}; correct the "
                "inventory, or the cables"
            )
    for kind in ("neighbours", "routes"):
        for number, item in enumerate(params[kind]):
            if item["device"] not in devices:
                raise HostError(
                    f"{kind}[{number}].device: found {item['device']}; wanted one of devices: "
                    f"{', '.join(devices) or 'none declared'}"
                )
    covering = [
        *(text for device in params["devices"] for text in device["addresses"] or []),
        *(item["destination"] for item in params["routes"]),
    ]
    for text in covering:
        network = interface(text).network
        peer = ipaddress.ip_address(found.peer) if found.peer else None
        if peer is not None and peer.version == network.version and peer in network:
            raise HostError(
                f"{text}: covers {found.peer}, which manages this host over {found.management}; "
                "wanted networks of the test only"
            )


def interface(text: str) -> Any:
    """An address or network with its length. HostError on anything else."""
    try:
        if "/" not in text:
            raise ValueError
        return ipaddress.ip_interface(text)
    except ValueError:
        raise HostError(
            f"{text!r}: wanted an address with its length, such as 198.18.0.2/24"
        ) from None


def declare(params: Mapping[str, Any], found: Found, recorded: Mapping[str, str]) -> Dict[str, str]:
    """The settings by key. HostError as :func:`check`."""
    check(params, found)
    declared: Dict[str, str] = {}
    for name in params["modules"]:
        declared[f"module {kmod.check_name(name)}"] = kmod.LOADED
    for device in params["devices"]:
        declared.update(_link(device, found, recorded))
    if params["irq"] == "pinned":
        declared.update(_pinned(params, found))
    for device in params["devices"]:
        declared.update(_addresses(device, found, recorded))
    for item in params["neighbours"]:
        declared[f"neighbour {item['device']} {_ip(item['address'])}"] = item["mac"].lower()
    if params["ipv6_forwarding"] is not None:
        value = str(int(params["ipv6_forwarding"]))
        declared["net.ipv6.conf.all.forwarding"] = value
    for item in params["routes"]:
        network = interface(item["destination"]).network
        declared[f"route {network}"] = f"via {_ip(item['gateway'])} dev {item['device']}"
    declared.update(_rules(params["rules"], params["rules_by"]))
    return declared


def _link(device: Mapping[str, Any], found: Found, recorded: Mapping[str, str]) -> Dict[str, str]:
    name = device["name"]
    declared = {f"up {name}": UP}
    if device["mtu"] is not None:
        declared[f"mtu {name}"] = str(device["mtu"])
    for key, value in (device["channels"] or {}).items():
        declared[f"channels {name} {key}"] = str(value)
    offloads: Dict[str, bool] = {}
    for feature, value in (device["offloads"] or {}).items():
        if not isinstance(value, bool):
            raise HostError(f"offload {feature} of {name}: found {value!r}; wanted true or false")
        offloads[ethtool.long_name(feature)] = value
    lro_was_on = found.features[name].get(LRO) == "on" or f"offload {name} {LRO}" in recorded
    if device["forwards"] and lro_was_on:
        if offloads.get(LRO):
            raise HostError(f"offload {LRO} of {name}: found true; a device that forwards has none")
        offloads[LRO] = False
    for feature, value in offloads.items():
        declared[f"offload {name} {feature}"] = "on" if value else "off"
    return declared


def _pinned(params: Mapping[str, Any], found: Found) -> Dict[str, str]:
    """Every interrupt of every device on one CPU, in turn over all of them."""
    cpus = params["irq_cpus"] or list(found.cpus)
    for cpu in cpus:
        if cpu not in found.cpus:
            known = ", ".join(str(number) for number in found.cpus)
            raise HostError(f"irq_cpus: found {cpu}; wanted CPUs of this host: {known}")
    declared: Dict[str, str] = {}
    for device in params["devices"]:
        numbers = found.interrupts[device["name"]]
        if not numbers:
            raise HostError(
                f"irq: found pinned, but {device['name']} has no interrupts of its own to pin"
            )
        for number in numbers:
            declared[f"irq {number} {device['name']}"] = str(cpus[len(declared) % len(cpus)])
    return declared


def _addresses(
    device: Mapping[str, Any], found: Found, recorded: Mapping[str, str]
) -> Dict[str, str]:
    name = device["name"]
    declared: Dict[str, str] = {}
    addresses = [str(interface(text)) for text in device["addresses"] or []]
    if device["ipv6"] is False:
        # Turning IPv6 off takes the addresses away, and turning it on does not bring them back.
        prefix = f"address {name} "
        theirs = [*found.ipv6[name]]
        theirs += [
            key[len(prefix) :]
            for key, value in recorded.items()
            if key.startswith(prefix) and value != ABSENT and ":" in key[len(prefix) :]
        ]
        for text in theirs:
            declared[f"{prefix}{text}"] = ABSENT
        addresses = [text for text in addresses if ":" not in text]
    for text in addresses:
        # Asking takes a second, in which the address cannot be used. One that is there stays so.
        made = UNCHECKED if ":" in text else PRESENT
        declared[f"address {name} {text}"] = found.ipv6[name].get(text, made)
    if device["ipv6"] or (device["ipv6"] is False and found.knows_ipv6):
        declared[f"net.ipv6.conf.{_key(name)}.disable_ipv6"] = str(int(not device["ipv6"]))
    if device["forwards"] is not None:
        # Of the device that a packet comes in by; the other devices of the host need not forward.
        declared[f"net.ipv4.conf.{_key(name)}.forwarding"] = str(int(device["forwards"]))
    return declared


def _rules(rules: Optional[str], kinds: Sequence[str]) -> Dict[str, str]:
    if rules is None:
        return {}
    declared: Dict[str, str] = {}
    for kind in (NFT, IPTABLES):
        wanted = EMPTY if rules == EMPTY and kind in kinds else NO_RULES
        if kind == IPTABLES and wanted == EMPTY:
            declared.update({f"module {name}": kmod.LOADED for name in IPTABLES_MODULES})
        declared[f"rules {kind}"] = wanted
    return declared


def _ip(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise HostError(f"{text!r}: wanted an IP address") from None


def _key(device: str) -> str:
    """A device's part of a parameter's name: dots separate parts, so those within are slashes."""
    return device.replace(".", "/")


def management_device(routes: Any) -> Optional[str]:
    """The device in the answer of ``ip -j route get ADDRESS``. :class:`StateError` on others."""
    if not isinstance(routes, list) or not routes or not isinstance(routes[0], dict):
        raise StateError(1, "JSON of another shape", "ip -j route get")
    device = routes[0].get("dev")
    return str(device) if device is not None else None


def missing(present: Mapping[str, Optional[str]], declared: Mapping[str, str]) -> List[str]:
    """Declared settings that the host does not have, in words."""
    return [
        f"{key}: wanted {declared[key]}, but this host has no such setting"
        for key, value in present.items()
        if key in declared and value is None
    ]
