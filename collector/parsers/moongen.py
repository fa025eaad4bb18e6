"""MoonGen and libmoon: the counters' interval lines and totals.

Formats: lua/stats.lua of libmoon. Plain counters print ``34.79 Mpps, 18927 Mbit/s (24494 Mbit/s
with framing)``; in the total line the parentheses after a number hold the standard deviation over
the intervals. Bytes are with FCS (``incl. CRC``); framing adds 20 bytes a frame. MoonGen before
libmoon has the packets so far in each line and its total in two lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from .base import Document, Problem, Reading, Record, Source, Status, in_order
from .rates import NUMBER, Printed, printed

TOOL = "moongen"

_FRAMING_BYTES = 20
_NUMBER = rf"-?{NUMBER}"
_DEVIATION = rf"\(StdDev (?P<{{}}>{NUMBER}|-?nan)\)"
# A run that was interrupted prints its totals behind the terminal's ^C.
_HEAD = r"^\s*(?:\^C)?\s*\[(?P<name>[^\]]+)\]\s*"
_INTERVAL = re.compile(
    rf"{_HEAD}(?P<way>TX|RX):\s*(?P<mpps>{_NUMBER})\s*Mpps,\s*"
    rf"(?P<l2>{_NUMBER})\s*Mbit/s\s*\(\s*(?P<l1>{_NUMBER})\s*Mbit/s with framing\s*\)\s*$"
)
_TOTAL = re.compile(
    rf"{_HEAD}(?P<way>TX|RX):\s*(?P<mpps>{NUMBER})\s*{_DEVIATION.format('mpps_sd')}\s*Mpps,\s*"
    rf"(?P<l2>{NUMBER})\s*{_DEVIATION.format('l2_sd')}\s*Mbit/s\s*"
    rf"\(\s*(?P<l1>{NUMBER})\s*Mbit/s with framing\s*\),\s*total (?P<packets>\d+) packets with "
    r"(?P<bytes>\d+) bytes\s*\((?P<crc>incl\.|excl\.) CRC\)\s*$"
)
_OLD = re.compile(
    rf"{_HEAD}(?P<way>Sent|Received) (?P<packets>\d+) packets, current rate "
    rf"(?P<mpps>{_NUMBER}) Mpps, (?P<l2>{_NUMBER}) MBit/s, "
    rf"(?P<l1>{_NUMBER}) MBit/s wire rate\.?\s*$"
)
_OLD_COUNT = re.compile(
    rf"{_HEAD}(?P<way>Sent|Received) (?P<packets>\d+) packets with (?P<bytes>\d+) bytes payload "
    r"\((?P<crc>including|excluding) CRC\)\.?\s*$"
)
_OLD_TOTAL = re.compile(
    rf"{_HEAD}(?P<way>Sent|Received) (?P<mpps>{NUMBER}) {_DEVIATION.format('mpps_sd')} Mpps, "
    rf"(?P<l2>{NUMBER}) {_DEVIATION.format('l2_sd')} MBit/s, "
    rf"(?P<l1>{NUMBER}) {_DEVIATION.format('l1_sd')} MBit/s wire rate on average\.?\s*$"
)
_FORMS = (_TOTAL, _INTERVAL, _OLD, _OLD_COUNT, _OLD_TOTAL)
_LOOSE = re.compile(
    rf"{_HEAD}(?:[TR]X:.*(?:Mpps|[Bb]it/s)|(?:Sent|Received) -?\d.*(?:Mpps|[Bb]it/s|packets with))"
)
_MORE = 1.001  # of what was sent: more than the handful of frames that others put on a link


@dataclass(frozen=True, slots=True, kw_only=True)
class MoonGenInterval:
    """One interval line: packet rate, L2 and L1 (with framing) bit rates.

    They are None where the line has a negative rate: the device's counter went backwards.
    ``packets`` is the number so far, which only MoonGen before libmoon prints.
    """

    packets_per_second: float | None
    throughput_bps: float | None
    wire_bps: float | None
    printed: str
    packets: int | None = None


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
    record ``suspect``, and so does a counter that received more than the only other one sent.
    """
    reading = Reading()
    open_: dict[tuple[str, str], _Counter] = {}
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
                Problem.of_line(
                    document.file,
                    line,
                    '"[name] TX: N Mpps, N Mbit/s (N Mbit/s with framing)" with decimal points',
                )
            )
            continue
        key = (match["name"], "tx" if match["way"] in {"TX", "Sent"} else "rx")
        counter = open_.setdefault(key, _Counter(line.number))
        counter.last = last
        if match.re is _OLD_COUNT:
            counter.count = match
        elif match.re in (_TOTAL, _OLD_TOTAL):
            reading.records.append(_total(document.file, match, key, open_.pop(key)))
        else:
            counter.intervals.append(_interval(match))
            counter.doubts += _doubts(match, line.number)
    reading.records.extend(_unfinished(document.file, key, one) for key, one in open_.items())
    reading.records = in_order(_more_received(reading.records))
    return reading


