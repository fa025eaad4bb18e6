# SPDX-License-Identifier: GPL-2.0-or-later
"""A trial by kernel pktgen: what is declared, and the lines that make the kernel do it.

Frame sizes count the four bytes of the FCS, as RFC 2544 does; pktgen's packet sizes do not.
Rates are frames a second and direction. Nothing here touches the host. Commands and their limits:
Linux Documentation/networking/pktgen.rst and net/core/pktgen.c.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .host.errors import HostError
from .pktgen_begin import AT_ONCE, Begin, read_begin

FCS_BYTES = 4
ETHERNET_BYTES = 14
LEAST_FRAME_BYTES = 64
MOST_FRAME_BYTES = 65535
# The kernel reads at most ten digits of a number.
MOST_NUMBER = 9_999_999_999
# This delay is the kernel's word for "never".
FOREVER_NS = 0x7FFFFFFF
# At full speed a thread that has several devices would serve one of them only, as all are always
# due. This makes it take turns: it is more than the devices' starts lie apart in a few frames, and
# less than making two frames takes.
TURN_NS = 500
MAGIC = 0xBE9BE955  # begins the payload of every pktgen packet
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_DEVICE = re.compile(r"[^/\s:@]{1,15}")


@dataclass(frozen=True)
class Stream:
    """What tells the frames of one direction from all others.

    ``first_port`` and ``flows``: UDP source ports, one a flow. ``packet_bytes``: without FCS.
    """

    source: str
    destination: str
    first_port: int
    flows: int
    udp_port: int
    packet_bytes: int

    @property
    def last_port(self) -> int:
        """The highest UDP source port."""
        return self.first_port + self.flows - 1

    @property
    def ip_bytes(self) -> int:
        """The IPv4 packet's total length."""
        return self.packet_bytes - ETHERNET_BYTES


@dataclass(frozen=True)
class Port:
    """One direction: the sending device, where its frames go, and where they should arrive.

    ``receive_device`` None: they are counted on another host.
    """

    device: str
    mac_destination: str
    stream: Stream
    receive_device: Optional[str]


@dataclass(frozen=True)
class Trial:
    """``rate_fps`` None: as fast as the generator can. ``frames``: at most so many a direction.

    ``cpus`` empty: all that pktgen has threads for.
    """

    ports: Tuple[Port, ...]
    frame_bytes: int
    rate_fps: Optional[float]
    duration_s: float
    frames: Optional[int]
    queues: int
    cpus: Tuple[int, ...]
    drain_s: float
    udp_checksum: bool
    clone: int
    burst: int
    begin: Begin = AT_ONCE


@dataclass(frozen=True)
class Sender:
    """One pktgen device: a queue of a direction, on the thread of one CPU.

    ``delay_ns`` between two calls of the driver; ``count`` 0 means without end.
    """

    name: str
    port: Port
    queue: int
    cpu: int
    first_port: int
    flows: int
    delay_ns: int
    count: int


def read_stream(given: Mapping[str, Any], frame_bytes: int, where: str) -> Stream:
    """Check a stream's addresses, ports and size. HostError that names the key."""
    _within(f"{where}frame_bytes", frame_bytes, LEAST_FRAME_BYTES, MOST_FRAME_BYTES)
    addresses = [_address(where, name, given[name]) for name in ("ipv4_source", "ipv4_destination")]
    _within(f"{where}udp_port", given["udp_port"], 1, 65535)
    _within(f"{where}udp_source_port", given["udp_source_port"], 1, 65535)
    most = 65535 - int(given["udp_source_port"])
    _within(f"{where}flows", given["flows"], 1, most)
    return Stream(
        addresses[0],
        addresses[1],
        int(given["udp_source_port"]),
        int(given["flows"]),
        int(given["udp_port"]),
        frame_bytes - FCS_BYTES,
    )


