# SPDX-License-Identifier: GPL-2.0-or-later
"""One trial from its filters to its counters. Counts everything, judges nothing.

What the frames of a trial were is read after the traffic has stopped and the frames on their way
have had ``drain_s`` to arrive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .host.errors import HostError
from .host.run import Run
from .kernel_state.pktgen import Report
from .pktgen_count import Snapshot, grown, snapshot
from .pktgen_filter import NONE, Counted, Filter, NftFilter, add_filter, tables
from .pktgen_follow import await_begin
from .pktgen_run import Generator, elapsed_s
from .pktgen_trial import ETHERNET_BYTES, Port, Sender, Stream, Trial, configured_fps, senders

NET = Path("/sys/class/net")
TABLE = "crossover_pktgen_"
# A packet socket counts to here and then from 0 again.
SOCKET_LIMIT = 2**32 - 1
# A link that was set up just now, or given other queues, is there after some seconds.
NEGOTIATION_S = 10.0
# Counters that did not rest for this long are read while frames still arrive. Then they are read
# again, but not for ever.
SETTLE_S = 0.2
READINGS = 10


@dataclass(frozen=True)
class Watch:
    """A filter on a device, or why there is none, or none better."""

    device: str
    filter: Optional[Filter]
    reason: Optional[str]

    def read(self) -> Counted:
        """What it has counted; unknown without a filter."""
        return self.filter.read() if self.filter is not None else Counted(None, None, None)


def check_devices(trial: Trial, net: Path = NET) -> None:
    """HostError for a device of the trial that cannot do its part, before anything is changed."""
    for port in trial.ports:
        check_device(port.device, port.stream, net)
        queues = len(list((net / port.device / "queues").glob("tx-*")))
        if trial.queues > queues:
            raise HostError(f"queues: found {trial.queues}; {port.device} has {queues} to send by")
        if port.receive_device is not None:
            check_device(port.receive_device, port.stream, net)


def check_device(device: str, stream: Stream, net: Path = NET) -> None:
    """HostError when a device is not there, gets no carrier within some seconds, or has an MTU
    below the stream's."""
    folder = net / device
    if not folder.is_dir():
        raise HostError(f"device {device}: not on this host")
    carrier = _carrier(folder)
    limit = time.monotonic() + NEGOTIATION_S
    while carrier == "0" and time.monotonic() < limit:
        time.sleep(SETTLE_S)
        carrier = _carrier(folder)
    if carrier != "1":
        raise HostError(f"device {device}: carrier {carrier}; wanted a link that is up")
    mtu = int((folder / "mtu").read_text())
    if stream.packet_bytes - ETHERNET_BYTES > mtu:
        raise HostError(
            f"frame_bytes: {stream.packet_bytes + 4} needs an MTU of {stream.ip_bytes}; "
            f"{device} has {mtu}"
        )


def _carrier(folder: Path) -> str:
    """Whether a device has its link; in words for one that is down."""
    try:
        return (folder / "carrier").read_text().strip()
    except OSError:
        return "none, the device is down"


@contextmanager
def watched(ports: Sequence[Tuple[str, Stream]], run: Run) -> Iterator[List[Watch]]:
    """Filters on some devices, removed at the end whatever happens."""
    made: List[Watch] = []
    try:
        for number, (device, stream) in enumerate(ports):
            made.append(Watch(device, *add_filter(f"{TABLE}{number}", device, stream, run)))
        yield made
    finally:
        for watch in made:
            if watch.filter is not None:
                watch.filter.remove()


@dataclass(frozen=True)
class Reading:
    """Counters at the end: of the filters and of the ports, by device.

    ``settled``: devices whose count of received frames rested while both were read.
    """

    counted: Mapping[str, Counted]
    ports: Mapping[str, Snapshot]
    settled: Mapping[str, bool]


def read_settled(
    watches: Sequence[Watch], devices: Sequence[str], run: Run, sleep: Callable[[float], None]
) -> Reading:
    """Read all counters, and again as long as frames arrive meanwhile: a filter and a port that
    are not read at one moment would seem to disagree."""
    for _attempt in range(READINGS):
        ports = snapshot(devices, run)
        counted = {watch.device: watch.read() for watch in watches}
        sleep(SETTLE_S)
        later = snapshot(devices, run)
        settled = {
            name: ports[name].link.rx.get("packets") == later[name].link.rx.get("packets")
            for name in devices
        }
        if all(settled[watch.device] for watch in watches):
            break
    return Reading(counted, ports, settled)


def remove_left(run: Run) -> bool:
    """Remove filters that a killed call left; whether there were any."""
    left = [name for name in tables(run) if name.startswith(TABLE)]
    for name in left:
        NftFilter(name, run).remove()
    return bool(left)


