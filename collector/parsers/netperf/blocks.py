"""Blocks that stand beside a result: confidence warning, interim results, -v 2 detail, histogram.

Formats: netlib.c (display_confidence, HIST_report, demo), nettest_bsd.c and nettest_omni.c
(ksink_fmt).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..base import Line
from .numbers import TRANSACTIONS, UNIT_PATTERN, fixed, general, integer, scaled, unit_factor
from .records import Bucket, Detail, Interim
from .tables import words_from

_WIDTH = r"(?P<{}>-?[0-9]+\.[0-9]+|-?nan|inf)%"
# The first of its lines has been lost where a mailing list took it for a heading.
_WARNING = re.compile(
    r"(?:!!! WARNING\s+)?"
    r"!!! Desired confidence was not achieved within the specified iterations\.\s+"
    r"!!! This implies that there was variability in the test environment that\s+"
    r"!!! must be investigated before going further\.\s+"
    rf"!!! Confidence intervals: Throughput : {_WIDTH.format('throughput')}\s+"
    rf"!!! Local CPU util : {_WIDTH.format('local')}\s+"
    rf"!!! Remote CPU util : {_WIDTH.format('remote')}(?=\s|\Z)"
)
_INTERIM = re.compile(
    rf"\s*Interim result:\s+(?P<rate>[0-9]+\.[0-9]{{2}}|-?nan|inf)"
    rf"\s+(?P<unit>{UNIT_PATTERN}|{TRANSACTIONS}|Usec)/s"
    r"\s+over\s+(?P<over>[0-9]+\.[0-9]{2,3})\s+seconds"
    r"(?:\s+ending at\s+(?P<end>[0-9]{5,12}\.[0-9]{3}))?\s*"
)
_INTERIM_START = re.compile(r"\s*Interim result\b")
# The same in key=value output, a line each.
_INTERIM_KEYS = (
    re.compile(r"\s*NETPERF_INTERIM_RESULT\[[0-9]+\]=(?P<rate>-?[0-9]+\.[0-9]{2}|-?nan|inf)\s*"),
    re.compile(rf"\s*NETPERF_UNITS\[[0-9]+\]=(?P<unit>{UNIT_PATTERN}|{TRANSACTIONS}|Usec)/s\s*"),
    re.compile(r"\s*NETPERF_INTERVAL\[[0-9]+\]=(?P<over>[0-9]+\.[0-9]{3})\s*"),
    re.compile(r"\s*NETPERF_ENDING\[[0-9]+\]=(?P<end>[0-9]{5,12}\.[0-9]{3})\s*"),
)
# One unit can be wider than the eight places its column has: "MBytes  ".
_COUNTED = r"(?P<counted>[A-Za-z0-9^]+)"
_STREAM_DETAIL = re.compile(
    rf"Alignment Offset {_COUNTED} (?P=counted) (?P<sent>Sends|Recvs) (?P=counted)"
    r" (?P<received>Recvs|Sends) Local Remote Local Remote Xfered Per Per"
    r" (?P<first>Send|Recv) (?P<second>Recv|Send) (?P=first) (?P=second)"
    r" (?P=first) \(avg\) (?P=second) \(avg\)(?=\s|\Z)"
)
_RR_DETAIL = re.compile(
    r"Alignment Offset RoundTrip Trans Throughput Local Remote Local Remote Latency Rate"
    rf" (?P<unit>{UNIT_PATTERN}) ?/s Send Recv Send Recv usec/Tran per sec Outbound Inbound"
    r"(?=\s|\Z)"
)
_ALIGN_DETAIL = re.compile(
    r"Alignment Offset Local Remote Local Remote Send Recv Send Recv(?=\s|\Z)"
)
_MSS = re.compile(r"Maximum Segment Size \(bytes\)(?=\s|\Z)")
_HISTOGRAM_ROWS = (
    ("UNIT_USEC", 1), ("TEN_USEC", 10), ("HUNDRED_USEC", 100), ("UNIT_MSEC", 1000),
    ("TEN_MSEC", 10_000), ("HUNDRED_MSEC", 100_000), ("UNIT_SEC", 1_000_000),
    ("TEN_SEC", 10_000_000),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Widths:
    """Full widths of the warning block, in % of the mean."""

    throughput: float | None
    local: float | None
    remote: float | None


@dataclass(frozen=True, slots=True)
class DetailBlock:
    """A -v 2 block: its values, transactions a second where it has them, cells as printed."""

    detail: Detail
    transactions_per_second: float | None
    printed: dict[str, str]
    requests: bool | None  # of a request/response test; None: of either


@dataclass(frozen=True, slots=True)
class Histogram:
    """A latency histogram; ``total`` is None if its last line is missing."""

    buckets: tuple[Bucket, ...]
    total: int | None
    over: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A block that begins like one of these and cannot be read."""

    wanted: str


