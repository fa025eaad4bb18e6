"""iperf 2: text reports (plain, --enhancedreports, TCP and UDP, -P, -r, -d, server) and CSV.

Formats: Locale.c and ReportOutputs.c of iperf 2.0.5 to 2.2. This module finds the tests and their
lines; iperf2_totals.py makes records of them, iperf2_csv.py reads ``-y C``.
"""

from __future__ import annotations

import re

from .base import Document, Failure, Reading, in_order
from .iperf2_csv import is_csv, parse_csv
from .iperf2_record import TOOL, Iperf2Result
from .iperf2_tail import ACCEPTS, read_tail
from .iperf2_totals import Report, Test, build
from .iperf3_record import errno_of
from .iperf_rows import Row, has_rows_of, joined, looks_like_row, owners, read_row, row_problem
from .rates import NUMBER, unit_factor

__all__ = ["TOOL", "Iperf2Result", "parse", "recognise"]

_CLIENT = re.compile(
    r"\bClient connecting to (?P<host>\S+), (?P<protocol>TCP|UDP) port (?P<port>\d+)"
)
_SERVER = re.compile(r"\bServer listening on (?P<protocol>TCP|UDP) ports? (?P<port>\d+)")
_CONNECTED = re.compile(
    r"\[\s*(?P<star>\*?)(?P<id>\d+)\]\s*local \S+ port (?P<local>\d+) connected with "
    r"(?P<host>\S+) port (?P<remote>\d+)"
)
_ANNOUNCED = re.compile(r"^[^\[]*\[\s*\*?\d+\]\s*local\b")
_SENDING = re.compile(r"\bSending (?P<size>\d+) byte datagrams")
_WINDOW = re.compile(
    rf"\b(?:TCP window|UDP buffer) size:\s*(?P<size>{NUMBER})\s*(?P<unit>[KMG]?Bytes?)\b"
)
_SENT = re.compile(r"\[\s*(?P<id>\d+|SUM(?:-\d+)?)\]\s*Sent (?P<count>\d+) datagrams")
_SERVER_REPORT = re.compile(r"\[\s*(?P<id>\d+|SUM)\]\s*Server Report:")
_NO_ACK = re.compile(
    r"WARNING: (?:did not receive ack of last datagram|ack of last datagram failed)"
)
_FAILED = re.compile(
    r"^\s*(?:\[\s*\d+\]\s*)?(?P<text>(?:tcp |udp )?(?P<call>connect|read|write\w*|bind"
    r"|listener bind|listener socket|socket|shutdown|accept|recvn|sendto) failed: .+)$"
)
# What a client prints that gets no further, and nothing else with it.
_NO_SERVER = re.compile(
    r"^\s*(?:tcp |udp )?connect failed: (?:Connection refused|No route to host|Connection timed out"
    r"|Network is unreachable|Operation now in progress)\s*$"
)
_CLASSES = {
    "connect": "control_unreachable",
    "bind": "address_in_use",
    "listener bind": "address_in_use",
}
_NOISE = re.compile(
    r"^-{20,}\s*$|\[ ?ID\]|\[SUM-cnt\]|Write buffer size|Read buffer size|TOS set to|\[ CT\]"
    r"|Sending \d+ byte|Receiving \d+ byte|size:|\bIPG target\b|iperf version 2|MSS size"
)


def recognise(document: Document) -> bool:
    """Whether the document holds text or CSV that iperf 2 printed."""
    return has_rows_of(document, 2) or any(
        is_csv(line.text)
        or _CLIENT.search(line.text)
        or _SERVER.search(line.text)
        or _NO_SERVER.match(line.text)
        for line in document.lines
    )


