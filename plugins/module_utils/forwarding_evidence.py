# SPDX-License-Identifier: GPL-2.0-or-later
"""What the device under test says of itself: its state, and what it counted over a trial."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Optional

from . import forwarding_rules
from .host import ethtool, irq, record, sysctl
from .host.errors import HostError, NotInstalledError
from .host.run import Run, output
from .kernel_state.errors import StateError
from .kernel_state.interrupts import Interrupt, Interrupts, parse_interrupts, taken_between
from .kernel_state.ip_link import Link
from .kernel_state.snmp import parse_snmp, snmp_between
from .kernel_state.softnet import Softnet, parse_softnet, softnet_between
from .pktgen_count import Snapshot, grown, snapshot

PROC = Path("/proc")


def read_counters(devices: Sequence[str], run: Run, proc: Path = PROC) -> Dict[str, Any]:
    """Every counter of the host that a forwarding trial moves, ready for JSON."""
    try:
        softnet = parse_softnet((proc / "net" / "softnet_stat").read_text())
        snmp = parse_snmp((proc / "net" / "snmp").read_text())
        taken = parse_interrupts((proc / "interrupts").read_text())
    except (OSError, StateError) as error:
        raise HostError(f"counters of this host: {error}") from None
    return {
        "boot_id": record.boot_id(),
        "monotonic_s": time.monotonic(),
        "devices": {name: asdict(one) for name, one in snapshot(devices, run).items()},
        "queued": {name: _queue_drops(name, run) for name in devices},
        "softnet": {str(cpu): asdict(one) for cpu, one in softnet.items()},
        "snmp": {"Ip": snmp.get("Ip", {}), "Udp": snmp.get("Udp", {})},
        "interrupts": {
            str(number): {str(cpu): count for cpu, count in row.counts.items()}
            for name in devices
            for number in irq.of_device(name)
            for row in taken.rows
            if row.name == str(number)
        },
        "irqs": {name: [str(number) for number in irq.of_device(name)] for name in devices},
    }


def _queue_drops(device: str, run: Run) -> Optional[int]:
    """Frames that the device's queueing disciplines dropped; None where nobody counts them."""
    try:
        items = json.loads(output(["tc", "-s", "-j", "qdisc", "show", "dev", device], run))
        return sum(int(item.get("drops", 0)) for item in items)
    except (NotInstalledError, ValueError, TypeError):
        return None


def between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Dict[str, Any]:
    """By how much everything grew. HostError when the readings are not of one boot."""
    if before["boot_id"] != after["boot_id"]:
        raise HostError("since: found a reading of another boot; wanted one of this boot")
    try:
        softnet = softnet_between(_softnet(before), _softnet(after))
        ip = snmp_between(before["snmp"], after["snmp"], "Ip")
        taken = taken_between(_interrupts(before), _interrupts(after))
    except StateError as error:
        raise HostError(f"since: {error}") from None
    devices: Dict[str, Any] = {}
    for name in after["devices"]:
        if name not in before["devices"]:
            continue
        devices[name] = grown(_snapshot(before, name), _snapshot(after, name))
        first, second = before["queued"].get(name), after["queued"].get(name)
        known = first is not None and second is not None and second >= first
        devices[name]["queue_dropped"] = second - first if known else None
        numbers = after["irqs"].get(name, [])
        devices[name]["interrupts"] = {n: taken[n] for n in numbers if n in taken}
    return {
        "seconds": after["monotonic_s"] - before["monotonic_s"],
        "devices": devices,
        "softnet": {str(cpu): asdict(one) for cpu, one in softnet.items()},
        "ip": ip,
    }


def _softnet(data: Mapping[str, Any]) -> Dict[int, Softnet]:
    return {int(cpu): Softnet(**one) for cpu, one in data["softnet"].items()}


def _snapshot(data: Mapping[str, Any], name: str) -> Snapshot:
    one = data["devices"][name]
    return Snapshot(Link(**one["link"]), one["driver"])


def _interrupts(data: Mapping[str, Any]) -> Interrupts:
    rows = [
        Interrupt(
            number, {int(c): n for c, n in counts.items()}, sum(counts.values()), "of the device"
        )
        for number, counts in data["interrupts"].items()
    ]
    return Interrupts((), tuple(rows))


def read_state(devices: Sequence[str], run: Run) -> Dict[str, Any]:
    """The state that a forwarding configuration is about, as the kernel has it now."""
    return {
        "ipv6_forwarding": sysctl.read("net.ipv6.conf.all.forwarding") == "1",
        "devices": {name: _device(name, run) for name in devices},
        "base_chains": _base_chains(run),
        "iptables": forwarding_rules.legacy_tables(),
        "cpus": list(irq.parse_cpu_list(Path("/sys/devices/system/cpu/online").read_text())),
    }


def _device(name: str, run: Run) -> Dict[str, Any]:
    entries = json.loads(
        output(["ip", "-j", "neighbour", "show", "nud", "permanent", "dev", name], run) or "[]"
    )
    key = name.replace(".", "/")
    return {
        "mtu": int((irq.NET / name / "mtu").read_text()),
        "forwards": sysctl.read(f"net.ipv4.conf.{key}.forwarding") == "1",
        "neighbours": {entry["dst"]: entry.get("lladdr") for entry in entries},
        "irq": {str(n): irq.affinity(n) for n in irq.of_device(name)},
        "offloads": _ethtool("offload", name, run),
        "channels": _ethtool("channels", name, run),
    }


def _ethtool(kind: str, device: str, run: Run) -> Dict[str, str]:
    """Settings of one kind; empty where the device has none, or ethtool is missing."""
    try:
        return ethtool.read(kind, device, run)
    except NotInstalledError:
        return {}


def _base_chains(run: Run) -> List[str]:
    try:
        code, out, _err = run(["nft", "-j", "list", "ruleset"])
    except NotInstalledError:
        return []
    return list(forwarding_rules.base_chains(out)) if code == 0 else []
