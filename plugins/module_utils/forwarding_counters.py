# SPDX-License-Identifier: GPL-2.0-or-later
"""What a forwarding host counts: its devices, its IP layer, its receive queues.

Formats: /proc/net/snmp (RFC 4293 names, a line of names before each line of values) and
/proc/net/softnet_stat (a line a CPU, hexadecimal; Linux net/core/net-procfs.c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Dict, List

from .host.errors import HostError
from .host.run import Run, output
from .host_identity import identity
from .kernel_state.errors import StateError
from .kernel_state.ip_link import parse_links_json

PROC = Path("/proc")
# Columns of softnet_stat whose names have not changed since Linux 2.6.
SOFTNET = ("processed", "dropped", "squeezed")
Counters = Dict[str, Dict[str, int]]


def parse_snmp(text: str, group: str) -> Dict[str, int]:
    """The counters of a group (``Ip``). HostError if the file has none."""
    rows = [line.split() for line in text.splitlines() if line.startswith(f"{group}:")]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        raise HostError(f"/proc/net/snmp: found no two lines of {group}; wanted names and values")
    names, values = rows
    return {name: int(values[at]) for at, name in enumerate(names) if at}


def parse_softnet(text: str) -> Dict[str, int]:
    """Sums over the CPUs."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return {name: sum(int(row[column], 16) for row in rows) for column, name in enumerate(SOFTNET)}


def read(devices: Sequence[str], run: Run, proc: Path = PROC) -> Dict[str, Any]:
    """``identity``, and ``counters`` by source: ``ip``, ``softnet``, ``DEVICE rx``, ``DEVICE tx``.

    HostError for a device that is not there.
    """
    counters: Counters = {
        "ip": parse_snmp((proc / "net" / "snmp").read_text(), "Ip"),
        "softnet": parse_softnet((proc / "net" / "softnet_stat").read_text()),
    }
    for device in devices:
        text = output(["ip", "-s", "-s", "-j", "link", "show", "dev", device], run)
        try:
            (link,) = parse_links_json(text)
        except (StateError, ValueError) as error:
            raise HostError(f"device {device}: ip -s -j link: {error}") from None
        counters[f"{device} rx"], counters[f"{device} tx"] = dict(link.rx), dict(link.tx)
    return {"identity": identity(), "counters": counters}


def grown(before: Mapping[str, Mapping[str, int]], after: Counters) -> Counters:
    """By how much each counter grew that both readings have. A set of which one went back (its
    device was made anew) is left out: nothing is known of it."""
    found: Counters = {}
    for source, now in after.items():
        then = before.get(source, {})
        known: List[str] = [
            name for name in now if name in then and not (source == "ip" and name in _NO_COUNTERS)
        ]
        if all(now[name] >= then[name] for name in known):
            found[source] = {name: now[name] - then[name] for name in known}
    return found


# Of the group Ip these are settings.
_NO_COUNTERS = ("Forwarding", "DefaultTTL")
