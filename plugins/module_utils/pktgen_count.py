# SPDX-License-Identifier: GPL-2.0-or-later
"""What the ports of a trial say they have sent, received and dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Dict

from .host import ethtool
from .host.errors import HostError, NotInstalledError
from .host.run import Run
from .kernel_state.errors import StateError
from .kernel_state.ip_link import Link, grown_between, parse_links_json


@dataclass(frozen=True)
class Snapshot:
    """Counters of a device: the kernel's own, and the driver's by name (empty if it has none)."""

    link: Link
    driver: Mapping[str, int] = field(default_factory=dict)


def snapshot(devices: Sequence[str], run: Run) -> Dict[str, Snapshot]:
    """The counters of some devices. HostError when one is not there."""
    found: Dict[str, Snapshot] = {}
    for device in devices:
        code, out, err = run(["ip", "-s", "-s", "-j", "link", "show", "dev", device])
        if code != 0:
            raise HostError(f"device {device}: {err.strip() or 'not on this host'}")
        try:
            (link,) = parse_links_json(out)
        except (StateError, ValueError) as error:
            raise HostError(f"device {device}: ip -s -j link: {error}") from None
        found[device] = Snapshot(link, _driver(device, run))
    return found


def _driver(device: str, run: Run) -> Dict[str, int]:
    """The driver's own counters; empty where it has none, or ethtool is missing."""
    try:
        code, out, _err = run(["ethtool", "-S", device])
    except NotInstalledError:
        return {}
    values = ethtool.parse_values(out) if code == 0 else {}
    return {name: int(value) for name, value in values.items() if value.isdecimal()}


def grown(before: Snapshot, after: Snapshot) -> Dict[str, Dict[str, int]]:
    """``rx`` and ``tx`` by the kernel's names, and ``driver``: those of its own that moved.

    HostError when a counter went back: the device was made anew meanwhile.
    """
    try:
        found = grown_between(before.link, after.link)
    except StateError as error:
        raise HostError(f"device {after.link.name}: {error}") from None
    moved = {
        name: count - before.driver[name]
        for name, count in after.driver.items()
        if name in before.driver and count != before.driver[name]
    }
    return {**found, "driver": moved}
