"""iperf 2's CSV report (-y C, --reportstyle C), old and new column layouts.

Layouts: ``reportCSV_*`` in Locale.c of iperf 2.0.5 to 2.2. Up to 2.1 the interval is one field
(``0.0-10.0``), later two. A header line (2.1.9 and later) names the columns; without one the
number of fields and the form of the eleventh decide.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .base import Document, Line, Problem, Reading, Source, Status
from .iperf2_record import TOOL, Iperf2Result
from .rates import NUMBER, loss, printed, rate_agrees

_ROW = re.compile(r"^\s*(?:[-+]\d{4}:)?\d{14}(?:\.\d+)?,[^,]*,\d+,")
_HEADER = re.compile(r"^\s*time,srcaddress,srcport,dstaddr,dstport,transferid,")
_BASE = ["time", "srcaddress", "srcport", "dstaddr", "dstport", "transferid"]
_UDP = ["jitter", "errors", "datagrams", "errpercent", "outoforder"]
_JOINED = {
    9: [*_BASE, "interval", "bytes", "speed"],
    14: [*_BASE, "interval", "bytes", "speed", *_UDP],
    17: [*_BASE, "interval", "bytes", "speed", *_UDP, "writecnt", "writeerr", "pps"],
}
_HEAD = [*_BASE, "istart", "iend", "bytes", "speed"]
_BINS = [f"bin{i}" for i in range(8)]
_LATENCY = ["ttavg", "ttmin", "ttmax", "ttsdev", "ttcnt", "ttsize"]
_WRITE = ["writecnt", "writeerr", "tcpretry", "tcpcwnd", "tcppcwnd", "tcprtt", "tcprttvar"]
_SPLIT_TCP = {
    10: _HEAD,
    17: [*_HEAD, *_WRITE],
    19: [*_HEAD, "readcnt", *_BINS],
    25: [*_HEAD, *_LATENCY, "readcnt", *_BINS],
}
_CALLS = ["calls", "callerr", "calltimeo", "pps"]
_SPLIT_UDP = {
    19: [*_HEAD, *_UDP, *_CALLS],
    25: [*_HEAD, *_UDP, *_LATENCY, *_CALLS],
    27: [*_HEAD, *_UDP, *_LATENCY, "itsdev", "itcnt", *_CALLS],
}
_BOUNCE = ["bbcnt", "bbavg", "bbmin", "bbmax", "bbstdev", *_WRITE[2:], "txbytes", "rxbytes", "rps"]
_FRACTION = re.compile(r"-?(?:\d+\.\d+|nan)")


def is_csv(text: str) -> bool:
    """Whether a line is a row or the header of iperf 2's CSV report."""
    return bool(_ROW.match(text) or _HEADER.match(text))


def parse_csv(document: Document) -> Reading:
    """Read every CSV row: ``total`` if it spans the run of its connection, else ``interval``."""
    reading = Reading()
    rows: list[tuple[Line, dict[str, str]]] = []
    header: list[str] | None = None
    for line in document.lines:
        if _HEADER.match(line.text):
            header = line.text.strip().split(",")
            reading.claimed.add(line.number)
        elif _ROW.match(line.text):
            reading.claimed.add(line.number)
            fields = line.text.strip().split(",")
            names = _layout(fields, header)
            if names is None:
                known = sorted({*_JOINED, *_SPLIT_TCP, *_SPLIT_UDP, 23})
                reading.problems.append(
                    Problem(
                        document.file,
                        line.number,
                        f"{len(fields)} fields in a CSV row of iperf 2",
                        f"{len(header)} as its header says"
                        if header
                        else f"expected one of {', '.join(map(str, known))} in a known layout",
                    )
                )
                continue
            rows.append((line, dict(zip(names, fields, strict=True))))
    ends: dict[tuple[str, ...], float] = {}
    seen: dict[tuple[str, ...], int] = {}
    for line, row in rows:
        try:
            _, end = _interval(row)
        except ValueError as error:
            reading.problems.append(_bad(document, line, str(error)))
            row.clear()
            continue
        key = _connection(row)
        ends[key] = max(ends.get(key, 0.0), end)
    taken: list[tuple[Iperf2Result, dict[str, str]]] = []
    for line, row in rows:
        if not row:
            continue
        whole = tuple(row.values())
        try:
            record = _record(document.file, line, row, ends[_connection(row)])
        except ValueError as error:
            reading.problems.append(_bad(document, line, str(error)))
            continue
        if whole in seen:
            reading.problems.append(
                _bad(document, line, f"the same row as in line {seen[whole]}; taken once")
            )
            continue
        seen[whole] = line.number
        taken.append((record, row))
    reading.records.extend(_related(taken))
    return reading


def _related(taken: list[tuple[Iperf2Result, dict[str, str]]]) -> list[Iperf2Result]:
    """What rows tell of each other: a sum's streams, and whether a short row is of a UDP test.

    A row of nine fields is a TCP row or the client's row of UDP, which the server's report
    follows with the addresses the other way round.
    """
    udp = {_connection(row) for _, row in taken if "datagrams" in row}
    result: list[Iperf2Result] = []
    since: list[dict[str, str]] = []
    for record, row in taken:
        one = record
        if len(row) == len(_JOINED[9]) and "interval" in row:
            turned = ("dstaddr", "dstport", "srcaddress", "srcport", "transferid")
            is_udp = tuple(row[name] for name in turned) in udp
            one = replace(one, protocol="udp" if is_udp else None)
        if one.kind == "sum":
            one = _checked_sum(one, row, since)
            since = []
        elif one.kind == "total":
            since.append(row)
        result.append(one)
    return result


