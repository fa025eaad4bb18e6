# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading and making the settings of a forwarding test, one key at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional

from . import forwarding_rules
from .forwarding_commands import own_step
from .forwarding_declared import (
    ABSENT,
    DOWN,
    PRESENT,
    UNCHECKED,
    UP,
    Found,
    devices_of,
    management_device,
)
from .host import ethtool, irq, quiet, sysctl
from .host.errors import HostError, NotInstalledError
from .host.run import Run, output
from .host.settings import Change
from .kernel_state.errors import StateError
from .management import find_ancestry

ONLINE = Path("/sys/devices/system/cpu/online")
_QUIET = ("module", "channels", "offload", "irq")
_OWN = ("up", "mtu", "address", "neighbour", "route", "rules")


def look(params: Mapping[str, Any], run: Run) -> Found:
    """What the declaration is read against."""
    links = {item["ifname"]: item for item in _json(["ip", "-j", "link"], run) if item}
    names = [name for name in devices_of(params) if name in links]
    peer = find_ancestry().peer
    management = None
    if peer is not None:
        try:
            management = management_device(_json(["ip", "-j", "route", "get", peer], run))
        except StateError as error:
            raise HostError(f"ip -j route get {peer}: {error}") from None
    return Found(
        macs={name: str(links[name].get("address", "")).lower() for name in names},
        ipv6={
            name: {text: how for text, how in _addresses(name, run).items() if ":" in text}
            for name in names
        },
        features={name: _features(name, run) for name in names},
        interrupts={name: irq.of_device(name) for name in names},
        cpus=irq.parse_cpu_list(ONLINE.read_text()),
        knows_ipv6=(sysctl.ROOT / "net" / "ipv6").is_dir(),
        management=management,
        peer=peer,
    )


def _features(device: str, run: Run) -> Dict[str, str]:
    """Offloads of a device; none where nobody can tell, which matters only if some are declared."""
    try:
        return ethtool.read("offload", device, run)
    except NotInstalledError:
        return {}


def require_ipv6(run: Run) -> None:
    """HostError when forwarding IPv6 would take this host's way out from it.

    A router ignores the advertisements of others, and forgets what it has learnt from them.
    """
    learnt = [
        r
        for r in _json(["ip", "-6", "-j", "route", "show", "default"], run)
        if r.get("protocol") == "ra"
    ]
    if learnt:
        raise HostError(
            f"ipv6_forwarding: this host has learnt its default route over {learnt[0].get('dev')} "
            "from an advertisement, and would lose it; wanted a static one"
        )


def _json(argv: Sequence[str], run: Run) -> Any:
    text = output(argv, run)
    try:
        found = json.loads(text or "[]")
    except ValueError:
        raise HostError(f"{' '.join(argv)}: found text that is no JSON") from None
    if not isinstance(found, list):
        raise HostError(f"{' '.join(argv)}: found JSON of another shape; wanted a list")
    return found


def _addresses(device: str, run: Run) -> Dict[str, str]:
    """Addresses of a device with their lengths, present or unchecked, but link-local ones, which
    the kernel makes."""
    found = {}
    for item in _json(["ip", "-j", "address", "show", "dev", device], run):
        for entry in item.get("addr_info", []):
            if entry.get("scope") != "link":
                how = UNCHECKED if entry.get("nodad") else PRESENT
                found[f"{entry['local']}/{entry['prefixlen']}"] = how
    return found


def current(keys: Iterable[str], run: Run) -> Dict[str, Optional[str]]:
    """The present value of each key; None for what is not there (any more)."""
    wanted = list(keys)
    found: Dict[str, Optional[str]] = quiet.current(
        [key for key in wanted if key.split()[0] in _QUIET], run
    )
    listings: Dict[str, Any] = {}
    for key in wanted:
        kind, *words = key.split()
        if kind in _OWN:
            found[key] = _current(kind, words, listings, run)
        elif kind not in _QUIET:
            found[key] = sysctl.read(key)
    return {key: found[key] for key in wanted}


def _current(kind: str, words: List[str], listings: Dict[str, Any], run: Run) -> Optional[str]:
    if kind == "rules":
        return forwarding_rules.current(words[0], run)
    if kind == "route":
        family = "-6" if ":" in words[0] else "-4"
        return _route(_json(["ip", family, "-j", "route", "show", "exact", words[0]], run))
    device = words[0]
    if "link" not in listings:
        listings["link"] = {item.get("ifname"): item for item in _json(["ip", "-j", "link"], run)}
    link = listings["link"].get(device)
    if link is None:
        return None
    if kind == "mtu":
        return str(link["mtu"])
    if kind == "up":
        return UP if "UP" in link["flags"] else DOWN
    listing = f"{kind} {device}"
    if kind == "address":
        if listing not in listings:
            listings[listing] = _addresses(device, run)
        return str(listings[listing].get(words[1], ABSENT))
    if listing not in listings:
        entries = _json(["ip", "-j", "neighbour", "show", "nud", "permanent", "dev", device], run)
        listings[listing] = {entry["dst"]: entry.get("lladdr", ABSENT) for entry in entries}
    return str(listings[listing].get(words[1], ABSENT))


def _route(found: Sequence[Mapping[str, Any]]) -> str:
    """A route as ``via GATEWAY dev DEVICE``; ``absent`` without one."""
    if not found:
        return ABSENT
    return f"via {found[0].get('gateway', 'link')} dev {found[0].get('dev')}"


def require_routes(present: Mapping[str, Optional[str]], declared: Mapping[str, str]) -> None:
    """HostError when another route to a declared network is there: it could not be put back."""
    for key, wanted in declared.items():
        if key.startswith("route ") and present[key] not in (ABSENT, wanted):
            raise HostError(f"{key}: wanted {wanted}, is {present[key]}; wanted none of others")


def apply(changes: Sequence[Change], run: Run) -> None:
    """Make changes of one kind, in order. HostError when one does not hold."""
    kind = changes[0].key.split()[0]
    if kind in _QUIET:
        quiet.apply(changes, run)
        return
    for change in changes:
        if kind in _OWN:
            _apply(change, run)
        else:
            sysctl.write(change.key, change.after)


def _apply(change: Change, run: Run) -> None:
    kind, *words = change.key.split()
    if kind == "rules":
        forwarding_rules.change(words[0], change.after, run)
    else:
        output(own_step(change.key, change.after).argv, run)