@dataclass(slots=True)
class _Counter:
    """What has been read of one counter before its total."""

    line: int
    last: int = 0
    intervals: list[MoonGenInterval] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    count: re.Match[str] | None = None  # the first of the two lines of an old total


def _more_received(records: list[Record]) -> list[Record]:
    """Mark a counter that received more packets than the only sending one sent."""
    sent = [r for r in records if isinstance(r, MoonGenResult) and r.direction == "tx"]
    received = [r for r in records if isinstance(r, MoonGenResult) and r.direction == "rx"]
    if len(sent) != 1 or len(received) != 1 or not sent[0].packets or not received[0].packets:
        return records
    more, one = received[0], sent[0]
    if received[0].packets <= _MORE * sent[0].packets:
        return records
    text = f"{more.packets} packets received, but only {one.packets} sent by {one.counter}"
    status = Status.SUSPECT if more.status is Status.OK else more.status
    marked = replace(more, status=status, warnings=(*more.warnings, text))
    return [marked if record is more else record for record in records]


def _match(document: Document, index: int) -> tuple[re.Match[str] | None, int]:
    """Match a counter line, joined with up to five following lines."""
    text = ""
    for used, part in enumerate(document.lines[index : index + 6], start=1):
        if used > 1 and (not part.text.strip() or part.text.lstrip(" ^C").startswith("[")):
            break
        text = f"{text} {part.text.strip()}".strip()
        for pattern in _FORMS:
            if match := pattern.match(text):
                return match, used
    return None, 1


def _interval(match: re.Match[str]) -> MoonGenInterval:
    rates = [float(match[name]) * 1e6 for name in ("mpps", "l2", "l1")]
    known = min(rates) >= 0
    return MoonGenInterval(
        packets_per_second=rates[0] if known else None,
        throughput_bps=rates[1] if known else None,
        wire_bps=rates[2] if known else None,
        printed=match[0].strip(),
        packets=int(match["packets"]) if "packets" in match.re.groupindex else None,
    )


def _agree(left: Printed, right: Printed) -> bool:
    """Whether two printed numbers overlap, with 0.2 % for means that were rounded apart."""
    slack = 0.002 * max(abs(left.value), abs(right.value))
    return left.low - slack <= right.high and right.low <= left.high + slack


def _doubts(match: re.Match[str], number: int | None = None) -> list[str]:
    """What in a line contradicts itself: L1 must be L2 plus 20 bytes a packet."""
    where = f"line {number}: " if number else ""
    mpps, l2, l1 = printed(match["mpps"]), printed(match["l2"]), printed(match["l1"])
    if min(mpps.value, l2.value, l1.value) < 0:
        return [f"{where}a negative rate: the counter went backwards"]
    framing = mpps.scaled(8 * _FRAMING_BYTES)
    added = Printed(l2.value + framing.value, l2.half + framing.half, "")
    if _agree(added, l1):
        return []
    return [
        f"{where}{match['l2']} Mbit/s and framing at {match['mpps']} Mpps are {added.value:.0f} "
        f"Mbit/s, printed is {match['l1']}"
    ]


def _total(
    file: str, match: re.Match[str], key: tuple[str, str], counter: _Counter
) -> MoonGenResult:
    warnings = [*counter.doubts, *_doubts(match)]
    count = counter.count if match.re is _OLD_TOTAL else match
    packets = int(count["packets"]) if count else None
    size = int(count["bytes"]) if count else None
    with_fcs = count is not None and count["crc"].startswith("incl")
    frame = size / packets if packets and size is not None else None
    if count is None:
        warnings.append("the line with packets and bytes is missing")
    if frame is not None and with_fcs:
        rate = printed(match["mpps"]).scaled(8 * frame)
        if not _agree(rate, printed(match["l2"])):
            warnings.append(
                f"{match['mpps']} Mpps of {frame:.1f} bytes are {rate.value:.0f} Mbit/s, "
                f"printed is {match['l2']}"
            )
    measured = packets != 0 and float(match["mpps"]) > 0
    if not measured:
        warnings.append("no packets: no measurement")
    return MoonGenResult(
        tool=TOOL,
        kind="summary",
        status=Status.FAILED if not measured else Status.SUSPECT if warnings else Status.OK,
        source=Source(file, counter.line, counter.last),
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
        intervals=tuple(counter.intervals),
    )


def _deviation(text: str) -> float | None:
    return None if "nan" in text else float(text) * 1e6


def _unfinished(file: str, key: tuple[str, str], counter: _Counter) -> MoonGenResult:
    """A counter without its total: the packets so far are those of the last line that has them."""
    last = counter.intervals[-1] if counter.intervals else None
    count = int(counter.count["packets"]) if counter.count else None
    return MoonGenResult(
        tool=TOOL,
        kind="intervals",
        status=Status.INCOMPLETE,
        source=Source(file, counter.line, counter.last),
        printed={"line": last.printed} if last else {},
        warnings=("no total line: interval samples only", *counter.doubts),
        counter=key[0],
        direction=key[1],
        packets=count if count is not None else last.packets if last else None,
        intervals=tuple(counter.intervals),
    )
