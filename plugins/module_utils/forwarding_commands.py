# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of a forwarding test's settings, by key (see forwarding_declared). Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import List, Optional

from .forwarding_declared import ABSENT, UNCHECKED
from .forwarding_rules import command_of
from .host import ethtool
from .shell_step import Step


def own_step(key: str, value: str) -> Step:
    """The command of ``ip`` for a device, an address, a neighbour or a route."""
    kind, *words = key.split()
    if kind in ("up", "mtu"):
        told = (value,) if kind == "up" else (kind, value)
        return Step(("ip", "link", "set", "dev", words[0], *told))
    if kind == "address":
        extra = ("nodad",) if value == UNCHECKED else ()
        verb = "delete" if value == ABSENT else "replace"
        return Step(("ip", "address", verb, words[1], "dev", words[0], *extra))
    if kind == "neighbour":
        place = (words[1], "dev", words[0])
        if value == ABSENT:
            return Step(("ip", "neighbour", "delete", *place))
        return Step(("ip", "neighbour", "replace", *place, "lladdr", value, "nud", "permanent"))
    if value == ABSENT:
        return Step(("ip", "route", "delete", words[0]))
    return Step(("ip", "route", "replace", words[0], *value.split()))


def by_hand(declared: Mapping[str, str], touched: Container[str]) -> List[str]:
    """The shell commands for those declared settings that were not so before, in order."""
    steps = [_step(key, value) for key, value in declared.items() if key in touched]
    return [step.shell() for step in steps if step is not None]


def _step(key: str, value: str) -> Optional[Step]:
    kind, *words = key.split()
    if not words:
        return Step(("sysctl", "-w", f"{key}={value}"))
    if kind in ("up", "mtu", "address", "neighbour", "route"):
        return own_step(key, value)
    if kind == "module":
        return Step(("modprobe", words[0]))
    if kind in ethtool.OPTIONS:
        return Step(("ethtool", ethtool.OPTIONS[kind][1], words[0], words[1], value))
    if kind == "irq":
        return Step(("tee", f"/proc/irq/{words[0]}/smp_affinity_list"), stdin=value)
    argv = command_of(words[0], value)
    return None if argv is None else Step(argv)
