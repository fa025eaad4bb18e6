"""Tables of forwarding results whose columns have names: between bars, or CSV.

The unit of a value stands in the title of its column or beside it. Rows are by frame size, by
direction or by goal (NDR, PDR). Each row is checked against itself: rate against bit rate, packets
sent against received, what came back against the maximum.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import Any

from .base import Document, Line, Problem, Reading, Source, Status
from .rates import NUMBER, ungroup
from .rfc2544_columns import Column, column_of, rate_unit, time_unit
from .rfc2544_record import TOOL, Rfc2544Row, layer_of

_RULER = re.compile(r"^[\s|:+=-]+$")
_CELL = re.compile(rf"(?P<number>-?{NUMBER})\.?\s*(?P<unit>[^\d\s].*)?")
_EMPTY = re.compile(r"(?:-+|n/?a|none|)", re.IGNORECASE)
_NO_NUMBER = re.compile(r"-?(?:nan|inf(?:inity)?)\s*(?P<unit>\D*)", re.IGNORECASE)
_GOAL = re.compile(r"(?:NDR|PDR|MRR)\b", re.IGNORECASE)
_SMALLEST, _LARGEST = 46, 65535
_SHARE_LIMIT = 100.5  # testers print a little more than line rate where clocks differ


@dataclass(slots=True)
class _Row:
    """The values of one row by field, and what is doubtful in it."""

    values: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    doubtful: bool = False

    def doubt(self, text: str) -> None:
        """Note a contradiction."""
        self.warnings.append(text)
        self.doubtful = True


def cells_of(text: str) -> list[str] | None:
    """Cells of a line between bars or of a CSV line; None for any other."""
    if "|" in text:
        return [cell.strip() for cell in text.strip().strip("|").split("|")]
    if "," in text:
        return [cell.strip() for cell in next(csv.reader([text.strip()]), [])]
    return None


def is_grid(document: Document, index: int) -> bool:
    """Whether a table with named quantities starts here: its titles, then a row as long."""
    labels = cells_of(document.lines[index].text)
    if labels is None or len(labels) < 2 or not any(re.search("[A-Za-z]", one) for one in labels):
        return False
    columns = [column_of(label) for label in labels]
    kinds = [column.quantity for column in columns]
    found = sum(kind not in {"aside", "size"} for kind in kinds)
    keyed = kinds.count("size") == 1 or re.match(r"(?i)direction$|$|-$", labels[0])
    rates = any(kind in {"rate", "share", "loss", "count"} for kind in kinds)
    return bool(keyed and found and rates and _first(document, index, len(labels)) is not None)


def _first(document: Document, index: int, width: int) -> int | None:
    """The index of the first row below the titles at ``index``, over at most one ruler."""
    for at in range(index + 1, min(index + 3, len(document.lines))):
        text = document.lines[at].text
        if _RULER.match(text) and text.strip():
            continue
        cells = cells_of(text)
        return at if cells is not None and len(cells) == width and _has_digit(cells) else None
    return None


def _has_digit(cells: list[str]) -> bool:
    return any(re.search(r"\d", cell) for cell in cells)


def read_grid(document: Document, index: int, reading: Reading, grouped: bool) -> int:
    """Read the table whose titles are at ``index``; returns how many lines it took.

    ``grouped``: commas between digits group thousands. A row that cannot be read is a problem.
    ``inf%`` and ``nan`` are no measurement.
    """
    labels = cells_of(document.lines[index].text) or []
    columns = _without_doubles([column_of(label) for label in labels])
    reading.claimed.add(document.lines[index].number)
    first = _first(document, index, len(labels))
    assert first is not None  # is_grid found it
    bars = "|" in document.lines[index].text
    at = first
    while at < len(document.lines):
        line = document.lines[at]
        if _RULER.match(line.text) and line.text.strip():
            at += 1
            continue
        cells = cells_of(line.text)
        if cells is None or ("|" in line.text) != bars or not _has_digit(cells):
            break
        reading.claimed.add(line.number)
        wrong = _take(document, line, cells, columns, grouped and bars, reading)
        if wrong:
            reading.problems.append(
                Problem(
                    document.file,
                    line.number,
                    f"{line.text.strip()!r} ({wrong})",
                    f"a row of {len(labels)} values under {' | '.join(labels)}, each with a unit",
                )
            )
        at += 1
    return at - index


def _without_doubles(columns: list[Column]) -> list[Column]:
    """A bit rate on the wire beside one of frames is kept as printed only."""
    frames = {
        column.field
        for column in columns
        if column.quantity == "rate" and not column.wire and _bits(column)
    }
    return [
        Column(column.label, "aside")
        if column.quantity == "rate" and column.wire and _bits(column) and column.field in frames
        else column
        for column in columns
    ]


def _bits(column: Column) -> bool:
    unit = rate_unit(column.unit) if column.unit else None
    return unit is not None and unit[0] == "bps"


def _take(
    document: Document,
    line: Line,
    cells: list[str],
    columns: list[Column],
    grouped: bool,
    reading: Reading,
) -> str | None:
    """Add the record of one row; returns what is wrong with it, if anything."""
    if len(cells) != len(columns):
        return f"{len(cells)} values"
    row = _Row()
    size: int | None = None
    for column, printed in zip(columns, cells, strict=True):
        cell = ungroup(printed) if grouped else printed
        if column.quantity == "size":
            match = re.fullmatch(r"(\d+)\s*(?:B|bytes?)?", cell)
            if match is None or not _SMALLEST <= int(match[1]) <= _LARGEST:
                return f"{cell!r} is no frame size"
            size = int(match[1])
        elif column.quantity != "aside":
            wrong = _value(column, cell, row)
            if wrong:
                return wrong
    _check(row, size)
    goal = next((cell for cell in cells if _GOAL.match(cell)), None)
    name = goal or (cells[0] if columns[0].quantity == "aside" and size is None else None)
    measured = any(value is not None for value in row.values.values())
    status = Status.SUSPECT if row.doubtful else Status.OK
    reading.records.append(
        Rfc2544Row(
            tool=TOOL,
            kind="search" if goal else "table",
            status=status if measured else Status.INCOMPLETE,
            source=Source(document.file, line.number, line.number),
            printed={c.label: cell for c, cell in zip(columns, cells, strict=True)},
            warnings=tuple(row.warnings),
            name=goal.upper() if goal else name or None,
            frame_bytes=size,
            **row.values,
        )
    )
    return None


def _value(column: Column, cell: str, row: _Row) -> str | None:
    """Read one cell into the row; returns why it cannot be read, if so."""
    where = f"{cell!r} under {column.label!r}"
    empty = _NO_NUMBER.fullmatch(cell)
    match = _CELL.fullmatch(cell)
    if match is None:
        if empty is None and not _EMPTY.fullmatch(cell):
            return f"{where} is no number"
        if column.quantity != "rate":
            row.values.setdefault(column.field, None)
        if empty is not None and cell.lower().lstrip("-").startswith("inf"):
            row.doubt(f"{column.label} is {cell}: no measurement")
        return None
    number, own = float(match["number"]), (match["unit"] or "").strip()
    scaled = _scaled(column, number, own)
    if scaled is None:
        return f"{where} has no known unit" if not own else f"{where} has another unit"
    name, value = scaled
    if row.values.get(name) is not None:
        return "two columns of the same quantity"
    if number < 0 or (name.endswith("_pct") and number > _SHARE_LIMIT):
        row.doubt(f"{column.label} is {cell}: no measurement")
        row.values[name] = None
        return None
    if column.field.startswith("packets_"):
        if not number.is_integer():
            return f"{where} is no number of packets"
        value = int(number)
    row.values[name] = value
    return None


def _scaled(column: Column, number: float, own: str) -> tuple[str, Any] | None:
    """``(field, value in SI)`` of a number; None if its unit is not known or another one."""
    if column.quantity in {"share", "loss"}:
        return (column.field, number * column.factor) if own in {"", "%"} else None
    if column.quantity == "count":
        return (column.field, number) if not own else None
    if column.quantity == "latency":
        factor = time_unit(own or column.unit or "")
        return (column.field, number * factor) if factor is not None else None
    title = rate_unit(column.unit) if column.unit else None
    cell = rate_unit(own) if own else None
    unit = cell or (title if not own else None)
    if unit is None or (title is not None and title[0] != unit[0]):
        return None
    plain = {"pps": "packets_per_second", "bps": "throughput_bps"}
    ending = {"pps": "packets_per_second", "bps": "bps"}
    name = f"{column.field}{ending[unit[0]]}" if column.field else plain[unit[0]]
    return name, number * unit[1]


def _check(row: _Row, size: int | None) -> None:
    """Check the values of a row against each other."""
    values = row.values
    sent, received = values.get("packets_sent"), values.get("packets_received")
    if sent is not None and received is not None:
        if received > sent:
            row.doubt(f"{received} packets received of only {sent} sent: loss is unknown")
            values["loss_pct"] = None
        elif sent and values.get("loss_pct") is not None:
            computed = 100.0 * (sent - received) / sent
            if abs(computed - values["loss_pct"]) > max(0.01, 0.01 * computed):
                row.doubt(f"{received} of {sent} packets is a loss of {computed:.4f} %")
    pps, most = values.get("packets_per_second"), values.get("max_packets_per_second")
    if pps and most and pps > most * 1.0001:
        row.doubt(f"{pps:.0f} pps exceed the maximum {most:.0f}")
    offered = values.get("offered_packets_per_second")
    if offered == 0 and pps:
        row.doubt("packets came back, but the tester counted none that it sent")
    bps = values.get("throughput_bps")
    if size is not None and pps and bps:
        values["throughput_layer"] = layer_of(pps, bps, size)
        if values["throughput_layer"] is None:
            row.doubt(f"{pps:.0f} pps of {size} bytes are not {bps:.0f} bit/s, on no layer")