def read_trial(given: Mapping[str, Any]) -> Trial:
    """Check a trial's parameters. HostError that names the key, what came and what was wanted."""
    frame_bytes = int(given["frame_bytes"])
    common = {name: given[name] for name in ("flows", "udp_port", "udp_source_port")}
    ports = tuple(
        _port({**common, **item}, frame_bytes, f"ports[{number}].")
        for number, item in enumerate(given["ports"])
    )
    if not 1 <= len(ports) <= 2:
        raise HostError(f"ports: found {len(ports)}; wanted one a direction, so one or two")
    if len({port.device for port in ports}) < len(ports):
        raise HostError(f"ports: found {ports[0].device} twice; wanted a device of its own each")
    if len({port.receive_device for port in ports if port.receive_device}) < len(
        [port for port in ports if port.receive_device]
    ):
        raise HostError("ports: found one receive_device twice; wanted one of its own each")
    rate = given["rate_fps"]
    if rate is not None and not 0 < rate <= MOST_NUMBER:
        raise HostError(f"rate_fps: found {rate}; wanted frames a second above 0, or none")
    duration = float(given["duration_s"])
    if not 0 < duration <= 86_400:
        raise HostError(f"duration_s: found {duration:g}; wanted above 0 and at most a day")
    if not 0 <= given["drain_s"] <= 600:
        raise HostError(f"drain_s: found {given['drain_s']:g}; wanted 0 to 600")
    if given["frames"] is not None:
        _within("frames", given["frames"], 1, MOST_NUMBER)
    _within("queues", given["queues"], 1, 1024)
    if given["flows"] < given["queues"]:
        raise HostError(
            f"flows: found {given['flows']} for {given['queues']} queues; wanted at least one flow "
            "a queue"
        )
    _within("burst", given["burst"], 1, 65535)
    _within("clone", given["clone"], 0, MOST_NUMBER)
    if given["clone"] and given["flows"] > given["queues"]:
        raise HostError(
            f"clone: found {given['clone']} with {given['flows']} flows; clones of a packet are of "
            "its flow, so wanted 0, or one flow a queue"
        )
    return Trial(
        ports,
        frame_bytes,
        float(rate) if rate is not None else None,
        duration,
        given["frames"],
        given["queues"],
        tuple(given["cpus"] or ()),
        float(given["drain_s"]),
        bool(given["udp_checksum"]),
        given["clone"],
        given["burst"],
        read_begin(given.get("lead_s", 0), given.get("follow")),
    )


def _port(given: Mapping[str, Any], frame_bytes: int, where: str) -> Port:
    for name in ("device", "receive_device"):
        value = given.get(name)
        if (value is not None or name == "device") and not _DEVICE.fullmatch(str(value)):
            raise HostError(f"{where}{name}: found {value!r}; wanted the name of a network device")
    mac = str(given["mac_destination"]).lower()
    if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1:
        raise HostError(
            f"{where}mac_destination: found {given['mac_destination']!r}; wanted the address of "
            "one station, such as 02:00:00:00:00:01"
        )
    stream = read_stream(given, frame_bytes, where)
    return Port(str(given["device"]), mac, stream, given.get("receive_device"))


def _address(where: str, name: str, value: Any) -> str:
    try:
        return str(ipaddress.IPv4Address(str(value)))
    except ValueError:
        raise HostError(f"{where}{name}: found {value!r}; wanted an IPv4 address") from None


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise HostError(f"{name}: found {value}; wanted {low} to {high}")


