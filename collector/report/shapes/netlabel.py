"""Configurations down, tests across, the unit above the columns it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from collector.report.figures import Column, FigureSet, Row
from collector.report.layout import WIDTH, Footnotes, Table, columns, note_lines

GAP = 2
HEADING = "TEST"
_MARK = 3  # room that a footnote's mark takes


def text(figures: FigureSet) -> str:
    """The table as text; more tests than fit a mail's width continue in a table below."""
    notes = Footnotes()
    parts = [_block(figures, group, notes) for group in _groups_that_fit(figures, figures.columns)]
    if notes.texts:
        parts.append(note_lines(notes.lines()))
    return "\n\n".join(parts)


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """One table: a row a configuration, a column a test."""
    notes = Footnotes()
    rows = tuple(
        (
            row.name,
            *(" ".join(_cell(figures, row, column, notes)).strip() for column in figures.columns),
        )
        for row in figures.rows
    )
    head = tuple(f"{c.title or c.name} ({c.headline.printed_unit})" for c in figures.columns)
    return (
        Table(
            caption="Each configuration (down) measured by each test (across)",
            head=("Configuration", *head),
            rows=rows,
            notes=notes.lines(),
        ),
    )


def _cell(figures: FigureSet, row: Row, column: Column, notes: Footnotes) -> tuple[str, str]:
    """Text and footnote mark of a cell; a cell that does not exist is a dash."""
    entry = figures.entry(row.name, column)
    if entry is None:
        return "-", ""
    return entry.text, notes.mark(entry.footnote)


def _block(figures: FigureSet, group: Sequence[Column], notes: Footnotes) -> str:
    cells = [[_cell(figures, row, column, notes) for column in group] for row in figures.rows]
    mark_widths = [max((len(row[i][1]) for row in cells), default=0) for i in range(len(group))]
    body = [
        [
            row.name,
            *(
                text + mark.ljust(width)
                for (text, mark), width in zip(line, mark_widths, strict=True)
            ),
        ]
        for row, line in zip(figures.rows, cells, strict=True)
    ]
    head: list[str] = [
        HEADING,
        *(
            (column.title or column.name) + " " * width
            for column, width in zip(group, mark_widths, strict=True)
        ),
    ]
    _widen_for_units(group, head, body)
    lines = columns([head, *body], gap=GAP).split("\n")
    rule = "=" * max(len(line) for line in lines)
    return "\n".join([_unit_line(group, _widths(head, body)), lines[0], rule, *lines[1:]])


def _widths(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]


def _unit_label(unit: str) -> str:
    return f"({unit})" if "/ sec" in unit else f"(in {unit})"


def _unit_runs(group: Sequence[Column]) -> list[tuple[str, int, int]]:
    """(label, index of its first column in the table, number of columns) of equal units."""
    runs = []
    index = 1  # column 0 has the configurations
    for unit, members in groupby(group, key=lambda column: column.headline.printed_unit):
        count = len(list(members))
        runs.append((_unit_label(unit), index, count))
        index += count
    return runs


def _widen_for_units(
    group: Sequence[Column], head: list[str], body: Sequence[Sequence[str]]
) -> None:
    """Pad headings so that each unit fits above the columns it belongs to."""
    widths = _widths(head, body)
    for label, index, count in _unit_runs(group):
        lacking = len(label) - sum(widths[index : index + count]) - GAP * (count - 1)
        if lacking > 0:
            head[index] = head[index].rjust(widths[index] + lacking)


def _unit_line(group: Sequence[Column], widths: Sequence[int]) -> str:
    """``(in 10^6 bits/sec)`` ending above the last column of each run of equal units."""
    line = " " * widths[0]
    for label, index, count in _unit_runs(group):
        line += label.rjust(sum(widths[index : index + count]) + GAP * count)
    return line.rstrip()


def _width(figures: FigureSet, column: Column, begins: bool) -> int:
    """Room that a column takes, with the gap; ``begins``: its unit stands above it."""
    entries = [figures.entry(row.name, column) for row in figures.rows]
    return GAP + max(
        len(column.title or column.name) + _MARK,
        len(_unit_label(column.headline.printed_unit)) if begins else 0,
        *(len(entry.text) + _MARK for entry in entries if entry is not None),
    )


def _groups_that_fit(figures: FigureSet, all_columns: Sequence[Column]) -> list[list[Column]]:
    """Columns in order, cut where the next one would pass the mail's width.

    The unit above a column may be wider than the column, and counts where it begins.
    """
    first = max([len(HEADING), *(len(row.name) for row in figures.rows)])
    groups: list[list[Column]] = []
    used = 0
    for column in all_columns:
        unit = column.headline.printed_unit
        begins = not groups or groups[-1][-1].headline.printed_unit != unit
        width = _width(figures, column, begins)
        if not groups or used + width > WIDTH:
            groups.append([])
            used, width = first, _width(figures, column, True)
        groups[-1].append(column)
        used += width
    return groups
