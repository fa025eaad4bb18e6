"""A block per number of sessions; in it, per device, the CPU of both ends and the throughput."""

from __future__ import annotations

from collector.published import Quantity
from collector.report.figures import Column, Entry, FigureSet
from collector.report.layout import Footnotes, Table, note_lines, underlined

_WORDS = {"1": "Single Netperf session", "5": "Five Netperf sessions"}


def text(figures: FigureSet) -> str:
    """Every test as a block, every device with entries in it."""
    notes = Footnotes()
    blocks = [_block(figures, column, notes) for column in figures.columns]
    if notes.texts:
        blocks.append(note_lines(notes.lines()))
    return "\n\n".join(blocks)


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """A table a test: devices down; the result, and the CPU of sender and receiver, across."""
    result: list[Table] = []
    for column in figures.columns:
        notes = Footnotes()
        rows: list[tuple[str, ...]] = []
        for row in figures.rows:
            headline = figures.entry(row.name, column)
            if headline is None:
                continue
            result_text = _value(headline, "", notes)
            cpus = [
                "-" if entry is None else _value(entry, "", notes)
                for name in ("cpu_local", "cpu_remote")
                for entry in (figures.entry(row.name, column, name),)
            ]
            rows.append((row.name, result_text, *cpus))
        unit = column.headline.printed_unit
        result.append(
            Table(
                caption=heading(column),
                head=("Device", f"Result ({unit})", "CPU send local (%)", "CPU receive remote (%)"),
                rows=tuple(rows),
                notes=notes.lines(),
            )
        )
    return tuple(result)


def heading(column: Column) -> str:
    """The block's title: the sessions, and the test where it is not the post's own."""
    sessions = column.factors.get("sessions")
    if column.title is not None:
        return column.title
    if sessions is None:
        return column.name
    return f"{_WORDS.get(sessions, f'{sessions} Netperf sessions')}, {column.name}"


def _block(figures: FigureSet, column: Column, notes: Footnotes) -> str:
    lines = [underlined(f"{heading(column)}:", "=")]
    for row in figures.rows:
        headline = figures.entry(row.name, column)
        if headline is None:
            continue
        lines.append(f"{row.name}:")
        if headline.value is None:
            lines.append(f"    {_value(headline, '', notes)}")
            continue
        local = _value(figures.entry(row.name, column, "cpu_local"), "", notes)
        remote = _value(figures.entry(row.name, column, "cpu_remote"), "", notes)
        unit = column.headline.printed_unit.removeprefix("rate ")
        result = _value(headline, unit, notes)
        lines += [
            "    CPU utilization",
            f"     - Send local: {local}",
            f"     - Recv remote: {remote}",
            f"    {_word(column.headline)}: {result}",
        ]
    return "\n".join(lines)


def _word(quantity: Quantity) -> str:
    return "Transactions" if quantity.unit == "1/s" else "Throughput"


def _value(entry: Entry | None, unit: str, notes: Footnotes) -> str:
    """The value, its unit and its footnote mark; what was not recorded says so."""
    if entry is None:
        return "not measured"
    return f"{entry.text}{' ' + unit if unit else ''}{notes.mark(entry.footnote)}"
