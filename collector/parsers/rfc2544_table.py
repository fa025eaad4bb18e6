"""Tables by frame size: shares by configuration, or columns of rates with units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .base import Document, Line, Problem, Reading, Source, Status
from .rfc2544_record import TOOL, Rfc2544Row

_HEADING = re.compile(
    r"^\s*\|?\s*(?:(?:frame|packet|pkt)[ _-]?(?:size|len(?:gth)?)?|size)\b", re.IGNORECASE
)
_SIZE = re.compile(r"^\s*\|?\s*(\d{2,5})\s*(?:B|bytes)?(?=[\s|,;]|$)")
_CELL = re.compile(r"^(?P<number>\d+(?:\.\d*)?)\s*(?P<unit>%|[kKMG]?(?:pps|fps|bps|bit/s))?$")
_EMPTY = re.compile(r"^(?:-|--|n/?a|-?nan%?|)$", re.IGNORECASE)
_FOOTNOTE = re.compile(r"(?<=[\d%])\\*\[\d+\\*\]")
_RULER = re.compile(r"^[\s|:+=-]+$")
_SMALLEST, _LARGEST = 46, 65535


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column holds: a field of the record and its scale, or a configuration."""

    label: str
    field: str | None
    scale: float = 1.0


def is_heading(document: Document, index: int) -> bool:
    """Whether a table by frame size starts here: its heading, then a row with a size."""
    text = document.lines[index].text
    if not _HEADING.match(text) or len(_cells(text)) < 2:
        return False
    return _first_row(document, index) is not None


def _first_row(document: Document, index: int) -> int | None:
    for at in range(index + 1, min(index + 3, len(document.lines))):
        text = document.lines[at].text
        if _SIZE.match(text) and len(_cells(text)) >= 2:
            return at
        if not _RULER.match(text):
            return None
    return None


def _cells(text: str) -> list[str]:
    """Cells of a row: divided by bars, else tabs or two blanks, else single blanks.

    Footnote marks (``32[1]``) are no part of a value.
    """
    stripped = _FOOTNOTE.sub("", text).strip()
    if "|" in stripped:
        return [cell.strip() for cell in stripped.strip("|").split("|")]
    cells = [cell.strip() for cell in re.split(r"\t+|\s{2,}|;", stripped)]
    return cells if len(cells) > 1 else stripped.split()


def _column(label: str) -> _Column:
    low = label.lower()
    unit = re.search(
        r"\b([kmg]?)(pps|fps|bps|bit/s|bits/sec|frames/s(?:ec)?|packets/s(?:ec)?)\b", low
    )
    if "loss" in low or "lost" in low:
        return _Column(label, "loss_pct" if "%" in low or "pct" in low else None)
    if "latency" in low or "delay" in low:
        time = re.search(r"\b(ns|us|µs|usec|ms|s)\b", low)
        scales = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "usec": 1e-6, "ms": 1e-3, "s": 1.0}
        return _Column(label, "latency_s" if time else None, scales[time[1]] if time else 1.0)
    if unit:
        bits = unit[2].startswith(("bps", "bit"))
        scale = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}[unit[1]]
        return _Column(label, "throughput_bps" if bits else "packets_per_second", scale)
    if "%" in low and ("line" in low or "rate" in low or "throughput" in low):
        return _Column(label, "line_rate_pct")
    if "%" in low and "forward" in low:
        return _Column(label, "forwarded_pct")
    return _Column(label, None)


