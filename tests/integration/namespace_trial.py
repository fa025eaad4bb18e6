"""Runs inside a network namespace with a veth pair ``left``/``right``; prints what it found.

``count``: a packet socket's filter on ``right`` against frames sent from ``left``.
``follow``: what waits on ``right`` for the first of them.
``forwarding RECORD``: the module's steps on both, with the real ``ip`` and ``/proc/sys``.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT, ROOT / "tests" / "unit" / "module_utils"):
    sys.path.insert(0, str(folder))

# Their imports come after the path to the project.
from ansible_collections.crossover.lab.plugins.module_utils import (  # noqa: E402 - as above
    forwarding_apply,
    pktgen_filter,
    pktgen_follow,
    pktgen_trial,
)
from ansible_collections.crossover.lab.plugins.module_utils.host import run  # noqa: E402 - as above

STREAM = pktgen_trial.Stream("198.18.0.1", "198.19.0.1", 1024, 4, 9, 60)


def device(name: str, address: str) -> dict[str, Any]:
    """A declared device that forwards."""
    return {
        "name": name,
        "mac": None,
        "mtu": 1400,
        "addresses": [address],
        "forwards": True,
        "ipv6": False,
        "offloads": None,
        "channels": None,
    }


DECLARED: dict[str, Any] = {
    "state": "present",
    "devices": [device("left", "198.18.0.2/24"), device("right", "198.19.0.2/24")],
    "ipv6_forwarding": None,
    "neighbours": [{"device": "left", "address": "198.18.0.1", "mac": "02:00:00:00:01:01"}],
    "routes": [{"destination": "198.19.128.0/24", "gateway": "198.19.0.1", "device": "right"}],
    "irq": "default",
    "irq_cpus": [],
    "rules": None,
    "rules_by": ["nft"],
    "modules": [],
}


def count() -> dict[str, Any]:
    """What the filter counts of ten frames of the stream and ten that differ."""
    from test_pktgen_filter import frame

    made = pktgen_filter.PacketFilter()
    made.add("right", STREAM)
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("left", 0))
    for number in range(10):
        for data in (
            frame(STREAM, sport=1024 + number % 4),
            frame(STREAM, sport=1028),
            frame(STREAM, magic=number),
        ):
            sender.send(b"\xff" * 6 + data[6:].ljust(STREAM.packet_bytes - 6, b"\0"))
    found = made.read()
    sender.close()
    return {"matched": found.matched, "again": made.read().matched, "removed": made.remove()}


def follow() -> dict[str, Any]:
    """When the first frame of the stream arrived among others, and when none does."""
    from test_pktgen_filter import frame

    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("left", 0))

    def send(**changed: Any) -> None:
        data = frame(STREAM, **changed)
        sender.send(b"\xff" * 6 + data[6:].ljust(STREAM.packet_bytes - 6, b"\0"))

    sent_at = []

    def later() -> None:
        time.sleep(0.3)
        send(magic=1)
        time.sleep(0.3)
        sent_at.append(time.monotonic())
        send()

    sending = threading.Thread(target=later)
    sending.start()
    arrived = pktgen_follow.first_frame("right", STREAM, 30)
    sending.join()
    never = pktgen_follow.first_frame("right", STREAM, 0.1)
    sender.close()
    return {"after": None if arrived is None else arrived - sent_at[0], "never": never}


def step(wanted: dict[str, Any], path: Path) -> list[str]:
    """Carry a declaration out; the keys that changed."""
    prepared = forwarding_apply.prepare(wanted, path, run.run)
    forwarding_apply.carry_out(prepared, path, run.run)
    return [change.key for change in prepared.plan.changes]


def forwarding(path: Path) -> dict[str, Any]:
    """The device under test made, made again, and put back."""
    first, second = step(DECLARED, path), step(DECLARED, path)
    code, neighbours, _err = run.run(["ip", "neighbour", "show", "nud", "permanent"])
    assert code == 0
    last = step({**DECLARED, "state": "absent"}, path)
    return {"first": first, "second": second, "neighbours": neighbours, "last": last}


if __name__ == "__main__":
    trials = {"count": count, "follow": follow, "forwarding": lambda: forwarding(Path(sys.argv[2]))}
    print(json.dumps(trials[sys.argv[1]]()))
