"""A block per number of sessions; in it, per device, the CPU of both ends and the throughput."""

from __future__ import annotations

from collector.published import Quantity
from collector.report.figures import Column, Entry, FigureSet
from collector.report.layout import MOST, Footnotes, Table, columns, note_lines, underlined
from collector.report.shapes import sizes

_WORDS = {"1": "Single Netperf session", "5": "Five Netperf sessions"}


def text(figures: FigureSet) -> str:
    """Every test as a block, every device with entries in it."""
    notes = Footnotes()
    blocks = [_block(figures, column, notes) for column in measured(figures)]
    for table in sizes.tables(figures):
        body = columns([table.head, *table.rows])
        blocks.append(f"{underlined(f'{table.caption}:', '=')}\n{body}")
    if notes.texts:
        blocks.append(note_lines(notes.lines()))
    return "\n\n".join(blocks)


def measured(figures: FigureSet) -> tuple[Column, ...]:
    """The tests that some device was measured with; a short form leaves most of them out."""
    return tuple(
        column
        for column in figures.columns
        if any(
            entry.value is not None or entry.footnote is not None
            for row in figures.rows
            for entry in (figures.entry(row.name, column),)
            if entry is not None
        )
    )


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """A table a test: devices down; the result, and the CPU of sender and receiver, across."""
    result: list[Table] = []
    for column in measured(figures):
        notes = Footnotes()
        rows: list[tuple[str, ...]] = []
        for row in figures.rows:
            headline = figures.entry(row.name, column)
            if headline is None or row.reason is not None:
                continue
            result_text = _value(headline, "", notes)
            cpus = [
                "-" if entry is None else _value(entry, "", notes)
                for name in ("cpu_local", "cpu_remote")
                for entry in (figures.entry(row.name, column, name),)
            ]
            beside = [
                "-" if entry is None else entry.text
                for name in ("cpu_local_kinds", "cpu_remote_kinds", "demand", "latency")
                for entry in (figures.entry(row.name, column, name),)
            ]
            rows.append((row.name, result_text, *cpus, *beside))
        local, remote = _ends(column)
        head: tuple[str, ...] = (
            "Device",
            f"Result ({column.headline.printed_unit})",
            f"CPU {local} local (%)",
            f"CPU {remote} remote (%)",
            "Local by kind (%)",
            "Remote by kind (%)",
            "Service demand",
            "Latency",
        )
        head, rows = _filled(head, rows)
        result.append(
            Table(caption=heading(column), head=head, rows=tuple(rows), notes=notes.lines())
        )
    return (*result, *sizes.tables(figures))


def _filled(
    head: tuple[str, ...], rows: list[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows without the columns behind the CPU's that no row fills."""
    kept = [i for i in range(len(head)) if i < 4 or any(row[i] != "-" for row in rows)]
    return tuple(head[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def _ends(column: Column) -> tuple[str, str]:
    """What the local and the remote end do."""
    maerts = column.factors.get("netperf") == "TCP_MAERTS"
    return ("receive", "send") if maerts else ("send", "receive")


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
        if headline is None or row.reason is not None:
            continue  # skipped as a whole: the headline says so
        lines.append(f"{row.name}:")
        if headline.value is None:
            lines.append(f"    {_value(headline, '', notes)}")
            continue
        local = _value(figures.entry(row.name, column, "cpu_local"), "", notes)
        remote = _value(figures.entry(row.name, column, "cpu_remote"), "", notes)
        unit = column.headline.printed_unit.removeprefix("rate ")
        result = _value(headline, unit, notes)
        near, far = ("Recv", "Send") if _ends(column)[0] == "receive" else ("Send", "Recv")
        lines += [
            "    CPU utilization",
            _cpu_line(f"     - {near} local: {local}", figures, row.name, column, "local"),
            _cpu_line(f"     - {far} remote: {remote}", figures, row.name, column, "remote"),
            f"    {_word(column.headline)}: {result}",
        ]
        for name, word in (("demand", "Service demand"), ("latency", "Latency")):
            entry = figures.entry(row.name, column, name)
            if entry is not None:
                lines.append(f"    {word}: {entry.text}")
    return "\n".join(lines)


def _cpu_line(text: str, figures: FigureSet, row: str, column: Column, end: str) -> str:
    """A line of CPU use with the kinds of time behind it, or below it where there is no room."""
    entry = figures.entry(row, column, f"cpu_{end}_kinds")
    if entry is None:
        return text
    whole = f"{text} ({entry.text})"
    return whole if len(whole) <= MOST else f"{text}\n     ({entry.text})"


def _word(quantity: Quantity) -> str:
    return "Transactions" if quantity.unit == "1/s" else "Throughput"


def _value(entry: Entry | None, unit: str, notes: Footnotes) -> str:
    """The value, its unit and its footnote mark; what was not recorded says so."""
    if entry is None:
        return "not measured"
    return f"{entry.text}{' ' + unit if unit else ''}{notes.mark(entry.footnote)}"
