"""A history as text, CSV, JSON, and as files that Apache Otava reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from collector.history.history import ChangePoint, Series
from collector.tables import csv_table, json_text, text_table

HISTORY_SCHEMA = 1
_HEAD = ("series", "runs", "first", "last", "unit", "changes")
_COLUMNS = (
    "time", "run_id", "kernel", "matrix", "configuration", "test", "factors", "lab_kind",
    "accelerator", "value", "unit", "higher_is_better", "n", "change_pct", "provisional",
)  # fmt: skip


def render(history: Sequence[Series], form: str) -> str:
    """The history as ``text``, ``csv`` (one row a point) or ``json``."""
    if form == "json":
        return json_text({"schema": HISTORY_SCHEMA, "series": [asdict(item) for item in history]})
    if form == "csv":
        return csv_table(_COLUMNS, [row for item in history for row in _rows(item)])
    rows = [
        [
            item.name,
            str(len(item.points)),
            f"{item.points[0].value:.6g}" if item.points else "-",
            f"{item.points[-1].value:.6g}" if item.points else "-",
            item.unit,
            str(len(item.changes)),
        ]
        for item in history
    ]
    lines = [f"* {item.name}: {line}" for item in history for line in _lines(item)]
    notes: dict[str, list[str]] = {}
    for item in history:
        if item.note:
            notes.setdefault(item.note, []).append(item.name)
    for note, names in notes.items():
        whose = names[0] if len(names) == 1 else f"{len(names)} of {len(history)} series"
        lines.append(f"* {whose}: {note}")
    table = text_table(_HEAD, rows, ("runs", "first", "last", "changes"))
    return "\n\n".join(part for part in (table, "\n".join(lines)) if part)


def _lines(item: Series) -> list[str]:
    lines = [_change_line(item, change) for change in item.changes]
    if item.lacking:
        lines.append(f"no valid repeat in {', '.join(item.lacking)}")
    return lines


def _change_line(item: Series, change: ChangePoint) -> str:
    direction = "better" if change.better else "worse"
    sure = (
        f", provisional: {change.before} points before and {change.after} after"
        if change.provisional
        else ""
    )
    kernel = item.points[change.index].kernel
    return f"{change.change_pct:+.1f} % ({direction}) from {change.run_id} on, {kernel}{sure}"


def _rows(item: Series) -> list[list[object]]:
    changes = {change.index: change for change in item.changes}
    factors = " ".join(f"{key}={value}" for key, value in sorted(item.factors.items()))
    rows: list[list[object]] = []
    for number, point in enumerate(item.points):
        change = changes.get(number)
        rows.append(
            [
                point.time,
                point.run_id,
                point.kernel,
                item.matrix,
                item.configuration,
                item.test,
                factors,
                item.lab_kind,
                item.accelerator,
                point.value,
                item.unit,
                item.higher_is_better,
                point.n,
                None if change is None else change.change_pct,
                None if change is None else change.provisional,
            ]
        )
    return rows


def write_otava(history: Sequence[Series], folder: Path) -> list[Path]:
    """Write one CSV a series and an ``otava.yaml`` that names them all; returns the paths.

    One file a series, because Otava takes no empty cell in a column of numbers. Columns: time,
    run_id, kernel, value.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tests: dict[str, object] = {}
    written = []
    for item in history:
        if not item.points:
            continue
        file = folder / f"{re.sub(r'[^A-Za-z0-9_.=-]', '_', item.name)}.csv"
        rows = [(point.time, point.run_id, point.kernel, point.value) for point in item.points]
        file.write_text(csv_table(("time", "run_id", "kernel", "value"), rows) + "\n", "utf-8")
        written.append(file)
        tests[item.name] = {
            "type": "csv",
            "file": str(file),
            "time_column": "time",
            "attributes": ["run_id", "kernel"],
            "metrics": {
                "value": {"column": "value", "direction": 1 if item.higher_is_better else -1}
            },
            "csv_options": {"delimiter": ",", "quote_char": '"'},
        }
    configuration = folder / "otava.yaml"
    configuration.write_text(yaml.safe_dump({"tests": tests}, sort_keys=False), "utf-8")
    return [*written, configuration]
