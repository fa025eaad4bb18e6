"""A block per netperf command: the value with a label, and in parentheses the one without.

The headings are those of netperf's classic tables (netperf manual, "Using Netperf to Measure
Bulk Data Transfer" and "… Request/Response"). Columns that were not recorded are left out.
"""

from __future__ import annotations

from collector.published import Quantity
from collector.report.figures import Column, Entry, FigureSet, Row
from collector.report.layout import Footnotes, Table, columns, note_lines, paragraph

Heading = tuple[str, str, str, str]

# (heading, detail of the first line, detail of the second line)
_STREAM: tuple[tuple[Heading, str, str], ...] = (
    (("Recv", "Socket", "Size", "bytes"), "recv_socket_bytes", ""),
    (("Send", "Socket", "Size", "bytes"), "send_socket_bytes", ""),
    (("Send", "Message", "Size", "bytes"), "message_bytes", ""),
    (("", "Elapsed", "Time", "secs."), "elapsed_s", ""),
)
_RR: tuple[tuple[Heading, str, str], ...] = (
    (("Local", "Socket", "Send", "bytes"), "local_send_socket_bytes", "remote_send_socket_bytes"),
    (("/Remote", "Size", "Recv", "bytes"), "local_recv_socket_bytes", "remote_recv_socket_bytes"),
    (("", "Request", "Size", "bytes"), "request_bytes", ""),
    (("", "Resp.", "Size", "bytes"), "response_bytes", ""),
    (("", "Elapsed", "Time", "secs."), "elapsed_s", ""),
)
_UDP: tuple[tuple[Heading, str, str], ...] = (
    (("", "Socket", "Size", "bytes"), "send_socket_bytes", "recv_socket_bytes"),
    (("", "Message", "Size", "bytes"), "message_bytes", ""),
    (("", "Elapsed", "Time", "secs."), "elapsed_s", "elapsed_s"),
    (("", "Messages", "Okay", "#"), "messages_sent", "messages_received"),
    (("", "", "Errors", "#"), "send_errors", ""),
)
_NO_LABEL = frozenset({"", "off", "no", "none", "false"})


def is_labelled(factors: dict[str, str]) -> bool:
    """Whether the factor ``label`` names one."""
    return factors.get("label", "").lower() not in _NO_LABEL


def pairs(rows: tuple[Row, ...]) -> tuple[tuple[str, Row | None, Row | None], ...]:
    """Rows that differ only in their label: (what they share, with label, without label)."""
    found: dict[tuple[tuple[str, str], ...], list[Row | None]] = {}
    for row in rows:
        shared = tuple(sorted((k, v) for k, v in row.factors.items() if k != "label"))
        pair = found.setdefault(shared, [None, None])
        index = 0 if is_labelled(row.factors) else 1
        if pair[index] is not None:  # a second row of the same factors: keep it apart by name
            pair = found.setdefault((*shared, ("configuration", row.name)), [None, None])
        pair[index] = row
    return tuple(
        (" ".join(value for _, value in shared), with_label, without)
        for shared, (with_label, without) in found.items()
    )


def text(figures: FigureSet) -> str:
    """Every test as a block, in order, with its footnotes below it."""
    notes = Footnotes()
    return "\n\n\n".join(_block(figures, column, notes) for column in figures.columns)


def tables(figures: FigureSet) -> tuple[Table, ...]:
    """One table: a row a test (and, in a run, what the pair shares)."""
    notes = Footnotes()
    rows: list[tuple[str, ...]] = []
    for column in figures.columns:
        for shared, with_label, without in pairs(figures.rows):
            for quantity in _quantities(column):
                left = _entry(figures, with_label, column, quantity.name)
                right = _entry(figures, without, column, quantity.name)
                if left is None and right is None:
                    continue
                sent = ", sent" if quantity.name == "send_throughput" else ""
                name = f"{column.name}{sent} {shared}".strip()
                values = (_marked(left, notes), _marked(right, notes))
                rows.append((name, quantity.printed_unit, *values))
    return (
        Table(
            caption="Each netperf command with a label on the SAs and without one",
            head=("Test", "Unit", "With label", "Without label"),
            rows=tuple(rows),
            notes=notes.lines(),
            texts=2,
        ),
    )


def _block(figures: FigureSet, column: Column, notes: Footnotes) -> str:
    first_note = len(notes.texts)
    layout, value_head = _layout(column)
    used = [item for item in layout if item[1] in column.details]
    groups = pairs(figures.rows)
    named = any(shared for shared, _, _ in groups)
    head = [
        [*([""] if named else []), *(item[0][i] for item in used), value_head[i]] for i in range(4)
    ]
    head = [line for line in head if any(line)]
    head[-1].append("(without label)")
    body: list[list[str]] = []
    for shared, with_label, without in groups:
        for line, quantity in enumerate(_quantities(column)):
            left = _entry(figures, with_label, column, quantity.name)
            right = _entry(figures, without, column, quantity.name)
            if left is None and right is None:
                continue
            keys = [(first, second)[line] for _, first, second in used]
            details = [column.details.get(key, "") for key in keys]
            label = [shared if line == 0 else ""] if named else []
            body.append([*label, *details, _marked(left, notes), f"({_marked(right, notes)})"])
        if layout is _RR and used:
            remote = [column.details.get(item[2], "") for item in used]
            body.append([*([""] if named else []), *remote])
    align = ("l" if named else "") + "r" * (len(used) + 1) + "l"
    command = " ".join(column.command) if column.command else column.name
    parts = [paragraph(command, hanging="        ")]
    if column.title:
        parts.append(column.title)
    parts.append(columns([*head, [], *body], align=align))
    new = notes.lines()[first_note:]
    if new:
        parts.append(note_lines(new))
    return "\n\n".join(parts)


def _layout(column: Column) -> tuple[tuple[tuple[Heading, str, str], ...], Heading]:
    unit = column.headline.printed_unit.replace("10^6 ", "10^6")
    if column.headline.unit == "1/s":
        return _RR, ("", "Trans.", "Rate", "per sec")
    if any(q.name == "send_throughput" for q in column.quantities):
        return _UDP, ("", "", "Throughput", unit)
    return _STREAM, ("", "", "Throughput", unit)


def _quantities(column: Column) -> list[Quantity]:
    return [q for q in column.quantities if q.name in ("send_throughput", "throughput")]


def _entry(figures: FigureSet, row: Row | None, column: Column, quantity: str) -> Entry | None:
    return None if row is None else figures.entry(row.name, column, quantity)


def _marked(entry: Entry | None, notes: Footnotes) -> str:
    """Text with its footnote mark; a value that does not exist is a dash."""
    return "-" if entry is None else f"{entry.text}{notes.mark(entry.footnote)}"