def read_warning(lines: tuple[Line, ...], at: int) -> tuple[Widths | Broken, int] | None:
    """The warning that an interval was not achieved; its percentages are full widths."""
    if not lines[at].text.strip().startswith("!!!"):
        return None
    text = " ".join(w.text for w in words_from(lines, at, 14))
    match = _WARNING.match(text)
    if match is None:
        count = 1
        while at + count < len(lines) and lines[at + count].text.strip().startswith("!!!"):
            count += 1
        return Broken("the six lines of netperf's confidence warning"), count
    used = _lines_of(lines, at, match[0])
    if used is None:
        return Broken("the six lines of netperf's confidence warning"), 1
    return Widths(*(general(match[key]) for key in ("throughput", "local", "remote"))), used


def _lines_of(lines: tuple[Line, ...], at: int, matched: str) -> int | None:
    """How many lines ``matched`` (words joined by blanks) takes; None if it ends inside one."""
    words = words_from(lines, at, 16)
    last = words[len(matched.split()) - 1]
    return last.line + 1 - at if last.last else None


def read_interim(lines: tuple[Line, ...], at: int) -> tuple[Interim | Broken, int] | None:
    """One interim result, perhaps wrapped, or as four lines of key=value output."""
    if lines[at].text.lstrip().startswith("NETPERF_INTERIM_RESULT["):
        return _interim_keys(lines, at)
    if not _INTERIM_START.match(lines[at].text):
        return None
    # The longer form first: the line may have been broken before "ending at".
    for count in (2, 1):
        part = lines[at : at + count]
        if len(part) < count or not part[-1].text.strip():
            continue
        match = _INTERIM.fullmatch(" ".join(line.text.strip() for line in part))
        if match is None:
            continue
        if match["unit"] == "Usec":
            break
        return _made_interim(match["rate"], match["unit"], match["over"], match["end"]), count
    wanted = "'Interim result: RATE UNIT/s over SECONDS seconds ending at TIME'"
    return Broken(wanted), 1


def _interim_keys(lines: tuple[Line, ...], at: int) -> tuple[Interim | Broken, int]:
    found: dict[str, str] = {}
    for count, pattern in enumerate(_INTERIM_KEYS):
        text = lines[at + count].text if at + count < len(lines) else ""
        match = pattern.fullmatch(text)
        if match is None or match.groupdict().get("unit") == "Usec":
            wanted = "the four lines NETPERF_INTERIM_RESULT, _UNITS, _INTERVAL and _ENDING"
            return Broken(wanted), max(count, 1)
        found |= match.groupdict()
    return _made_interim(found["rate"], found["unit"], found["over"], found["end"]), 4


def _made_interim(rate: str, unit: str, over: str, end: str | None) -> Interim:
    factor, value = unit_factor(unit), fixed(rate, 2)
    return Interim(
        end_s=float(end) if end else None,
        interval_s=float(over),
        throughput_bps=scaled(value, factor) if value is not None and factor else None,
        transactions_per_second=value if unit == TRANSACTIONS else None,
    )


def read_detail(lines: tuple[Line, ...], at: int) -> tuple[DetailBlock | Broken, int] | None:
    """A block that begins with ``Alignment Offset``; MSS is :func:`read_mss`."""
    if not re.match(r"\s*Alignment\s+Offset\b", lines[at].text):
        return None
    text = " ".join(word.text for word in words_from(lines, at, 14))
    for pattern, build in ((_STREAM_DETAIL, _stream), (_RR_DETAIL, _rr), (_ALIGN_DETAIL, _align)):
        match = pattern.match(text)
        if match is None:
            continue
        head = _lines_of(lines, at, match[0])
        if head is None or at + head >= len(lines):
            break
        words = words_from(lines, at + head, 3)
        wide = {_STREAM_DETAIL: 9, _RR_DETAIL: 8}.get(pattern, 4)
        if len(words) < wide or not words[wide - 1].last:
            break
        try:
            block = build([word.text for word in words[:wide]], match)
        except ValueError:
            break
        return block, words[wide - 1].line + 1 - at
    return Broken("a whole block of -v 2 with its row"), 1


