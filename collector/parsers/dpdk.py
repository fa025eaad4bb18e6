"""DPDK's testers: the main page of Pktgen-DPDK, and the port statistics of testpmd.

Formats: app/pktgen-main page of Pktgen (``Pkts/s Max/Rx``, ``MBits/s Rx/Tx``, one column a port and
one of all), nic_stats_display and fwd_stats_display of DPDK's testpmd. Both print counters of the
devices; a bit rate that no packet size explains is not believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .base import Document, Line, Problem, Reading, Record, Source, Status, in_order
from .rates import commas_group, ungroup

TOOL = "dpdk"

_PAGE = re.compile(r"<Main Page>|^\s*Link State\s*:.*<(?:UP|DOWN)")
_ROW = re.compile(
    r"^\s*(?P<key>Link State|Pkts/s(?: +(?:Max/)?Rx)?|(?:Max/)?Tx|MBits/s Rx/Tx|Errors Rx/Tx"
    r"|Total Rx Pkts|Tx Pkts)\s*:(?P<cells>.*)$"
)
_LINK = re.compile(r"<(?:UP-(?P<mbps>\d+)-\w+|[^>]*)>")
_PORT = re.compile(
    r"(?:NIC|Forward) statistics for port (?P<port>\d+)|(?P<all>Accumulated forward statistics)"
)
_PAIR = re.compile(r"(?P<key>[RT][Xx]-[A-Za-z]+):\s*(?P<value>\S+)")
_SINCE = re.compile(r"Throughput \(since last show\)")
_RULE = re.compile(r"^\s*[#+-]{20,}\s*$")
_FIELDS = {
    "rx-packets": "packets_received",
    "tx-packets": "packets_sent",
    "rx-bytes": "bytes_received",
    "tx-bytes": "bytes_sent",
    "rx-missed": "receive_missed",
    "rx-errors": "receive_errors",
    "rx-nombuf": "receive_no_buffer",
    "tx-errors": "send_errors",
    "rx-dropped": "receive_dropped",
    "tx-dropped": "send_dropped",
    "rx-pps": "packets_per_second",
    "tx-pps": "offered_packets_per_second",
    "rx-bps": "throughput_bps",
    "tx-bps": "offered_bps",
}
_TOTALS = {"rx-total", "tx-total", "tx-burst"}
_SMALLEST_BYTES, _LARGEST_BYTES = 60, 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class DpdkResult(Record):
    """What one port (``kind`` ``port``) or all of them (``ports``) counted.

    ``packets_per_second`` and ``throughput_bps`` were received, ``offered_…`` was sent; they are
    rates of the last second (Pktgen) or since the statistics were last shown (testpmd). Whether
    bytes are with FCS depends on the driver. ``max_…`` is the highest rate seen.
    """

    port: int | None = None
    link_bps: float | None = None
    packets_per_second: float | None = None
    max_packets_per_second: float | None = None
    throughput_bps: float | None = None
    offered_packets_per_second: float | None = None
    max_offered_packets_per_second: float | None = None
    offered_bps: float | None = None
    packets_received: int | None = None
    packets_sent: int | None = None
    bytes_received: int | None = None
    bytes_sent: int | None = None
    receive_missed: int | None = None
    receive_errors: int | None = None
    receive_no_buffer: int | None = None
    receive_dropped: int | None = None
    send_errors: int | None = None
    send_dropped: int | None = None


@dataclass(slots=True)
class _Block:
    """The values of one port, or of one page with a column a port."""

    line: int
    last: int
    port: int | None = None
    values: dict[str, str] = field(default_factory=dict)


def recognise(document: Document) -> bool:
    """Whether the document holds a page of Pktgen-DPDK or statistics of testpmd."""
    return any(_PAGE.search(line.text) or _PORT.search(line.text) for line in document.lines)


def parse(document: Document) -> Reading:
    """Read every page and every port's statistics; a value that is no number is a problem."""
    reading = Reading()
    grouped = commas_group(document.text)
    block: _Block | None = None
    page: _Block | None = None
    for line in document.lines:
        if _PORT.search(line.text):
            _close(document, block, reading)
            match = _PORT.search(line.text)
            port = int(match["port"]) if match and match["port"] else None
            block = _Block(line.number, line.number, port)
            reading.claimed.add(line.number)
        elif block is not None and _statistics(line, block):
            reading.claimed.add(line.number)
        elif row := _ROW.match(line.text):
            key = " ".join(row["key"].split())
            if page is None or key in page.values:
                _close_page(document, page, grouped, reading)
                page = _Block(line.number, line.number)
            page.values[key], page.last = row["cells"].strip(), line.number
            reading.claimed.add(line.number)
    _close(document, block, reading)
    _close_page(document, page, grouped, reading)
    reading.records = in_order(reading.records)
    return reading


def _statistics(line: Line, block: _Block) -> bool:
    """Take in a line of testpmd's statistics; False for any other line."""
    pairs = list(_PAIR.finditer(line.text))
    known = [m for m in pairs if m["key"].lower() in _FIELDS or m["key"].lower() in _TOTALS]
    block.values.update((m["key"].lower(), m["value"]) for m in known)
    if known or _SINCE.search(line.text) or _RULE.match(line.text):
        block.last = line.number
        return True
    return False