def measure(
    trial: Trial,
    generator: Generator,
    run: Run,
    sleep: Callable[[float], None] = time.sleep,
) -> Dict[str, Any]:
    """Run a trial; the document ``trial`` of the module pktgen. HostError when it cannot be."""
    generator.clear()
    remove_left(run)
    made = senders(trial, generator.threads())
    watched_ports = [(p.receive_device, p.stream) for p in trial.ports if p.receive_device]
    devices = sorted({p.device for p in trial.ports} | {device for device, _s in watched_ports})
    with watched(watched_ports, run) as watches:
        try:
            generator.make(made, trial)
            before = snapshot(devices, run)
            started_at = datetime.now(timezone.utc)
            bounded = all(one.count for one in made)
            followed = generator.run(
                trial.duration_s,
                bounded,
                lambda: await_begin(trial.begin, trial.ports[0].stream),
                trial.begin.longest_s,
            )
            reports = {sender.name: generator.report(sender.name) for sender in made}
            sleep(trial.drain_s)
            reading = read_settled(watches, devices, run, sleep)
        finally:
            generator.clear()
    watch_of = {watch.device: watch for watch in watches}
    return {
        "started_at": started_at.isoformat(timespec="milliseconds"),
        "frame_bytes": trial.frame_bytes,
        "duration_s": trial.duration_s,
        "intended_fps": trial.rate_fps,
        "configured_fps": configured_fps(trial),
        "followed": None if followed is None else asdict(followed),
        "directions": [
            _direction(
                port,
                [(sender, reports[sender.name]) for sender in made if sender.port is port],
                idle_by_cpu(made, reports),
                before,
                reading,
                watch_of.get(port.receive_device or ""),
            )
            for port in trial.ports
        ],
    }


def _direction(
    port: Port,
    sent: Sequence[Tuple[Sender, Report]],
    idle: Mapping[int, float],
    before: Mapping[str, Snapshot],
    reading: Reading,
    watch: Optional[Watch],
) -> Dict[str, Any]:
    reports = [report for _sender, report in sent]
    near = grown(before[port.device], reading.ports[port.device])
    sofar = sum(report.sofar for report in reports)
    elapsed = elapsed_s(reports)
    found: Dict[str, Any] = {
        "device": port.device,
        "receive_device": port.receive_device,
        "sent": sofar,
        "errors": sum(report.errors for report in reports),
        "elapsed_s": elapsed,
        "offered_fps": sofar / elapsed if elapsed else None,
        "idle_s": min(idle[sender.cpu] for sender, _report in sent),
        "received": None,
        "received_by": None,
        "filter": NONE,
        "filter_reason": None,
        "settled": None,
        "senders": [
            {
                "name": sender.name,
                "cpu": sender.cpu,
                "queue": sender.queue,
                "sofar": report.sofar,
                "errors": report.errors,
                "started_us": report.started_us,
                "stopped_us": report.stopped_us,
                "result": report.result,
            }
            for sender, report in sent
        ],
        "port_driver": near["driver"],
        "far_driver": {},
    }
    counters: Dict[str, Optional[int]] = {
        "pktgen_sofar": sofar,
        "pktgen_errors": found["errors"],
        "port_tx": near["tx"].get("packets"),
        "port_tx_bytes": near["tx"].get("bytes"),
        "port_tx_errors": near["tx"].get("errors"),
        "port_tx_dropped": near["tx"].get("dropped"),
    }
    if port.receive_device is not None:
        name = port.receive_device
        far = grown(before[name], reading.ports[name])
        counters.update(far_counters(far["rx"], reading.counted[name]))
        found.update(arrived(counters, watch))
        found["settled"] = reading.settled[name]
        found["far_driver"] = far["driver"]
    return {**found, "counters": counters}


def idle_by_cpu(made: Sequence[Sender], reports: Mapping[str, Report]) -> Dict[int, float]:
    """Seconds that the thread of each CPU waited for a frame's turn.

    A thread waits for the next frame of any of its devices, so only the sum over them means
    anything.
    """
    found: Dict[int, float] = {}
    for sender in made:
        waited = (reports[sender.name].idle_us or 0) / 1e6
        found[sender.cpu] = found.get(sender.cpu, 0.0) + waited
    return found


def far_counters(rx: Mapping[str, int], counted: Counted) -> Dict[str, Optional[int]]:
    """Counters of a receiving port by the names of a trial's document."""
    return {
        "far_rx": rx.get("packets"),
        "far_rx_bytes": rx.get("bytes"),
        "far_rx_errors": rx.get("errors"),
        "far_rx_dropped": _total(rx, ("dropped", "missed_errors", "fifo_errors")),
        "far_rx_filter": counted.matched,
        "far_rx_filter_bytes": counted.matched_bytes,
        "far_rx_other": counted.other,
    }


def _total(counters: Mapping[str, int], names: Sequence[str]) -> Optional[int]:
    """The sum of those counters that the host has; None when it has none of them."""
    known = [counters[name] for name in names if name in counters]
    return sum(known) if known else None


def arrived(counters: Mapping[str, Optional[int]], watch: Optional[Watch]) -> Dict[str, Any]:
    """How many frames arrived, and which counter says so: the filter, or without one the port."""
    kind = watch.filter.kind if watch is not None and watch.filter is not None else NONE
    reason = watch.reason if watch is not None else None
    matched, port = counters.get("far_rx_filter"), counters.get("far_rx")
    if matched is not None and kind != NftFilter.kind and (port or 0) > SOCKET_LIMIT:
        matched, reason = (
            None,
            f"more than {SOCKET_LIMIT} frames, which a packet socket cannot count",
        )
    by = "filter" if matched is not None else "port" if port is not None else None
    return {
        "received": matched if matched is not None else port,
        "received_by": by,
        "filter": kind,
        "filter_reason": reason,
    }
