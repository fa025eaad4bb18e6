"""The measured path: which port of the tester faces which port of the device under test."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.errors import InputError
from collector.forwarding.linerate import line_rate_fps
from collector.forwarding.trial import Trial

# Nobody's: a locally administered address that the generator is calibrated against. Ports drop
# such frames unseen, so that the device is not in the way.
NOBODY = "02:63:72:6f:73:73"


@dataclass(frozen=True, slots=True)
class Port:
    """A link between tester and device. ``device`` and ``ipv4`` (no prefix length) are of the
    tester's end, ``dut_device`` and ``dut_mac`` of the other; ``speed_mbps`` is of the link."""

    link: str
    device: str
    ipv4: str
    dut_device: str
    dut_mac: str
    speed_mbps: float


@dataclass(frozen=True, slots=True)
class Path:
    """From the first port through the device to the second, and back."""

    first: Port
    second: Port

    def line_fps(self, frame_bytes: int) -> float:
        """Frames a second and direction that the slower link carries."""
        return line_rate_fps(frame_bytes, self.speed_mbps)

    @property
    def speed_mbps(self) -> float:
        """Speed of the slower link."""
        return min(self.first.speed_mbps, self.second.speed_mbps)

    def request(
        self, trial: Trial, settings: Mapping[str, Any], to_nobody: bool = False
    ) -> dict[str, Any]:
        """The arguments of the module ``pktgen`` for a trial of a test with these settings;
        ``to_nobody`` sends to a station that does not exist."""
        ways = [(self.first, self.second)]
        if settings["direction"] == "bidirectional":
            ways.append((self.second, self.first))
        return {
            "ports": [
                {
                    "device": near.device,
                    "mac_destination": NOBODY if to_nobody else near.dut_mac,
                    "ipv4_source": near.ipv4,
                    "ipv4_destination": far.ipv4,
                    "receive_device": far.device,
                }
                for near, far in ways
            ],
            "frame_bytes": trial.frame_bytes,
            "rate_fps": trial.rate_fps,
            "duration_s": trial.duration_s,
            "flows": settings["flows"],
            "drain_s": settings["drain_s"],
        }


def find_path(
    tester: Mapping[str, Any],
    dut: Mapping[str, Any],
    tester_devices: Mapping[str, Any],
    dut_devices: Mapping[str, Any],
) -> Path:
    """The path of a tester with two ports.

    ``tester`` and ``dut`` are {name, links} with the links as the inventory has them; the devices
    are what ``provenance`` read of each host's (``address``, ``speed_mbps``), by name. Raises
    InputError that names the key of the inventory.
    """
    theirs = {str(link["name"]): link for link in dut["links"]}
    ports = []
    for link in tester["links"]:
        other = theirs.get(str(link["name"]))
        if other is not None:
            where = f"inventory: {tester['name']}.bench_links[{link['name']}]"
            ports.append(_port(link, other, tester_devices, dut_devices, where))
    if len(ports) != 2:
        names = ", ".join(port.link for port in ports) or "none"
        raise InputError(
            f"inventory: bench_links of {tester['name']} and {dut['name']}",
            f"links of the same name: {names}",
            "two, the path into the device and out of it",
        )
    return Path(*ports)


def _port(
    link: Mapping[str, Any],
    other: Mapping[str, Any],
    tester_devices: Mapping[str, Any],
    dut_devices: Mapping[str, Any],
    where: str,
) -> Port:
    near = tester_devices.get(link["device"]) or {}
    far = dut_devices.get(other["device"]) or {}
    mac = other.get("mac") or far.get("address")
    if not mac:
        raise InputError(f"{where}.peer_mac", "nothing", f"the MAC address of {other['device']}")
    return Port(
        link=str(link["name"]),
        device=str(link["device"]),
        ipv4=str(ipaddress.ip_interface(str(link["ipv4"])).ip),
        dut_device=str(other["device"]),
        dut_mac=str(mac),
        speed_mbps=_speed(link, [near.get("speed_mbps"), far.get("speed_mbps")], where),
    )


def _speed(link: Mapping[str, Any], told: Sequence[Any], where: str) -> float:
    """The declared speed, or else the lower of those that the devices at both ends say."""
    declared = link.get("speed_mbps")
    if declared is not None:
        if isinstance(declared, bool) or not isinstance(declared, (int, float)) or declared <= 0:
            raise InputError(f"{where}.speed_mbps", repr(declared), "Mbit/s, above 0")
        return float(declared)
    known = [float(speed) for speed in told if speed is not None and speed > 0]
    if not known:
        raise InputError(
            f"{where}.speed_mbps", "nothing", "Mbit/s: the devices do not say their speed"
        )
    return min(known)
