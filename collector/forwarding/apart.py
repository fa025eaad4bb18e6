"""A trial whose frames begin on one tester and end on another, as calls of modules on both.

What comes of it is the document ``trial`` of the module ``pktgen``, put together from what the
sender of each direction and its receiver say, so that whoever judges it needs not know how many
testers there were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collector.forwarding.path import NOBODY

PKTGEN, SINK = "pktgen", "pktgen_sink"
# The second direction begins when it sees the first; so long it has to get ready for that.
LEAD_S = 1.0

# The name of a module and its arguments.
Call = tuple[str, dict[str, Any]]
# Makes a call on each of some hosts at once; what each returned, by host.
Together = Callable[[Mapping[str, Call]], Mapping[str, Mapping[str, Any]]]


def measure(asked: Mapping[str, Any], together: Together) -> dict[str, Any]:
    """Run a trial that ``Path.request`` describes; raises what ``together`` raises.

    Receivers begin to count before anything is sent, and end when all senders have ended.
    """
    ports = asked["ports"]
    counts = all(port["mac_destination"] != NOBODY for port in ports)
    watches = together(_begin_count(asked)) if counts else {}
    sent = together(_sends(asked, watches))
    # Senders have waited for late frames by then.
    stop: dict[str, Any] = {"state": "stopped", "drain_s": 0}
    receivers = [port["receive_host"] for port in ports] if counts else []
    counted = together(dict.fromkeys(receivers, (SINK, stop))) if counts else {}
    trials = [sent[port["host"]]["trial"] for port in ports]
    directions = []
    for port, trial in zip(ports, trials, strict=True):
        arrived = counted[port["receive_host"]]["received"][0] if counts else {}
        directions.append(_direction(port, trial, arrived))
    return {**trials[0], "directions": directions}


def _begin_count(asked: Mapping[str, Any]) -> dict[str, Call]:
    return {
        port["receive_host"]: (
            SINK,
            {
                "streams": [
                    {
                        "device": port["receive_device"],
                        "ipv4_source": port["ipv4_source"],
                        "ipv4_destination": port["ipv4_destination"],
                    }
                ],
                "frame_bytes": asked["frame_bytes"],
                "flows": asked["flows"],
            },
        )
        for port in asked["ports"]
    }


def _sends(asked: Mapping[str, Any], watches: Mapping[str, Mapping[str, Any]]) -> dict[str, Call]:
    """What each sender is asked: the second to follow the first where both have to be on the wire
    at the same time. They wait for late frames: those in their own rings are late as well."""
    found: dict[str, Call] = {}
    for port in asked["ports"]:
        arguments: dict[str, Any] = {
            "ports": [
                {
                    key: port[key]
                    for key in ("device", "mac_destination", "ipv4_source", "ipv4_destination")
                }
            ],
            "frame_bytes": asked["frame_bytes"],
            "rate_fps": asked["rate_fps"],
            "duration_s": asked["duration_s"],
            "flows": asked["flows"],
            "queues": asked["queues"],
            "drain_s": asked["drain_s"],
        }
        if watches and len(asked["ports"]) == 2:
            if not found:
                arguments["lead_s"] = LEAD_S
            else:
                # The first direction arrives on the port that the second is sent from.
                (watch,) = watches[port["host"]]["watches"]
                arguments["follow"] = {"device": watch["device"], "packets": watch["packets"]}
        found[port["host"]] = (PKTGEN, arguments)
    return found


def _direction(
    port: Mapping[str, Any], trial: Mapping[str, Any], arrived: Mapping[str, Any]
) -> dict[str, Any]:
    (sent,) = trial["directions"]
    counters = {**sent["counters"], **arrived.get("counters", {})}
    ends = {
        "host": port["host"],
        "receive_host": port["receive_host"],
        "receive_device": port["receive_device"],
    }
    found = {name: value for name, value in arrived.items() if name != "device"}
    return {**sent, **ends, **found, "counters": counters, "followed": trial.get("followed")}