def share(total: int, parts: int) -> List[int]:
    """``total`` in ``parts`` whole numbers that differ by at most one."""
    return [total // parts + (1 if at < total % parts else 0) for at in range(parts)]


def frames_of(trial: Trial) -> Optional[int]:
    """How many frames a direction sends: as declared, or rate × duration; None: without end."""
    if trial.frames is not None:
        return trial.frames
    if trial.rate_fps is None:
        return None
    return max(1, round(trial.rate_fps * trial.duration_s))


def senders(trial: Trial, threads: Sequence[int]) -> Tuple[Sender, ...]:
    """The pktgen devices of a trial, given the CPUs that have a generator thread.

    Queues of a direction share its rate, its flows and its frames evenly, and go to the CPUs in
    turn. HostError when a declared CPU has no thread, or the rate cannot be expressed.
    """
    cpus = trial.cpus or tuple(threads)
    for cpu in cpus:
        if cpu not in threads:
            known = ", ".join(str(number) for number in threads)
            raise HostError(f"cpus: found {cpu}; wanted CPUs with a pktgen thread: {known}")
    places = len(trial.ports) * trial.queues
    delay = _delay_ns(trial, shared=places > len(cpus))
    total = frames_of(trial)
    counts = share(total, trial.queues) if total is not None else [0] * trial.queues
    if total is not None and total < trial.queues:
        raise HostError(
            f"queues: found {trial.queues} for {total} frames; wanted at least one frame a queue"
        )
    found: List[Sender] = []
    for queue in range(trial.queues):
        for port in trial.ports:
            flows = share(port.stream.flows, trial.queues)
            found.append(
                Sender(
                    name=f"{port.device}@{queue}",
                    port=port,
                    queue=queue,
                    cpu=cpus[len(found) % len(cpus)],
                    first_port=port.stream.first_port + sum(flows[:queue]),
                    flows=flows[queue],
                    delay_ns=delay,
                    count=counts[queue],
                )
            )
    return tuple(found)


def _delay_ns(trial: Trial, shared: bool) -> int:
    """Nanoseconds between two calls of the driver by one sender; a call hands over a burst."""
    if trial.rate_fps is None:
        return TURN_NS * trial.burst if shared else 0
    delay = round(1e9 * trial.queues * trial.burst / trial.rate_fps)
    if not 1 <= delay <= MOST_NUMBER or delay == FOREVER_NS:
        raise HostError(
            f"rate_fps: found {trial.rate_fps:g} over {trial.queues} queues, {delay} ns between "
            f"frames; wanted 1 to {MOST_NUMBER}"
        )
    return delay


def configured_fps(trial: Trial) -> Optional[float]:
    """The rate of a direction that whole nanoseconds allow; None: as fast as it can."""
    if trial.rate_fps is None:
        return None
    return 1e9 * trial.queues * trial.burst / _delay_ns(trial, shared=False)


def settings(sender: Sender, trial: Trial) -> Dict[str, str]:
    """What a pktgen device is told, by the names under which it is written, in order."""
    stream = sender.port.stream
    # The kernel goes up to, but not including, the highest source port; equal ones mean one flow.
    last = sender.first_port + (sender.flows if sender.flows > 1 else 0)
    told = {
        "count": sender.count,
        "pkt_size": stream.packet_bytes,
        "delay": sender.delay_ns,
        "clone_skb": trial.clone,
        "dst_mac": sender.port.mac_destination,
        "dst_min": stream.destination,
        "dst_max": stream.destination,
        "src_min": stream.source,
        "src_max": stream.source,
        "udp_src_min": sender.first_port,
        "udp_src_max": last,
        "udp_dst_min": stream.udp_port,
        "udp_dst_max": stream.udp_port,
        "queue_map_min": sender.queue,
        "queue_map_max": sender.queue,
    }
    if trial.burst > 1:
        told["burst"] = trial.burst
    return {name: str(value) for name, value in told.items()}


def flags(trial: Trial) -> Tuple[str, ...]:
    """Flags of a pktgen device. Nobody reads the time stamps, which cost time to make."""
    return ("NO_TIMESTAMP", "UDPCSUM") if trial.udp_checksum else ("NO_TIMESTAMP",)


def lines(sender: Sender, trial: Trial) -> Tuple[Tuple[str, str], ...]:
    """The writes that make a sender, as (file below /proc/net/pktgen, line), in order."""
    told = [f"{name} {value}" for name, value in settings(sender, trial).items()]
    told += [f"flag {name}" for name in flags(trial)]
    first = (f"kpktgend_{sender.cpu}", f"add_device {sender.name}")
    return (first, *((sender.name, line) for line in told))


def not_held(
    sender: Sender, trial: Trial, found: Mapping[str, str], found_flags: Sequence[str]
) -> List[str]:
    """What a sender was told and does not say of itself, in words. Empty when all was taken."""
    wrong = []
    for name, value in settings(sender, trial).items():
        is_now = found.get(name)
        if is_now is None or is_now.lower() != value:
            wrong.append(f"{name} wanted {value}, is {is_now}")
    wrong += [f"flag {name} is not set" for name in flags(trial) if name not in found_flags]
    return wrong
