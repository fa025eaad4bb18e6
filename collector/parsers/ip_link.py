"""``ip -s link`` as text and as JSON: one record an interface."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from collector.kernel_state.errors import StateError
from collector.kernel_state.ip_link import LOSSES, Link, parse_links, parse_links_json
from collector.parsers.base import Document, Line, Reading, Record, Status
from collector.parsers.kernel_text import indentation, numbered, problem, source

TOOL = "ip_link"
_HEAD = re.compile(r"\s*[0-9]+: [^:\s]+: <[A-Z0-9_,-]*> mtu [0-9]+\b.*")
_COUNTERS = re.compile(r"\s*(?:RX|TX)(?: errors)?:\s+\w+.*")
_JSON = re.compile(r'\s*\[\s*\{.*"ifindex"\s*:.*\}\s*\]\s*', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecord(Record):
    """An interface. ``rx`` and ``tx`` count bytes and packets since it was made; a counter that
    was not printed is absent. ``losses`` are those of errors and drops that are not zero."""

    name: str
    index: int
    parent: str | None
    flags: tuple[str, ...]
    mtu_bytes: int
    state: str | None
    rx: Mapping[str, int]
    tx: Mapping[str, int]
    losses: Mapping[str, int]


def recognise(document: Document) -> bool:
    """Whether the document has an interface's first line, or is ip's JSON."""
    return _is_json(document) or any(_HEAD.fullmatch(line.text) for line in document.lines)


def _is_json(document: Document) -> bool:
    return any('"ifindex"' in line.text for line in document.lines) and (
        _JSON.fullmatch(document.text) is not None
    )


def _blocks(document: Document) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    inside, depth = False, 0
    for line in document.lines:
        if _HEAD.fullmatch(line.text):
            blocks.append([line])
            inside, depth = True, indentation(line.text)
        elif inside and line.text.strip() and indentation(line.text) > depth:
            blocks[-1].append(line)
        else:
            inside = False
    return blocks


def parse(document: Document) -> Reading:
    """Read every interface; counters without their interface are a problem."""
    reading = Reading()
    if _is_json(document):
        reading.claimed.update(line.number for line in document.lines)
        try:
            links = parse_links_json(document.text)
        except StateError as error:
            reading.problems.append(problem(document, error, 1))
            return reading
        reading.records.extend(_record(document, document.lines, link) for link in links)
        return reading
    for lines in _blocks(document):
        reading.claimed.update(line.number for line in lines)
        try:
            found = parse_links(numbered(lines))
        except StateError as error:
            reading.problems.append(problem(document, error, lines[0].number))
            continue
        reading.records.extend(_record(document, lines, link) for link in found)
    if reading.claimed:
        for line in document.lines:
            if line.number not in reading.claimed and _COUNTERS.fullmatch(line.text):
                stray = StateError(line.number, "counters without an interface", "its first line")
                reading.problems.append(problem(document, stray, line.number))
                reading.claimed.add(line.number)
    return reading


def _record(document: Document, lines: list[Line] | tuple[Line, ...], link: Link) -> LinkRecord:
    losses = {
        f"{side}_{name}": counters[name]
        for side, counters in (("rx", link.rx), ("tx", link.tx))
        for name in LOSSES
        if counters.get(name)
    }
    return LinkRecord(
        tool=TOOL,
        kind="link",
        status=Status.OK,
        source=source(document, lines),
        printed=dict(link.details),
        name=link.name,
        index=link.index,
        parent=link.parent,
        flags=link.flags,
        mtu_bytes=link.mtu,
        state=link.state,
        rx=dict(link.rx),
        tx=dict(link.tx),
        losses=losses,
    )
