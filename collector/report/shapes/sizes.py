"""Small packets beside large ones: the tests of a matrix that differ in nothing but the size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collector.matrix.tests import FIT
from collector.report.figures import Column, FigureSet
from collector.report.layout import Table

NONE = "-"


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """A table for each test and number of sessions that was measured with a small and a large
    size: devices down; result and CPU of both ends, small then large, across."""
    made = []
    for (netperf, sessions), columns in _by_test(figures).items():
        ordered = sorted(columns, key=lambda column: size_of(column.factors["bytes"]))
        small, large = ordered[0], ordered[-1]
        rows = [
            (row.name, *_cells(figures, row.name, small), *_cells(figures, row.name, large))
            for row in figures.rows
            if any(figures.entry(row.name, column) for column in (small, large))
        ]
        rows = [row for row in rows if any(text != NONE for text in row[1:])]
        if not rows:
            continue
        plural = "session" if sessions == "1" else "sessions"
        unit = small.headline.printed_unit
        made.append(
            Table(
                caption=f"Small beside large, {netperf}, {sessions} {plural} ({unit}, CPU in %)",
                head=("Device", *_head(small), *_head(large)),
                rows=tuple(rows),
            )
        )
    return tuple(made)


def size_of(text: str) -> float:
    """The size that a factor ``bytes`` means, for sorting: ``64``, ``1,1``, and last ``fit``."""
    first = text.split(",", 1)[0]
    return float(first) if first.isdecimal() else math.inf


def _by_test(figures: FigureSet) -> dict[tuple[str, str], list[Column]]:
    """Columns by netperf test and number of sessions, where there are several sizes."""
    found: dict[tuple[str, str], list[Column]] = {}
    for column in figures.columns:
        names = column.factors
        if "bytes" in names and any(figures.entry(row.name, column) for row in figures.rows):
            found.setdefault((names.get("netperf", ""), names.get("sessions", "")), []).append(
                column
            )
    return {
        key: columns
        for key, columns in found.items()
        if len({column.factors["bytes"] for column in columns}) > 1
    }


def _head(column: Column) -> Sequence[str]:
    size = column.factors["bytes"]
    return (size if size == FIT else f"{size} B", "local", "remote")


def _cells(figures: FigureSet, row: str, column: Column) -> Sequence[str]:
    headline = figures.entry(row, column)
    if headline is None or headline.value is None:
        return (NONE, NONE, NONE)
    ends = (figures.entry(row, column, name) for name in ("cpu_local", "cpu_remote"))
    return (headline.text, *(NONE if entry is None else entry.text for entry in ends))
