"""iperf3: JSON documents of all versions (-J, --logfile, --json-stream pieces) and text reports.

Keys: iperf_api.c, iperf_tcp.c and iperf_udp.c of iperf 3.0 to 3.20. What must not be taken at its
word: the ``sender`` flag of ``sum_received`` (true in 3.20 although the block is the receiver's),
and ``end.sum`` of UDP, which has the sender's rate with the receiver's loss.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .base import Document, Failure, Reading, Status, in_order
from .iperf3_document import read_document
from .iperf3_json import Found, gather_events, is_ours, scan
from .iperf3_record import TOOL, Iperf3Result, errno_of, error_class
from .iperf3_text import has_session, parse_text
from .iperf_rows import has_rows_of

__all__ = ["TOOL", "Iperf3Result", "parse", "recognise"]

_TRAILER = re.compile(r"^\s*iperf3: (?P<text>(?:error - |interrupt|the ).*)$")


def recognise(document: Document) -> bool:
    """Whether the document holds JSON or text that iperf3 printed."""
    if is_ours(document.text):
        return True
    if any(_TRAILER.match(line.text) for line in document.lines):
        return True
    return has_session(document) or has_rows_of(document, 3)


def parse(document: Document) -> Reading:
    """Read every session. One record per JSON document or text session, in order.

    An identical document twice in a row is one result (iperf 3.16 and 3.17 print it twice); an
    error text after a document makes it ``failed``.
    """
    reading = Reading()
    found = scan(document)
    reading.problems += found.problems
    reading.claimed |= found.claimed
    records: list[Iperf3Result] = []
    previous: Found | None = None
    for one in gather_events(found.found):
        if previous is not None and one.text == previous.text and records:
            records[-1] = _with(records[-1], "the same document is there twice; taken once")
            previous = one
            continue
        record, problems = read_document(document.file, one)
        reading.problems += problems
        records += [record] if record else []
        previous = one
    rest = Document(
        document.file,
        tuple(line for line in document.lines if line.number not in found.claimed),
    )
    if records:
        rest = _trailing_errors(rest, records, reading)
    text = parse_text(rest)
    reading.claimed |= text.claimed
    reading.problems += text.problems
    reading.records = in_order([*records, *text.records])
    return reading


def _trailing_errors(rest: Document, records: list[Iperf3Result], reading: Reading) -> Document:
    """Give an ``iperf3: error`` line right after a document to that document's record."""
    kept = []
    for line in rest.lines:
        match = _TRAILER.match(line.text)
        owner = next(
            (i for i, r in enumerate(records) if r.source.last_line == line.number - 1), None
        )
        if match is None or owner is None:
            kept.append(line)
            continue
        records[owner] = _failed(records[owner], match["text"].strip(), line.number)
        reading.claimed.add(line.number)
    return Document(rest.file, tuple(kept))


def _with(record: Iperf3Result, warning: str) -> Iperf3Result:
    return replace(record, warnings=(*record.warnings, warning))


def _failed(record: Iperf3Result, text: str, line: int) -> Iperf3Result:
    """The record of a document that an error text followed: its totals may miss one side."""
    errno, name = errno_of(text)
    return replace(
        record,
        status=Status.FAILED,
        failure=record.failure or Failure(error_class(text), text, errno, name),
        source=replace(record.source, last_line=line),
        warnings=(*record.warnings, f"line {line}: error text after the document"),
    )
