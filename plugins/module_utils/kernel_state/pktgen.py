"""``/proc/net/pktgen``: what the kernel's packet generator was told, and what it has sent.

Format: pktgen_if_show, pktgen_thread_show and show_results in Linux net/core/pktgen.c (3.x to
6.x). Packet sizes there are without the frame check sequence (FCS), times are microseconds of the
monotonic clock, ``delay`` is nanoseconds between two packets of a device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from .errors import StateError, Text, number_lines

# The line of a finished run: total time, of which busy and idle, then packets.
RESULT = (
    r"Result:\s*OK:\s*(?P<us>\d+)\s*\(\s*c(?P<busy>\d+)\s*\+\s*d(?P<idle>\d+)\s*\)\s*"
    r"(?:usec|nsec|us),\s*(?P<packets>\d+)\s*\(\s*(?P<size>\d+)\s*byte"
    r"(?:,\s*(?P<frags>\d+)\s*frags)?\s*\)"
)
# A value of the report by name, wherever in its line it stands.
FIELDS: Mapping[str, str] = {
    "requested": r"\bParams:\s*count\s+(\d+)",
    "min_size": r"\bmin_pkt_size:\s*(\d+)",
    "max_size": r"\bmax_pkt_size:\s*(\d+)",
    "delay": r"\bdelay:\s*(\d+)",
    "clone": r"\bclone_skb:\s*(\d+)",
    "burst": r"\bburst:\s*(\d+)",
    "device": r"\bifname:\s*(\S+)",
    "flags": r"\bFlags:\s*(.*\S)",
    "sofar": r"\bpkts-sofar:\s*(\d+)",
    "current_errors": r"\bpkts-sofar:\s*\d+\s+errors:\s*(\d+)",
    "started": r"\bstarted:\s*(\d+)us",
    "stopped": r"\bstopped:\s*(\d+)us",
}
_SETTINGS: Mapping[str, str] = {
    "count": FIELDS["requested"],
    "pkt_size": FIELDS["min_size"],
    "max_pkt_size": FIELDS["max_size"],
    "delay": FIELDS["delay"],
    "clone_skb": FIELDS["clone"],
    "burst": FIELDS["burst"],
    "dst_min": r"\bdst_min:\s*([0-9.]+)",
    "dst_max": r"\bdst_max:\s*([0-9.]+)",
    "src_min": r"\bsrc_min:\s*([0-9.]+)",
    "src_max": r"\bsrc_max:\s*([0-9.]+)",
    "dst_mac": r"\bdst_mac:\s*([0-9A-Fa-f:]{17})",
    "udp_src_min": r"\budp_src_min:\s*(\d+)",
    "udp_src_max": r"\budp_src_max:\s*(\d+)",
    "udp_dst_min": r"\budp_dst_min:\s*(\d+)",
    "udp_dst_max": r"\budp_dst_max:\s*(\d+)",
    "queue_map_min": r"\bqueue_map_min:\s*(\d+)",
    "queue_map_max": r"\bqueue_map_max:\s*(\d+)",
}
_RESULT_LINE = re.compile(r"^Result:\s*(.*)$", re.MULTILINE)
_LIST = re.compile(r"^(Running|Stopped):\s*(.*)$")


@dataclass(frozen=True)
class Thread:
    """A generator thread: devices that send now, and devices that it has and that do not."""

    running: Tuple[str, ...]
    stopped: Tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A device's report. ``settings`` by the names under which they are written, as text.

    ``finished`` says that the run is over and its result is there; then ``elapsed_us`` is its
    whole time, and ``idle_us`` the part spent waiting for the next packet's time.
    """

    settings: Mapping[str, str]
    flags: Tuple[str, ...]
    sofar: int
    errors: int
    started_us: int
    stopped_us: int
    finished: bool
    result: str
    elapsed_us: Optional[int]
    idle_us: Optional[int]


def parse_thread(text: Text) -> Thread:
    """``/proc/net/pktgen/kpktgend_N``. Raises :class:`StateError` on other text."""
    found: Dict[str, Tuple[str, ...]] = {}
    for _number, line in number_lines(text):
        match = _LIST.match(line.strip())
        if match is not None:
            found[match.group(1)] = tuple(match.group(2).split())
    if set(found) != {"Running", "Stopped"}:
        raise StateError(1, f"{', '.join(found) or 'nothing'}", "Running: … and Stopped: …")
    return Thread(found["Running"], found["Stopped"])


def parse_report(text: str) -> Report:
    """``/proc/net/pktgen/DEVICE``.

    Raises :class:`StateError` on other text, and when the result contradicts the counters.
    """
    values = {name: _one(pattern, text) for name, pattern in _SETTINGS.items()}
    numbers: List[int] = []
    for name in ("sofar", "current_errors", "started", "stopped"):
        value = _one(FIELDS[name], text)
        if value is None:
            raise StateError(1, f"no {name}", "a device's report of pktgen")
        numbers.append(int(value))
    sofar, errors, started, stopped = numbers
    flags = _one(FIELDS["flags"], text) or ""
    line = _RESULT_LINE.search(text)
    match = re.search(RESULT, text)
    if match is not None and int(match.group("packets")) != sofar:
        raise StateError(1, f"{match.group('packets')} packets in the result", f"{sofar}, as sent")
    return Report(
        settings={name: value for name, value in values.items() if value is not None},
        flags=tuple(flags.replace(",", " ").split()),
        sofar=sofar,
        errors=errors,
        started_us=started,
        stopped_us=stopped,
        finished=match is not None,
        result=line.group(1).strip() if line is not None else "",
        elapsed_us=int(match.group("us")) if match is not None else None,
        idle_us=int(match.group("idle")) if match is not None else None,
    )


def _one(pattern: str, text: str) -> Optional[str]:
    match = re.search(pattern, text)
    return match.group(1) if match is not None else None