def _checked_sum(
    total: Iperf2Result, row: dict[str, str], since: list[dict[str, str]]
) -> Iperf2Result:
    """A sum row against the rows since the last one; doubt makes it ``suspect``."""
    warnings = list(total.warnings)
    ports = {(one["srcaddress"], one["dstaddr"]) for one in since}
    if any((b, a) in ports for a, b in ports if a != b):
        warnings.append("the sum is over both directions of a two-way test")
    sizes = [int(one["bytes"]) for one in since if one["bytes"].isdigit()]
    size = int(row["bytes"]) if row["bytes"].isdigit() else None
    if sizes and size is not None and abs(sum(sizes) - size) > 0.01 * size:
        warnings.append(f"the sum is {size} bytes, its {len(sizes)} rows add up to {sum(sizes)}")
    if not since:
        warnings.append("a sum without the rows of its streams")
    if len(warnings) == len(total.warnings):
        return total
    status = Status.SUSPECT if total.status is Status.OK else total.status
    return replace(total, status=status, warnings=tuple(warnings))


def _bad(document: Document, line: Line, found: str) -> Problem:
    return Problem(document.file, line.number, found, "a CSV row of iperf 2")


def _layout(fields: list[str], header: list[str] | None) -> list[str] | None:
    """Names of the columns of a row, or None for an unknown layout."""
    joined = len(fields) > 6 and "-" in fields[6]
    if header is not None:
        names = header
        if joined and "istart" in header:
            at = header.index("istart")
            names = [*header[:at], "interval", *header[at + 2 :]]
        return names if len(names) == len(fields) else None
    if joined:
        return _JOINED.get(len(fields))
    if len(fields) == 23:
        return [*_HEAD, *_BOUNCE]
    if (
        len(fields) > 13
        and _FRACTION.fullmatch(fields[10])
        and _FRACTION.fullmatch(fields[13])
        and not _FRACTION.fullmatch(fields[11])
    ):
        return _SPLIT_UDP.get(len(fields))
    return _SPLIT_TCP.get(len(fields))


def _connection(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in _BASE[1:])


def _interval(row: dict[str, str]) -> tuple[float, float]:
    if "interval" in row:
        match = re.fullmatch(rf"({NUMBER})-({NUMBER})", row["interval"])
        if not match:
            raise ValueError(f"interval {row['interval']!r}")
        return float(match[1]), float(match[2])
    return printed(row["istart"]).value, printed(row["iend"]).value


def _whole_number(row: dict[str, str], name: str) -> int | None:
    """An integer column; -1 is how iperf 2 says that it does not know."""
    if name not in row:
        return None
    if not re.fullmatch(r"-?\d+", row[name].strip()):
        raise ValueError(f"{name} {row[name]!r}, not a whole number")
    value = int(row[name])
    return value if value >= 0 else None


def _record(file: str, line: Line, row: dict[str, str], end_of_run: float) -> Iperf2Result:
    start, end = _interval(row)
    size, rate = _whole_number(row, "bytes"), _whole_number(row, "speed")
    warnings: list[str] = []
    udp = "datagrams" in row
    text = row.get("interval") or f"{row['istart']}-{row['iend']}"
    if size is not None and rate is not None:
        first, last = text.split("-") if "-" in text else ("0", "0")
        if not rate_agrees(printed(str(size)), printed(str(rate)), printed(first), printed(last)):
            warnings.append(f"{size} bytes in {text} s is not {rate} bit/s")
    datagrams = _whole_number(row, "datagrams")
    lost, packets, ratio, doubts = loss(_whole_number(row, "errors"), datagrams)
    warnings += doubts
    unknown = udp and datagrams is None
    if unknown:
        warnings.append("no server report came back; loss and jitter are unknown")
    jitter = printed(row["jitter"]).value / 1e3 if udp and not unknown else None
    late = _whole_number(row, "outoforder")
    total = start == 0 and end >= end_of_run
    if rate == 0:
        warnings.append("the rate is zero: no measurement")
    pps = printed(row["pps"]).value if "pps" in row and row["pps"] not in {"nan", "-nan"} else None
    zone = re.match(r"\s*([-+]\d{4}):(\d{14}(?:\.\d+)?)", row["time"])
    status = Status.SUSPECT if warnings else Status.OK
    number = row["transferid"].strip()
    kind = "total" if total else "interval"
    return Iperf2Result(
        tool=TOOL,
        kind="sum" if total and number == "-1" else kind,
        status=Status.FAILED if rate == 0 else status,
        source=Source(file, line.number, line.number),
        printed={"row": line.text.strip()},
        warnings=tuple(warnings),
        transfer_id=int(number) if re.fullmatch(r"-?\d+", number) else None,
        protocol="udp" if udp else "tcp",
        remote_host=row["dstaddr"],
        remote_port=int(row["dstport"]) if row["dstport"].isdigit() else None,
        message_bytes=size / packets if size and packets and size % packets == 0 else None,
        started_at=f"{zone[2]}{zone[1]}" if zone else row["time"].strip(),
        elapsed_s=end - start if end >= start else None,
        throughput_bps=float(rate) if rate else None,
        throughput_basis="printing end" if rate else None,
        packets=packets,
        packets_per_second=pps,
        lost_packets=lost,
        loss_pct=ratio,
        jitter_s=jitter,
        out_of_order=None if unknown else late,
        writes=_whole_number(row, "writecnt"),
        write_errors=_whole_number(row, "writeerr"),
        retransmits=_whole_number(row, "tcpretry"),
        interval_start_s=start,
        interval_end_s=end,
    )
