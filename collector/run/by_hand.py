"""The commands that build a configuration by hand, as the modules that applied it told them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collector.files import write_json

# What takes part in a configuration, in the order in which the role bench_run applies it.
_APPLIED = ("cipso", "keyed", "tunnels", "forwarding")


def commands(results: Mapping[str, Any], label: str | None) -> dict[str, list[str]]:
    """The commands by host; empty where there is nothing to build. ``results``: what modules
    returned, by part and host; ``label``: the level of the measured programs."""
    hosts: dict[str, list[str]] = {}
    for part in _APPLIED:
        for name, result in results.get(part, {}).items():
            hosts.setdefault(name, []).extend(result.get("by_hand", ()))
    if not any(hosts.values()):
        return {}
    if label is not None:
        for lines in hosts.values():
            lines.append(f"# netserver and netperf run under: runcon -l {label}")
    return hosts


def write(path: Path, hosts: Mapping[str, list[str]]) -> None:
    """Keep them as ``setup.json``."""
    write_json(path, {"schema": 1, "hosts": hosts})