def _close(document: Document, block: _Block | None, reading: Reading) -> None:
    if block is None or not block.values:
        return
    fields: dict[str, Any] = {}
    for key, text in block.values.items():
        if key not in _FIELDS:
            continue
        if not re.fullmatch(r"\d+", text):
            _bad(document, block.line, f"{key}: {text!r}", reading)
            continue
        number = int(text)
        fields[_FIELDS[key]] = float(number) if key.endswith(("pps", "bps")) else number
    kind = "port" if block.port is not None else "ports"
    _add(document, block, kind, fields, reading)


def _bad(document: Document, number: int, found: str, reading: Reading) -> None:
    wanted = "whole numbers of Pktgen-DPDK or testpmd"
    reading.problems.append(Problem(document.file, number, found, wanted))


def _close_page(document: Document, page: _Block | None, grouped: bool, reading: Reading) -> None:
    """The records of a page: one a port, one of all if there is a column more than links."""
    if page is None or not any(key.startswith(("Pkts/s", "MBits/s")) for key in page.values):
        return
    keys = " ".join(page.values)
    missing = [row for row in ("Link State", "Pkts/s", "Max/Tx", "MBits/s") if row not in keys]
    if "Max/Tx" in missing and "Tx" in page.values:
        missing.remove("Max/Tx")
    lacks = f"the page lacks {', '.join(missing)}" if missing else None
    links = list(_LINK.finditer(page.values.pop("Link State", "")))
    columns: list[dict[str, Any]] = []
    for key, text in page.values.items():
        cells = (ungroup(text) if grouped else text).split()
        while len(columns) < len(cells):
            columns.append({})
        for column, cell in zip(columns, cells, strict=False):
            fields = _cell(key, cell)
            if fields is None:
                _bad(document, page.line, f"{key}: {cell!r}", reading)
            else:
                column.update(fields)
    for number, fields in enumerate(columns):
        block = _Block(page.line, page.last, number if number < len(links) or not links else None)
        if block.port is not None and number < len(links) and links[number]["mbps"]:
            fields["link_bps"] = float(links[number]["mbps"]) * 1e6
        block.values = {key: text.split()[number] for key, text in page.values.items()
                        if number < len(text.split())}  # fmt: skip
        if "Link State" in missing:
            block.port = None  # without it a column may be a port or all of them
        kind = "port" if block.port is not None else "ports"
        _add(document, block, kind, fields, reading, lacks)


def _cell(key: str, cell: str) -> dict[str, Any] | None:
    """The fields of one cell, ``7675460/7557906``; None if it is no number of its kind."""
    match = re.fullmatch(r"(\d+)(?:/(\d+))?", cell)
    if match is None:
        return None
    first, second = int(match[1]), int(match[2]) if match[2] else None
    received, sent = "packets_per_second", "offered_packets_per_second"
    if key.startswith("Pkts/s") or (key.endswith("Tx") and "Rx" not in key):
        name = received if key.startswith("Pkts/s") else sent
        if second is None:
            return {name: float(first)}
        return {f"max_{name}": float(first), name: float(second)}
    if key == "MBits/s Rx/Tx" and second is not None:
        return {"throughput_bps": first * 1e6, "offered_bps": second * 1e6}
    if key == "Errors Rx/Tx" and second is not None:
        return {"receive_errors": first, "send_errors": second}
    if key in {"Total Rx Pkts", "Tx Pkts"} and second is None:
        return {"packets_received" if key.startswith("Total") else "packets_sent": first}
    return None


def _add(
    document: Document,
    block: _Block,
    kind: str,
    fields: dict[str, Any],
    reading: Reading,
    lacks: str | None = None,
) -> None:
    warnings = [lacks] if lacks else []
    doubtful = lacks is not None
    for way, pps_name, bps_name in (
        ("received", "packets_per_second", "throughput_bps"),
        ("sent", "offered_packets_per_second", "offered_bps"),
    ):
        pps, bps = fields.get(pps_name), fields.get(bps_name)
        if pps and bps is not None:
            size = bps / (8 * pps)
            if not _SMALLEST_BYTES <= size <= _LARGEST_BYTES:
                doubtful = True
                warnings.append(
                    f"{bps:g} bit/s {way} at {pps:.0f} packets/s are {size:.1f} bytes a packet: "
                    "the bit rate is not believed"
                )
                fields[bps_name] = None
    lost = {
        name.replace("_", " "): value
        for name, value in fields.items()
        if value and re.search(r"missed|errors|buffer|dropped", name)
    }
    warnings += [f"{name}: {value}" for name, value in lost.items()]
    reading.records.append(
        DpdkResult(
            tool=TOOL,
            kind=kind,
            status=Status.SUSPECT if doubtful else Status.OK,
            source=Source(document.file, block.line, block.last),
            printed=dict(block.values),
            warnings=tuple(warnings),
            port=block.port,
            **fields,
        )
    )
