# SPDX-License-Identifier: GPL-2.0-or-later
"""Offloads of tunnel devices and of the devices below them, with the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Dict, List, Optional, Tuple

from .host import ethtool
from .host.errors import NotInstalledError
from .host.ethtool import Feature
from .host.run import Run
from .host.settings import Change, Plan, plan
from .shell_step import Step

UNCHANGED, ON, OFF = "unchanged", "on", "off"
# In an order in which each can be switched on: segmentation needs checksums and scatter-gather.
GROUP = (
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
)

Features = Mapping[str, Feature]


def read(device: str, run: Run) -> Dict[str, Feature]:
    """The features of a device; empty for one that has none, or is not there."""
    code, out, _err = run(["ethtool", ethtool.OPTIONS["offload"][0], device])
    return ethtool.parse_features(out) if code == 0 else {}


def look(device: str, run: Run) -> Dict[str, str]:
    """What :func:`shown` says of a device; empty on a host without ethtool, where no offload can
    have been declared."""
    try:
        return shown(read(device, run))
    except NotInstalledError:
        return {}


def wanted(features: Features, preset: str, own: Iterable[Tuple[str, bool]]) -> Dict[str, str]:
    """``feature -> on|off``: the preset for those that can be changed, then a link's own wishes."""
    found: Dict[str, str] = {}
    if preset != UNCHANGED:
        for name in GROUP:
            feature = features.get(name)
            if feature is not None and not feature.fixed:
                found[name] = preset
    for name, on in own:
        found[ethtool.long_name(name)] = ON if on else OFF
    return found


def changes(
    features: Mapping[str, Features],
    declared: Mapping[str, Mapping[str, str]],
    recorded: Mapping[str, str],
) -> Plan:
    """What leads from the present features to the declared ones, by key ``DEVICE FEATURE``."""
    current: Dict[str, Optional[str]] = {
        f"{device} {name}": ON if feature.on else OFF
        for device, found in features.items()
        for name, feature in found.items()
    }
    flat = {
        f"{device} {name}": value
        for device, values in declared.items()
        for name, value in values.items()
    }
    # One that is switched takes others with it, so all of a device are remembered beforehand.
    steps = plan(current, flat, recorded)
    before = {key: current[key] for key in flat if key not in recorded}
    kept = {key: value for key, value in before.items() if value is not None}
    return Plan(steps.changes, {**kept, **steps.record}, steps.lost)


def apply(steps: Sequence[Change], run: Run) -> List[str]:
    """Make the changes, those of one device in one command; what a device did not take, as text.

    Raises HostError with ethtool's own words when it refuses.
    """
    by_device: Dict[str, Dict[str, str]] = {}
    for change in steps:
        device, name = change.key.split()
        by_device.setdefault(device, {})[name] = change.after
    refused: List[str] = []
    for device, values in by_device.items():
        for name, now in ethtool.change("offload", device, values, run):
            refused.append(f"{name} of {device} wanted {values[name]}, is {now}")
    return refused


def by_hand(
    features: Mapping[str, Features],
    declared: Mapping[str, Mapping[str, str]],
    original: Mapping[str, str],
) -> List[str]:
    """The shell commands that switch declared features, as the devices took them, by device;
    ``original`` has by key ``DEVICE FEATURE`` what was there before, where that is known."""
    lines = []
    for device, values in declared.items():
        found = features.get(device, {})
        words = [
            word
            for name, value in values.items()
            if name in found and (ON if found[name].on else OFF) == value
            if original.get(f"{device} {name}") != value
            for word in (name, value)
        ]
        if words:
            argv = ("ethtool", ethtool.OPTIONS["offload"][1], device, *words)
            lines.append(Step(argv).shell())
    return lines


def shown(features: Features) -> Dict[str, str]:
    """``feature -> on|off``, with ``(fixed)`` for what the device cannot change."""
    return {
        name: (ON if features[name].on else OFF) + (" (fixed)" if features[name].fixed else "")
        for name in GROUP
        if name in features
    }
