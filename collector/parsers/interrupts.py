"""``/proc/interrupts``: one record a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from collector.kernel_state.errors import StateError
from collector.kernel_state.interrupts import Interrupt, parse_interrupts
from collector.parsers.base import Document, Line, Reading, Record, Status
from collector.parsers.kernel_text import numbered, problem, source

TOOL = "interrupts"
_HEADING = re.compile(r"\s*CPU[0-9]+(?:\s+CPU[0-9]+)*\s*")
_ROW = re.compile(r"\s*(?:[0-9]+|[A-Za-z][A-Za-z0-9_]*):\s+[0-9].*")


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptsRecord(Record):
    """Interrupts taken since boot: ``cpus`` are those online, ``rows`` count by CPU."""

    cpus: tuple[int, ...]
    rows: tuple[Interrupt, ...]


def recognise(document: Document) -> bool:
    """Whether a heading is followed by a row."""
    return bool(_blocks(document))


def _blocks(document: Document) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    inside = False
    for line in document.lines:
        if _HEADING.fullmatch(line.text):
            blocks.append([line])
            inside = True
        elif inside and _ROW.fullmatch(line.text):
            blocks[-1].append(line)
        else:
            inside = False
    return [block for block in blocks if len(block) > 1]


def parse(document: Document) -> Reading:
    """Read every table."""
    reading = Reading()
    for lines in _blocks(document):
        reading.claimed.update(line.number for line in lines)
        try:
            found = parse_interrupts(numbered(lines))
        except StateError as error:
            reading.problems.append(problem(document, error, lines[0].number))
            continue
        reading.records.append(
            InterruptsRecord(
                tool=TOOL,
                kind="interrupts",
                status=Status.OK,
                source=source(document, lines),
                cpus=found.cpus,
                rows=found.rows,
            )
        )
    return reading
