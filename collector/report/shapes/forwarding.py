"""Frame sizes down, kernels across, the forwarded share in per cent.

What was skipped as a whole is told above the tables, and has none.

Factors other than kernel and frame size (pinning, direction, rules) each give a table of their
own; only what differs between the tables is named above them.
"""

from __future__ import annotations

from collector.report.figures import SKIPPED, Column, Entry, FigureSet, Row
from collector.report.layout import Footnotes, Table, columns, note_lines

# Factors that make the table's own two sides, and one that only follows from the kernel.
_SIDES = frozenset({"kernel", "frame_bytes", "cpu_ghz"})


def text(figures: FigureSet) -> str:
    """A table for each combination of the other factors."""
    notes = Footnotes()
    parts: list[str] = []
    for label, rows, sizes in _groups(figures):
        kernels = [kernel_of(row) for row in rows]
        lines = [["Size", *kernels]]
        for column in sizes:
            lines.append(
                [
                    size_of(column),
                    *(_marked(figures.entry(row.name, column), notes) for row in rows),
                ]
            )
        unit = sizes[0].headline.printed_unit
        title = f"Forwarded, {unit}{': ' + label if label else ''}"
        parts.append(title + "\n\n" + columns(lines, align="l"))
    if notes.texts:
        parts.append(note_lines(notes.lines()))
    return "\n\n".join(parts)


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """A table for each combination of the other factors."""
    result: list[Table] = []
    for label, rows, sizes in _groups(figures):
        notes = Footnotes()
        body = tuple(
            (size_of(column), *(_marked(figures.entry(row.name, column), notes) for row in rows))
            for column in sizes
        )
        unit = sizes[0].headline.printed_unit
        result.append(
            Table(
                caption=f"Forwarded frames, {unit}{': ' + label if label else ''}",
                head=("Frame size (bytes)", *(kernel_of(row) for row in rows)),
                rows=body,
                notes=notes.lines(),
            )
        )
    return tuple(result)


def kernel_of(row: Row) -> str:
    """The heading of a column: the kernel the configuration runs."""
    return row.factors.get("kernel", row.name)


def size_of(column: Column) -> str:
    """The heading of a row: the frame size, FCS included."""
    return column.factors.get("frame_bytes", column.title or column.name)


def _others(row: Row, column: Column) -> tuple[tuple[str, str], ...]:
    merged = {**row.factors, **column.factors}
    return tuple(sorted((k, v) for k, v in merged.items() if k not in _SIDES))


def _groups(figures: FigureSet) -> list[tuple[str, list[Row], list[Column]]]:
    """(what sets the table apart, its rows' configurations, its tests), in order of appearance."""
    found: dict[tuple[tuple[str, str], ...], tuple[dict[str, Row], dict[str, Column]]] = {}
    for column in figures.columns:
        for row in figures.rows:
            entry = figures.entry(row.name, column)
            if entry is not None and entry.text != SKIPPED:
                rows, sizes = found.setdefault(_others(row, column), ({}, {}))
                rows[row.name] = row
                sizes[column.name] = column
    shared = set.intersection(*(set(key) for key in found)) if found else set()
    groups = []
    for key, (rows, sizes) in found.items():
        label = ", ".join(f"{name} {value}" for name, value in key if (name, value) not in shared)
        ordered = [row for row in figures.rows if row.name in rows]
        groups.append((label, ordered, list(sizes.values())))
    return groups


def _marked(entry: Entry | None, notes: Footnotes) -> str:
    return "-" if entry is None else f"{entry.text}{notes.mark(entry.footnote)}"
