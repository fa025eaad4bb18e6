# SPDX-License-Identifier: GPL-2.0-or-later
"""Counting test frames on a host that does not send them: a beginning, and later an end.

What was counted before the first frame is remembered in ``/run/crossover`` between the two. The
filter has to outlive the process that makes it, so only nftables will do; without it, the port's
own counters are all there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .host import record
from .host.errors import HostError
from .host.run import Run
from .kernel_state.ip_link import Link
from .pktgen_count import Snapshot, grown, snapshot
from .pktgen_filter import NftFilter, tables
from .pktgen_measure import (
    NET,
    Reading,
    Watch,
    arrived,
    check_device,
    far_counters,
    read_settled,
)
from .pktgen_trial import Stream, read_stream

TABLE = "crossover_sink_"
RECORD = record.RUN / "pktgen_sink.json"


def read_streams(given: Mapping[str, Any]) -> Tuple[Tuple[str, Stream], ...]:
    """The declared streams with their devices. HostError that names the key."""
    common = {name: given[name] for name in ("flows", "udp_port", "udp_source_port")}
    found = tuple(
        (item["device"], read_stream({**common, **item}, given["frame_bytes"], f"streams[{at}]."))
        for at, item in enumerate(given["streams"])
    )
    if not found:
        raise HostError("streams: found none; wanted one for each direction that is counted here")
    if len({device for device, _stream in found}) < len(found):
        raise HostError("streams: found one device twice; wanted a device of its own each")
    return found


def start(
    streams: Tuple[Tuple[str, Stream], ...], run: Run, path: Path = RECORD, net: Path = NET
) -> List[Dict[str, Any]]:
    """Begin to count; a count that somebody began before is given up."""
    for device, stream in streams:
        check_device(device, stream, net)
    forget(run, path)
    watches: List[Dict[str, Any]] = []
    for number, (device, stream) in enumerate(streams):
        table, reason = f"{TABLE}{number}", None
        try:
            NftFilter(table, run).add(device, stream)
        except HostError as error:
            table, reason = "", str(error)
        watches.append({"device": device, "table": table, "reason": reason})
    before = snapshot([device for device, _stream in streams], run)
    record.save(
        path,
        {
            "boot_id": record.boot_id(),
            "watches": watches,
            "before": {device: asdict(one) for device, one in before.items()},
        },
    )
    return [
        {**watch, "packets": before[watch["device"]].link.rx.get("packets")} for watch in watches
    ]


def stop(
    drain_s: float,
    run: Run,
    path: Path = RECORD,
    sleep: Callable[[float], None] = time.sleep,
) -> List[Dict[str, Any]]:
    """Wait for the last frames, read what was counted, and remove the filters.

    HostError when nothing was being counted in this boot.
    """
    data = record.load(path)
    if data is None or data.get("boot_id") != record.boot_id():
        raise HostError("state: found stopped, but nothing is being counted; wanted started before")
    sleep(drain_s)
    watches = [_watch(item, run) for item in data["watches"]]
    reading = read_settled(watches, [watch.device for watch in watches], run, sleep)
    found = [
        _received(watch, _remembered(data["before"][watch.device]), reading) for watch in watches
    ]
    forget(run, path)
    return found


def forget(run: Run, path: Path = RECORD) -> bool:
    """Remove our filters and the record; whether there was anything."""
    left = [name for name in tables(run) if name.startswith(TABLE)]
    for name in left:
        NftFilter(name, run).remove()
    there = path.exists()
    record.forget(path)
    return bool(left) or there


def _watch(item: Mapping[str, Any], run: Run) -> Watch:
    made = NftFilter(item["table"], run) if item["table"] else None
    return Watch(item["device"], made, item["reason"])


def _remembered(data: Mapping[str, Any]) -> Snapshot:
    link = data["link"]
    return Snapshot(Link(**{**link, "flags": tuple(link["flags"])}), data["driver"])


def _received(watch: Watch, before: Snapshot, reading: Reading) -> Dict[str, Any]:
    moved = grown(before, reading.ports[watch.device])
    counters = far_counters(moved["rx"], reading.counted[watch.device])
    return {
        "device": watch.device,
        **arrived(counters, watch),
        "settled": reading.settled[watch.device],
        "far_driver": moved["driver"],
        "counters": counters,
    }
