"""A comparison as text, Markdown, CSV, JSON and JUnit."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from collector import junit
from collector.compare.model import ComparedCell, Comparison
from collector.tables import csv_table, json_text, markdown_table, text_table
from collector.verdict import Outcome

COMPARISON_SCHEMA = 1

_HEAD = ("test", "configuration", "base", "new", "change", "95 % interval", "p", "outcome")
_RIGHT = ("base", "new", "change", "95 % interval", "p")
_PRINTED_UNITS = {"bit/s": ("10^6 bit/s", 1e6), "1/s": ("1/s", 1.0), "%": ("%", 1.0)}
_JUNIT = {
    Outcome.OK: junit.Outcome.PASSED,
    Outcome.IMPROVEMENT: junit.Outcome.PASSED,
    Outcome.REGRESSION: junit.Outcome.FAILED,
    # A gate that looks at the JUnit file only must not read "could not be told" as passed.
    Outcome.NOT_ENOUGH_DATA: junit.Outcome.ERROR,
    Outcome.INVALID: junit.Outcome.ERROR,
    Outcome.INFRASTRUCTURE: junit.Outcome.ERROR,
}


def render(comparison: Comparison, form: str) -> str:
    """The comparison in one of collector.tables.FORMATS, without a final newline."""
    if form == "json":
        return json_text(as_document(comparison))
    if form == "csv":
        cells = [_flat(cell) for cell in comparison.cells]
        return csv_table(list(cells[0]), [list(cell.values()) for cell in cells])
    rows = [_row(cell) for cell in comparison.cells]
    table = (markdown_table if form == "markdown" else text_table)(_HEAD, rows, _RIGHT)
    bullets = [f"{cell_name(cell)}: {_explanation(cell)}" for cell in comparison.cells]
    bullets = [line for line in bullets if not line.endswith(": ")]
    bullets += comparison.notes
    headline = (
        f"{comparison.outcome.value}: {comparison.new} against {comparison.base}"
        f" ({comparison.lab}; {comparison.method})"
    )
    tested = "" if comparison.level is None else f"level {comparison.level:g} over "
    rules = (
        f"{tested}{len(comparison.cells)} cells by {comparison.procedure},"
        f" minimum effect {comparison.min_effect_pct:g} %"
    )
    listed = "\n".join(f"{'- ' if form == 'markdown' else '* '}{line}" for line in bullets)
    return "\n\n".join(part for part in (headline, table, rules, listed) if part)


def as_document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON takes it; docs/data-format.md describes it."""
    document = asdict(comparison)
    document["outcome"] = comparison.outcome.value
    document["exit_code"] = comparison.outcome.exit_code
    document["cells"] = [
        {**asdict(cell), "outcome": cell.outcome.value, "change_pct": cell.change_pct}
        for cell in comparison.cells
    ]
    return {"schema": COMPARISON_SCHEMA, **document}


def junit_text(comparison: Comparison) -> str:
    """The comparison as a JUnit document: one case a cell, and one for the whole."""
    cases = []
    for cell in comparison.cells:
        outcome = junit.Outcome.SKIPPED if cell.ack else _JUNIT[cell.outcome]
        passed = outcome is junit.Outcome.PASSED
        cases.append(
            junit.Case(
                classname=f"crossover.compare.{cell.test}",
                name=cell_name(cell),
                outcome=outcome,
                kind=None if passed else cell.outcome.value,
                message=None if passed else _message(cell),
                output=_message(cell),
            )
        )
    return junit.junit_xml(f"crossover compare {comparison.base} {comparison.new}", cases)


def cell_name(cell: ComparedCell) -> str:
    """The cell as tables name it: test, configuration, factors where there are any."""
    factors = "".join(f" {key}={value}" for key, value in sorted(cell.factors.items()))
    if cell.new_configuration != cell.configuration:
        return f"{cell.test} {cell.configuration} -> {cell.new_configuration}"
    return f"{cell.test} {cell.configuration}{factors}"


def _configuration(cell: ComparedCell) -> str:
    return cell_name(cell).removeprefix(f"{cell.test} ")


def _row(cell: ComparedCell) -> list[str]:
    unit, scale = _PRINTED_UNITS.get(cell.unit, (cell.unit, 1.0))
    outcome = f"{cell.outcome.value} (known)" if cell.ack else cell.outcome.value
    return [
        f"{cell.test} [{unit}]",
        _configuration(cell),
        "-" if cell.base is None else f"{cell.base / scale:.2f}",
        "-" if cell.new is None else f"{cell.new / scale:.2f}",
        _change(cell),
        _interval(cell),
        "-" if cell.p is None else f"{cell.p:.2g}",
        outcome,
    ]


def _change(cell: ComparedCell) -> str:
    return "-" if cell.change_pct is None else f"{cell.change_pct:+.1f} %"


def _interval(cell: ComparedCell) -> str:
    if cell.ratio_low is None or cell.ratio_high is None:
        return "-"
    return f"{(cell.ratio_low - 1) * 100:+.1f} to {(cell.ratio_high - 1) * 100:+.1f}"


def _explanation(cell: ComparedCell) -> str:
    parts = [cell.reason or ""]
    if cell.ack:
        until = f" until {cell.ack.until}" if cell.ack.until else ""
        parts.append(f"known loss of {cell.ack.loss_pct:g} %{until} ({cell.ack.reason})")
    return "; ".join(part for part in parts if part)


def _message(cell: ComparedCell) -> str:
    text = f"{cell.outcome.value}: {_change(cell)} ({_interval(cell)})"
    explanation = _explanation(cell)
    return f"{text}; {explanation}" if explanation else text


def _flat(cell: ComparedCell) -> dict[str, Any]:
    flat = asdict(cell)
    flat["factors"] = " ".join(f"{key}={value}" for key, value in sorted(cell.factors.items()))
    flat["outcome"] = cell.outcome.value
    flat["ack"] = cell.ack.reason if cell.ack else None
    return {**flat, "change_pct": cell.change_pct}