def parse(document: Document) -> Reading:
    """Read every test and every CSV row, in order; see :class:`Iperf2Result`.

    A row that cannot be read is a problem (file, line), and makes its test ``suspect``.
    """
    reading = parse_csv(document)
    mine = {number for number, owner in owners(document).items() if owner == 2}
    test: Test | None = None
    skip_to = -1
    for index, line in enumerate(document.lines):
        if index <= skip_to or line.number in reading.claimed:
            continue
        text = line.text
        opening = _CLIENT.search(text) or _SERVER.search(text)
        connected, last = _connection(document, index)
        if (opening or connected) and test and test.has_rows:
            _close(document, test, reading)
            # A server's later connections and the second half of -r stand under one heading.
            test = None if opening else test.following(line.number)
        if opening:
            test = test or Test(line.number, line.number)
            test.facts.update(opening.groupdict())
            test.facts["role"] = "client" if _CLIENT.search(text) else "server"
            _claim(test, line.number, reading)
        elif connected:
            test = test or Test(line.number, line.number)
            test.connections[connected["id"]] = (int(connected["local"]), int(connected["remote"]))
            test.facts.setdefault("peer", connected["host"])
            words = connected.string
            test.full_duplex |= "full-duplex" in words
            test.reverse |= "(reverse)" in words
            for number in range(line.number, document.lines[last].number + 1):
                _claim(test, number, reading)
            skip_to = last
        elif looks_like_row(text) and line.number in mine:
            test = test or Test(line.number, line.number)
            skip_to = _take_row(document, index, test, reading)
        else:
            test = _note(text, line.number, test, reading, line.number in mine)
    _close(document, test, reading)
    reading.records = in_order(reading.records)
    return reading


def _connection(document: Document, index: int) -> tuple[re.Match[str] | None, int]:
    """The connection announced at a line, broken over lines or not, and its last line's index."""
    if _ANNOUNCED.match(document.lines[index].text):
        for part, end in reversed(list(joined(document, index))):
            text, last = part, end
            if match := _CONNECTED.search(text):
                lines = document.lines
                while last + 1 < len(lines) and lines[last + 1].text.lstrip().startswith("("):
                    last += 1
                    text = f"{text} {lines[last].text.strip()}"
                return _CONNECTED.search(text) or match, last
    return None, index


def _claim(test: Test, number: int, reading: Reading) -> None:
    test.last = max(test.last, number)
    reading.claimed.add(number)


def _take_row(document: Document, index: int, test: Test, reading: Reading) -> int:
    number = document.lines[index].number
    row = read_row(document, index, ACCEPTS)
    if row is None:
        reading.problems.append(row_problem(document, index))
        test.damaged = True
        _claim(test, number, reading)
        return index
    last = row.last_line if isinstance(row, Row) else row.line
    if isinstance(row, Row):
        server = row.id in test.server_report
        test.server_report.discard(row.id)
        test.reports.append(Report(row, read_tail(row), server))
    else:
        test.late.append(row)
    for one in range(number, last + 1):
        _claim(test, one, reading)
    return index + last - number


def _note(text: str, number: int, test: Test | None, reading: Reading, owned: bool) -> Test | None:
    """Take in a line that is no row: sizes, counts of datagrams, warnings, errors."""
    failed = _FAILED.match(text)
    sure = failed is not None and (
        failed["text"].startswith(("tcp", "udp", "listener")) or _NO_SERVER.match(text)
    )
    if failed and (owned or test or sure):
        test = test or Test(number, number)
        errno, name = errno_of(failed["text"])
        test.failure = test.failure or Failure(
            _CLASSES.get(failed["call"], "tool_error"), failed["text"].strip(), errno, name
        )
        _claim(test, number, reading)
        return test
    if test is None:
        if owned and _NOISE.search(text):
            reading.claimed.add(number)
        return None
    if sending := _SENDING.search(text):
        test.facts["message"] = sending["size"]
    elif window := _WINDOW.search(text):
        test.window_bytes = float(window["size"]) * unit_factor(window["unit"])
    elif sent := _SENT.search(text):
        test.sent[sent["id"]] = int(sent["count"])
    elif report := _SERVER_REPORT.search(text):
        test.server_report.add(report["id"])
    elif _NO_ACK.search(text):
        test.warnings.append(f"line {number}: no server report came back; loss is unknown")
    elif not (owned or _NOISE.search(text)):
        return test
    _claim(test, number, reading)
    return test


def _close(document: Document, test: Test | None, reading: Reading) -> None:
    """Turn a test with content into a record."""
    if test and (test.has_rows or test.failure or test.damaged):
        reading.records.append(build(document.file, test))
