"""MoonGen and libmoon: the counters' interval lines and totals.

Formats: lua/stats.lua of libmoon. Plain counters print ``34.79 Mpps, 18927 Mbit/s (24494 Mbit/s
with framing)``; in the total line the parentheses after a number hold the standard deviation over
the intervals. Bytes are with FCS (``incl. CRC``); framing adds 20 bytes a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .base import Document, Problem, Reading, Record, Source, Status, in_order
from .rates import NUMBER, Printed, printed

TOOL = "moongen"

_FRAMING_BYTES = 20
_INTERVAL = re.compile(
    rf"^\s*\[(?P<name>[^\]]+)\]\s*(?P<way>TX|RX):\s*(?P<mpps>{NUMBER})\s*Mpps,\s*"
    rf"(?P<l2>{NUMBER})\s*Mbit/s\s*\(\s*(?P<l1>{NUMBER})\s*Mbit/s with framing\s*\)\s*$"
)
_TOTAL = re.compile(
    rf"^\s*\[(?P<name>[^\]]+)\]\s*(?P<way>TX|RX):\s*(?P<mpps>{NUMBER})\s*"
    rf"\(StdDev (?P<mpps_sd>{NUMBER}|-?nan)\)\s*Mpps,\s*(?P<l2>{NUMBER})\s*"
    rf"\(StdDev (?P<l2_sd>{NUMBER}|-?nan)\)\s*Mbit/s\s*"
    rf"\(\s*(?P<l1>{NUMBER})\s*Mbit/s with framing\s*\),\s*total (?P<packets>\d+) packets with "
    r"(?P<bytes>\d+) bytes\s*\((?P<crc>incl\.|excl\.) CRC\)\s*$"
)
_OLD = re.compile(
    rf"^\s*\[(?P<name>[^\]]+)\]\s*(?P<way>Sent|Received) (?P<packets>\d+) packets, current rate "
    rf"(?P<mpps>{NUMBER}) Mpps, (?P<l2>{NUMBER}) MBit/s, (?P<l1>{NUMBER}) MBit/s wire rate\.?\s*$"
)
_LOOSE = re.compile(r"^\s*\[[^\]]+\]\s*(?:[TR]X:|Sent \d|Received \d).*(?:Mpps|[Bb]it/s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoonGenInterval:
    """One interval line: packet rate, L2 and L1 (with framing) bit rates."""

    packets_per_second: float
    throughput_bps: float
    wire_bps: float
    printed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoonGenResult(Record):
    """One counter's run: the total line with the interval lines before it.

    ``packets_per_second`` and ``throughput_bps`` are means over intervals, with their standard
    deviations; the throughput is of L2 frames with FCS, ``wire_bps`` of L1 with preamble and gap.
    ``frame_bytes`` is bytes / packets, with FCS as ``frame_basis`` says. Without a total line the
    record is ``incomplete`` and has intervals only.
    """

    counter: str
    direction: str
    packets_per_second: float | None = None
    packets_per_second_sd: float | None = None
    throughput_bps: float | None = None
    throughput_sd_bps: float | None = None
    wire_bps: float | None = None
    packets: int | None = None
    bytes: int | None = None
    frame_bytes: float | None = None
    frame_basis: str | None = None
    intervals: tuple[MoonGenInterval, ...] = ()


def recognise(document: Document) -> bool:
    """Whether the document holds counter lines of MoonGen."""
    return any(_LOOSE.match(line.text) for line in document.lines)


def parse(document: Document) -> Reading:
    """Read every counter; a counter line that does not match is a problem.

    The printed rates are checked against packets, bytes and each other; what disagrees makes the
    record ``suspect``.
    """
    reading = Reading()
    open_: dict[tuple[str, str], list[tuple[int, MoonGenInterval, list[str]]]] = {}
    index = 0
    while index < len(document.lines):
        line = document.lines[index]
        if not _LOOSE.match(line.text):
            index += 1
            continue
        match, used = _match(document, index)
        last = document.lines[index + used - 1].number
        reading.claimed.update(range(line.number, last + 1))
        index += used
        if match is None:
            reading.problems.append(
                Problem(
                    document.file,
                    line.number,
                    repr(line.text.strip()),
                    '"[name] TX: N Mpps, N Mbit/s (N Mbit/s with framing)" with decimal points',
                )
            )
            continue
        key = (match["name"], "tx" if match["way"] in {"TX", "Sent"} else "rx")
        if match.re is _TOTAL:
            source = Source(document.file, line.number, last)
            reading.records.append(_total(match, key, source, open_.pop(key, [])))
        else:
            open_.setdefault(key, []).append((line.number, _interval(match), _doubts(match)))
    reading.records.extend(_unfinished(document.file, key, lines) for key, lines in open_.items())
    reading.records = in_order(reading.records)
    return reading


def _match(document: Document, index: int) -> tuple[re.Match[str] | None, int]:
    """Match a counter line, joined with up to five following lines."""
    text = ""
    for used, part in enumerate(document.lines[index : index + 6], start=1):
        if used > 1 and (not part.text.strip() or part.text.lstrip().startswith("[")):
            break
        text = f"{text} {part.text.strip()}".strip()
        for pattern in (_TOTAL, _INTERVAL, _OLD):
            if match := pattern.match(text):
                return match, used
    return None, 1


def _interval(match: re.Match[str]) -> MoonGenInterval:
    return MoonGenInterval(
        packets_per_second=float(match["mpps"]) * 1e6,
        throughput_bps=float(match["l2"]) * 1e6,
        wire_bps=float(match["l1"]) * 1e6,
        printed=match[0].strip(),
    )


def _agree(left: Printed, right: Printed) -> bool:
    """Whether two printed numbers overlap, with 0.2 % for means that were rounded apart."""
    slack = 0.002 * max(abs(left.value), abs(right.value))
    return left.low - slack <= right.high and right.low <= left.high + slack


def _doubts(match: re.Match[str]) -> list[str]:
    """What in a line contradicts itself: L1 must be L2 plus 20 bytes a packet."""
    mpps, l2, l1 = printed(match["mpps"]), printed(match["l2"]), printed(match["l1"])
    framing = mpps.scaled(8 * _FRAMING_BYTES)
    added = Printed(l2.value + framing.value, l2.half + framing.half, "")
    if _agree(added, l1):
        return []
    return [
        f"{match['l2']} Mbit/s and framing at {match['mpps']} Mpps are {added.value:.0f} Mbit/s, "
        f"printed is {match['l1']}"
    ]


def _total(
    match: re.Match[str],
    key: tuple[str, str],
    source: Source,
    lines: list[tuple[int, MoonGenInterval, list[str]]],
) -> MoonGenResult:
    warnings = _doubts(match)
    packets, size = int(match["packets"]), int(match["bytes"])
    with_fcs = match["crc"] == "incl."
    frame = size / packets if packets else None
    if frame is not None and with_fcs:
        rate = printed(match["mpps"]).scaled(8 * frame)
        if not _agree(rate, printed(match["l2"])):
            warnings.append(
                f"{match['mpps']} Mpps of {frame:.1f} bytes are {rate.value:.0f} Mbit/s, "
                f"printed is {match['l2']}"
            )
    measured = packets > 0 and float(match["mpps"]) > 0
    if not measured:
        warnings.append("no packets: no measurement")
    return MoonGenResult(
        tool=TOOL,
        kind="summary",
        status=Status.FAILED if not measured else Status.SUSPECT if warnings else Status.OK,
        source=Source(source.file, min([n for n, _, _ in lines] + [source.line]), source.last_line),
        printed={"line": " ".join(match[0].split())},
        warnings=tuple(warnings),
        counter=key[0],
        direction=key[1],
        packets_per_second=float(match["mpps"]) * 1e6 if measured else None,
        packets_per_second_sd=_deviation(match["mpps_sd"]),
        throughput_bps=float(match["l2"]) * 1e6 if measured else None,
        throughput_sd_bps=_deviation(match["l2_sd"]),
        wire_bps=float(match["l1"]) * 1e6 if measured else None,
        packets=packets,
        bytes=size,
        frame_bytes=frame,
        frame_basis=("with FCS" if with_fcs else "without FCS") if frame is not None else None,
        intervals=tuple(interval for _, interval, _ in lines),
    )


def _deviation(text: str) -> float | None:
    return None if "nan" in text else float(text) * 1e6


def _unfinished(
    file: str, key: tuple[str, str], lines: list[tuple[int, MoonGenInterval, list[str]]]
) -> MoonGenResult:
    doubts = [doubt for _, _, found in lines for doubt in found]
    return MoonGenResult(
        tool=TOOL,
        kind="intervals",
        status=Status.INCOMPLETE,
        source=Source(file, lines[0][0], lines[-1][0]),
        printed={"line": lines[-1][1].printed},
        warnings=("no total line: interval samples only", *doubts),
        counter=key[0],
        direction=key[1],
        intervals=tuple(interval for _, interval, _ in lines),
    )