def read_table(document: Document, index: int, reading: Reading) -> int:
    """Read the table whose heading is at ``index``; returns how many lines it took.

    A table of bare numbers without any unit is a problem, not a guess.
    """
    heading = document.lines[index]
    labels = _cells(heading.text)
    if len(labels) > 2 and not re.search(r"\t|\s{2,}|\|", heading.text.strip()):
        labels = heading.text.split()
    first = _first_row(document, index)
    assert first is not None  # is_heading found it
    rows: list[tuple[Line, list[str]]] = []
    at = first
    while at < len(document.lines):
        line = document.lines[at]
        if not _SIZE.match(line.text):
            break
        cells = _cells(line.text)
        if len(cells) != len(labels):
            cells = line.text.split()
        rows.append((line, cells))
        at += 1
    if rows and len(rows[0][1]) == len(heading.text.split()):
        labels = heading.text.split() if len(rows[0][1]) != len(labels) else labels
    columns = [_column(label) for label in labels[1:]]
    reading.claimed.add(heading.number)
    shares = _shares(columns, rows, _said_above(document, index))
    previous = 0
    for line, cells in rows:
        reading.claimed.add(line.number)
        problem = _row(document, line, cells=cells, columns=columns, shares=shares, reading=reading)
        size = int(re.sub(r"\D", "", cells[0]) or 0)
        if problem is None and size <= previous:
            problem = f"frame size {size} after {previous}"
        previous = max(previous, size)
        if problem:
            reading.problems.append(
                Problem(
                    document.file,
                    line.number,
                    f"{line.text.strip()!r} ({problem})",
                    f"a row of {len(labels)} values under {' | '.join(labels)}, each with a unit",
                )
            )
    return at - index


def _said_above(document: Document, index: int) -> bool:
    """Whether a title within two lines above the heading says that the values are shares."""
    return any(
        re.search(r"%|\bper ?cent", line.text) for line in document.lines[max(0, index - 2) : index]
    )


def _shares(columns: list[_Column], rows: list[tuple[Line, list[str]]], said: bool) -> list[bool]:
    """Which columns hold percentages: those with a % sign in some row, or all if a title says."""
    return [
        said or any(len(cells) > i + 1 and cells[i + 1].endswith("%") for _, cells in rows)
        for i in range(len(columns))
    ]


def _row(
    document: Document,
    line: Line,
    *,
    cells: list[str],
    columns: list[_Column],
    shares: list[bool],
    reading: Reading,
) -> str | None:
    """Add the records of one row; returns what is wrong with it, if anything."""
    if len(cells) != len(columns) + 1:
        return f"{len(cells)} values"
    size = int(re.sub(r"\D", "", cells[0]))
    if not _SMALLEST <= size <= _LARGEST:
        return f"{size} is no frame size"
    values: list[tuple[_Column, float | None]] = []
    for column, cell, share in zip(columns, cells[1:], shares, strict=True):
        wrong = _wrong(column, cell, share)
        if wrong:
            return wrong
        match = _CELL.match(cell)
        values.append((column, float(match["number"]) if match else None))
    named = {c.field: v * c.scale if v is not None else None for c, v in values if c.field}
    if len(named) < sum(1 for c in columns if c.field):
        return "two columns of the same quantity"
    source = Source(document.file, line.number, line.number)
    if named:
        fields: dict[str, Any] = named
        measured = any(value is not None for value in named.values())
        reading.records.append(
            Rfc2544Row(
                tool=TOOL,
                kind="table",
                status=Status.OK if measured else Status.INCOMPLETE,
                source=source,
                printed={c.label: cell for c, cell in zip(columns, cells[1:], strict=True)},
                frame_bytes=size,
                **fields,
            )
        )
    for (column, value), cell in zip(values, cells[1:], strict=True):
        if column.field is None:
            reading.records.append(
                Rfc2544Row(
                    tool=TOOL,
                    kind="forwarding",
                    status=Status.OK if value is not None else Status.INCOMPLETE,
                    source=source,
                    printed={column.label: cell},
                    column=column.label,
                    frame_bytes=size,
                    forwarded_pct=value,
                )
            )
    return None


def _wrong(column: _Column, cell: str, share: bool) -> str | None:
    """Why a cell cannot be read under its heading; None if it can."""
    match = _CELL.match(cell)
    if not match:
        return None if _EMPTY.match(cell) else f"{cell!r} is no number"
    unit, is_share = match["unit"], (column.field or "_pct").endswith("_pct")
    if column.field is None and (not share or unit not in {None, "%"}):
        return f"{cell!r} under {column.label!r} has no known unit"
    if column.field and unit and (unit == "%") != is_share:
        return f"{cell!r} under {column.label!r}"
    if column.field and unit and unit != "%":
        return f"{cell!r}: units belong in the heading"
    if is_share and float(match["number"]) > 100.5:
        return f"{cell!r} is more than all"
    return None
