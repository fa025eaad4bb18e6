"""Sockets, cores and NUMA nodes of a host, and the bus of a device, as sysfs shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from .cpufreq import read as line_of

CPU = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")
NET = Path("/sys/class/net")
# Documentation/ABI/testing/sysfs-bus-pci
LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")


def cpus(folder: Path = CPU, nodes: Path = NODES) -> Dict[str, Any]:
    """``sockets``, ``cores`` (of all sockets together), ``threads_per_core`` (None where the kernel
    does not say), and the CPUs of each NUMA node."""
    sockets: Set[str] = set()
    cores: Set[Tuple[str, str]] = set()
    threads = 0
    for core in folder.glob("cpu[0-9]*"):
        package = line_of(core / "topology" / "physical_package_id")
        number = line_of(core / "topology" / "core_id")
        if package is None or number is None:
            continue
        threads += 1
        sockets.add(package)
        cores.add((package, number))
    return {
        "sockets": len(sockets) or None,
        "cores": len(cores) or None,
        "threads_per_core": threads // len(cores) if cores else None,
        "nodes": {
            path.name: line_of(path / "cpulist") for path in sorted(nodes.glob("node[0-9]*"))
        },
    }


def bus(device: str, net: Path = NET) -> Dict[str, Optional[str]]:
    """PCI ids, width and speed of the slot that a device sits in. A virtio device has its PCI
    device one folder up; a device without hardware has None of all."""
    folder = net / device / "device"
    found: Dict[str, Optional[str]] = dict.fromkeys(("pci_id", *LINK))
    if not folder.exists():
        return found
    real = folder.resolve()
    for place in (real, real.parent):
        vendor, model = line_of(place / "vendor"), line_of(place / "device")
        if (place / "class").exists() and vendor and model:
            found["pci_id"] = f"{vendor[2:]}:{model[2:]}"
            found.update({name: line_of(place / name) for name in LINK})
            return found
    return found