def _stream(cells: list[str], match: re.Match[str]) -> DetailBlock:
    align_local, align_remote, offset_local, offset_remote = map(integer, cells[:4])
    moved = general(cells[4])
    per_first, first = fixed(cells[5], 2), integer(cells[6])
    per_second, second = fixed(cells[7], 2), integer(cells[8])
    sending = match["first"] == "Send"
    if (match["sent"] == "Sends") != sending or match["first"] == match["second"]:
        raise ValueError("Sends and Recvs do not agree with the line below")
    moved = moved if match["counted"] == "Bytes" else None
    if sending:
        detail = Detail(
            send_align_local=align_local, recv_align_remote=align_remote,
            send_offset_local=offset_local, recv_offset_remote=offset_remote,
            bytes_per_send=per_first, sends=first, bytes_per_recv=per_second, recvs=second,
            bytes_transferred=moved,
        )  # fmt: skip
    else:
        detail = Detail(
            recv_align_local=align_local, send_align_remote=align_remote,
            recv_offset_local=offset_local, send_offset_remote=offset_remote,
            bytes_per_recv=per_first, recvs=first, bytes_per_send=per_second, sends=second,
            bytes_transferred=moved,
        )  # fmt: skip
    names = ("align_local", "align_remote", "offset_local", "offset_remote", "xfered",
             f"per_{match['first'].lower()}", match["sent"].lower(),
             f"per_{match['second'].lower()}", match["received"].lower())  # fmt: skip
    return DetailBlock(detail, None, dict(zip(names, cells, strict=True)), False)


def _rr(cells: list[str], match: re.Match[str]) -> DetailBlock:
    block = _align(cells[:4], match)
    trip, rate, outbound, inbound = (fixed(cell, 3) for cell in cells[4:])
    factor = unit_factor(match["unit"]) or 1.0
    detail = replace(
        block.detail,
        round_trip_us=trip if trip is not None and trip >= 0 else None,
        outbound_bps=None if outbound is None else scaled(outbound, factor),
        inbound_bps=None if inbound is None else scaled(inbound, factor),
    )
    names = ("round_trip", "trans_rate", "outbound", "inbound")
    printed = {**block.printed, **dict(zip(names, cells[4:], strict=True)), "unit2": match["unit"]}
    return DetailBlock(detail, rate, printed, True)


def _align(cells: list[str], _: re.Match[str]) -> DetailBlock:
    local, remote, offset_local, offset_remote = map(integer, cells)
    detail = Detail(
        send_align_local=local, recv_align_remote=remote,
        send_offset_local=offset_local, recv_offset_remote=offset_remote,
    )  # fmt: skip
    names = ("align_local", "align_remote", "offset_local", "offset_remote")
    return DetailBlock(detail, None, dict(zip(names, cells, strict=True)), None)


def read_mss(lines: tuple[Line, ...], at: int) -> tuple[int | Broken, int] | None:
    """``Maximum Segment Size (bytes)`` and its number; also all there is of a TCP_MSS test."""
    if not re.match(r"\s*Maximum\b", lines[at].text):
        return None
    text = " ".join(word.text for word in words_from(lines, at, 6))
    match = _MSS.match(text)
    if match is None:
        return None
    head = _lines_of(lines, at, match[0])
    words = words_from(lines, at + head, 3) if head is not None else []
    if not words or not words[0].last or not re.fullmatch(r"-?[0-9]+", words[0].text):
        return Broken("the maximum segment size in bytes, a whole number"), head or 1
    return int(words[0].text), words[0].line + 1 - at


def read_histogram(lines: tuple[Line, ...], at: int) -> tuple[Histogram | Broken, int] | None:
    """The histogram of call or transaction times, with or without its heading.

    Eight rows of ten counts: row ``HUNDRED_USEC`` column 3 counts 300 µs up to 400 µs.
    """
    start = at
    if re.match(r"\s*Histogram of\b", lines[at].text):
        at += 1
        if at < len(lines) and not lines[at].text.strip():
            at += 1
    elif not re.match(r"\s*UNIT_USEC\s*:", lines[at].text):
        return None
    buckets: list[Bucket] = []
    broken = Broken("a histogram of eight rows of ten counts, >100_SECS and HIST_TOTAL")
    for name, unit in _HISTOGRAM_ROWS:
        match = at < len(lines) and re.fullmatch(
            rf"\s*{name}\s*((?::\s*[0-9]+\s*){{10}})", lines[at].text
        )
        if not match:
            return broken, max(at - start, 1)
        counts = [int(text) for text in match[1].replace(":", " ").split()]
        buckets.extend(Bucket(unit * n, count) for n, count in enumerate(counts) if count)
        at += 1
    over = at < len(lines) and re.fullmatch(r"\s*>100_SECS\s*:\s*([0-9]+)\s*", lines[at].text)
    if not over:
        return broken, max(at - start, 1)
    at += 1
    total = at < len(lines) and re.fullmatch(r"\s*HIST_TOTAL\s*:\s*([0-9]+)\s*", lines[at].text)
    if total:
        at += 1
    if int(over[1]):
        buckets.append(Bucket(100_000_000, int(over[1])))
    return Histogram(tuple(buckets), int(total[1]) if total else None, int(over[1])), at - start
