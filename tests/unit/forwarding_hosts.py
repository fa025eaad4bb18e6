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
TESTER = {"name": "tester", "control_address": "", "link": TESTER_LINKS[0], "links": TESTER_LINKS}
DUT = {"name": "dut", "control_address": "", "link": DUT_LINKS[0], "links": DUT_LINKS}
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
                name: {"forwards": True, "neighbours": {peer: "02:…"}, "irq": {"24": "0-1"}}
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
