"""A tester and a device under test that exist only as arithmetic, as the modules tell of them."""

from dataclasses import asdict, replace
from typing import Any

from collector.forwarding.path import NOBODY
from collector.forwarding.simulated import Device
from collector.forwarding.trial import Trial

TESTER_LINKS = [
    {"name": "left", "device": "eth1", "ipv4": "198.18.0.1/24", "speed_mbps": 1000},
    {"name": "right", "device": "eth2", "ipv4": "198.19.0.1/24", "speed_mbps": 1000},
]
DUT_LINKS = [
    {"name": "left", "device": "eth1", "ipv4": "198.18.0.2/24", "mac": "02:00:00:00:00:01"},
    {"name": "right", "device": "eth2", "ipv4": "198.19.0.2/24", "mac": "02:00:00:00:00:02"},
]
TESTER = {"name": "tester", "links": TESTER_LINKS}
DUT = {"name": "dut", "links": DUT_LINKS}
# The tester in two parts. Their test devices have one name, as those of like machines do.
NEAR = {"name": "near", "links": TESTER_LINKS[:1]}
FAR = {"name": "far", "links": [{**TESTER_LINKS[1], "device": "eth1"}]}
KERNEL = {"kernel": {"release": "6.12.0"}, "boot_id": "b1"}


class Hosts:
    """Answers trials as the module pktgen does, and counts as the device would."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.asked: list[dict[str, Any]] = []
        self.forwarded = 0
        self.ip_layer = True
        self.sent: dict[str, int] = {"eth1": 0, "eth2": 0}

    def module(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The document ``trial`` of the module."""
        self.asked.append(asked)
        to_nobody = asked["ports"][0]["mac_destination"] == NOBODY
        device = replace(self.device, directions=len(asked["ports"]))
        if to_nobody:
            device = replace(device, forwards=lambda _offered, _seconds: 0.0)
        trial = Trial(asked["frame_bytes"], asked["rate_fps"], asked["duration_s"])
        result = device.measure(trial)
        for one, port in zip(result.directions, asked["ports"], strict=True):
            if not to_nobody:
                self.forwarded += one.received or 0
                self.sent[port["receive_device"]] += one.received or 0
        return {
            "started_at": result.started_at,
            "frame_bytes": trial.frame_bytes,
            "directions": [{**asdict(one), "senders": [{"cpu": 0}]} for one in result.directions],
        }

    def dut(self, **changes: Any) -> dict[str, Any]:
        """What is known of the device after the traffic; ``changes`` are of its evidence."""
        state = {
            "devices": {
                name: {
                    "mtu": 1500,
                    "forwards": True,
                    "neighbours": {peer: "02:…"},
                    "irq": {"24": "0-1"},
                }
                for name, peer in (("eth1", "198.18.0.1"), ("eth2", "198.19.0.1"))
            },
            "base_chains": [],
            "iptables": None,
        }
        grown = {
            "ip": {"ForwDatagrams": self.forwarded} if self.ip_layer else {},
            "devices": {name: {"tx": {"packets": count}} for name, count in self.sent.items()},
        }
        evidence = {"boot_id": "b1"}
        return {
            "kernel": KERNEL,
            "before": {"evidence": evidence},
            "after": {"evidence": evidence, "state": state, "grown": grown, **changes},
        }


class Apart:
    """The same with the tester's two ports on two hosts, as calls of modules."""

    def __init__(self, device: Device, **followed: Any) -> None:
        self.device, self.followed = device, followed
        self.pace: dict[str, float] = {}  # of the generator of a host, if it is another
        self.calls: list[dict[str, Any]] = []
        self._counts: dict[str, dict[str, Any]] = {}
        self.total = Hosts(device)

    def together(self, calls: dict[str, Any]) -> dict[str, Any]:
        """What the modules of each host return, made at once."""
        self.calls.append(calls)
        return {
            host: getattr(self, f"_{name}")(host, asked) for host, (name, asked) in calls.items()
        }

    def _forwarding_evidence(self, host: str, _asked: dict[str, Any]) -> dict[str, Any]:
        return {"evidence": {"boot_id": f"boot of {host}"}}

    def _pktgen_sink(self, host: str, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("state") == "stopped":
            return {"received": [self._counts.pop(host)]}
        (stream,) = asked["streams"]
        self._counts[host] = {"stream": stream, "device": stream["device"]}
        return {"watches": [{"device": stream["device"], "packets": 7, "reason": None}]}

    def _pktgen(self, host: str, asked: dict[str, Any]) -> dict[str, Any]:
        (port,) = asked["ports"]
        to_nobody = port["mac_destination"] == NOBODY
        pace = self.pace.get(host, self.device.generator_fps)
        device = replace(self.device, directions=1, generator_fps=pace)
        if to_nobody:
            device = replace(device, forwards=lambda _offered, _seconds: 0.0)
        trial = Trial(asked["frame_bytes"], asked["rate_fps"], asked["duration_s"])
        result = device.measure(trial)
        made = asdict(result.directions[0])
        arrived = {key: made["counters"].pop(key) for key in list(made["counters"]) if "far" in key}
        for counted in self._counts.values():
            if counted.get("stream", {}).get("ipv4_source") == port["ipv4_source"]:
                del counted["stream"]
                counted.update(received=made["received"], settled=True, counters=arrived)
                self.total.forwarded += made["received"]
                self.total.sent[OUT[port["ipv4_source"]]] += made["received"]
        sent = {**made, "device": port["device"], "received": None, "receive_device": None}
        followed = self.followed or {"how": "in time", "lag_s": 0.002}
        return {
            "trial": {
                "started_at": result.started_at,
                "frame_bytes": trial.frame_bytes,
                "followed": followed if "follow" in asked else None,
                "directions": [
                    {k: v for k, v in sent.items() if k not in ("host", "receive_host")}
                ],
            }
        }


# The device's port that frames of a source leave by.
OUT = {"198.18.0.1": "eth2", "198.19.0.1": "eth1"}
