"""One table, four plain formats: aligned text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

FORMATS = ("text", "json", "markdown", "csv")


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> str:
    """Columns padded with blanks, those named in ``right`` to the right; no trailing blanks."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in [head, *rows]
    )


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> str:
    """A table in GitHub-flavoured Markdown; ``|`` in cells is escaped."""
    rule = ["---:" if name in right else "---" for name in head]
    lines = [head, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def csv_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """CSV with a header line (RFC 4180 but for plain line ends); ``None`` is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue().rstrip("\n")


def json_text(document: Mapping[str, Any] | Sequence[Any]) -> str:
    """JSON, indented; a number that JSON does not have raises ValueError."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str)


def cell_text(value: Any) -> str:
    """A cell of any type as people read it: ``-`` for nothing, six digits for a float."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return " ".join(f"{key}={cell_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell_text, value))
    return str(value)
