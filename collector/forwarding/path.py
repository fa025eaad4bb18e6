"""The measured path: which port of a tester faces which port of the device under test."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from collector.errors import InputError
from collector.forwarding.linerate import line_rate_fps
from collector.forwarding.trial import Trial

# Nobody's: a locally administered address that the generator is calibrated against. Ports drop
# such frames unseen, so that the device is not in the way.
NOBODY = "02:63:72:6f:73:73"


@dataclass(frozen=True, slots=True)
class Port:
    """A link between a tester and the device. ``host`` is the tester's name, ``device`` and
    ``ipv4`` (no prefix length) are of its end, ``dut_device`` and ``dut_mac`` of the other;
    ``speed_mbps`` is of the link."""

    link: str
    host: str
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

    @property
    def apart(self) -> bool:
        """Whether the two ports are of two testers."""
        return self.first.host != self.second.host

    @property
    def hosts(self) -> tuple[str, ...]:
        """The testers, the one that sends first before the other."""
        return tuple(dict.fromkeys([self.first.host, self.second.host]))

    def end(self, port: Port) -> str:
        """What a port of the path is called: by its device, and its host where there are two."""
        return f"{port.host} {port.device}" if self.apart else port.device

    def document(self) -> dict[str, Any]:
        """The path as results keep it."""
        return {
            name: {**asdict(port), "end": self.end(port)}
            for name, port in (("first", self.first), ("second", self.second))
        }

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
        ``to_nobody`` sends to a station that does not exist. Where the ports are of two testers,
        each says which host sends and which counts (``collector.forwarding.apart``)."""
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
                    **({"host": near.host, "receive_host": far.host} if self.apart else {}),
                }
                for near, far in ways
            ],
            "frame_bytes": trial.frame_bytes,
            "rate_fps": trial.rate_fps,
            "duration_s": trial.duration_s,
            "flows": settings["flows"],
            "queues": settings.get("queues", 1),  # older plans have none
            "drain_s": settings["drain_s"],
        }


def find_path(
    testers: Sequence[Mapping[str, Any]],
    dut: Mapping[str, Any],
    devices: Mapping[str, Mapping[str, Any]],
) -> Path:
    """The path of a tester with two ports, or of two testers with one each.

    ``testers`` and ``dut`` are {name, links} with the links as the inventory has them;
    ``devices`` are what ``provenance`` read of each host's (``address``, ``speed_mbps``), by host
    and name. Raises InputError that names the key of the inventory.
    """
    theirs = {str(link["name"]): link for link in dut["links"]}
    ports = []
    for tester in testers:
        for link in tester["links"]:
            other = theirs.get(str(link["name"]))
            if other is not None:
                ports.append(_port(tester["name"], link, dut["name"], other, devices))
    if len(ports) != 2 or ports[0].link == ports[1].link:
        names = ", ".join(f"{port.link} ({port.host})" for port in ports) or "none"
        hosts = [*(str(tester["name"]) for tester in testers), str(dut["name"])]
        raise InputError(
            f"inventory: bench_links of {', '.join(hosts)}",
            f"links of a tester and the device with one name: {names}",
            "two, the path into the device and out of it",
        )
    return Path(*ports)


def _port(
    host: str,
    link: Mapping[str, Any],
    dut: str,
    other: Mapping[str, Any],
    devices: Mapping[str, Mapping[str, Any]],
) -> Port:
    where = f"inventory: {host}.bench_links[{link['name']}]"
    near = devices.get(host, {}).get(link["device"]) or {}
    far = devices.get(dut, {}).get(other["device"]) or {}
    mac = other.get("mac") or far.get("address")
    if not mac:
        raise InputError(f"{where}.peer_mac", "nothing", f"the MAC address of {other['device']}")
    return Port(
        link=str(link["name"]),
        host=str(host),
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
