"""One self-contained HTML page of a run: no script, no outside resource, light and dark."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from itertools import groupby
from urllib.parse import quote

from collector.report import words
from collector.report.against_published import (
    comparison_sentences,
    comparison_table,
    preamble,
)
from collector.report.figures import Column, Entry, cell_remarks, has_number, printed_number
from collector.report.layout import Table
from collector.report.model import Report
from collector.report.plots import Strip, strip_plot
from collector.report.shapes import shape_of_matrix
from collector.report.templating import render
from collector.stats.model import CellSummary
from collector.verdict import Verdict


def html_page(report: Report, *, base: str = "") -> str:
    """The page. ``base`` is the way from the page to the run folder, ``""`` if it lies in it."""
    summary = report.summary
    comparison = report.comparison
    published = None
    if comparison is not None and report.published is not None:
        published = {
            "preamble": preamble(comparison, words.citation(report.published.source)),
            "table": comparison_table(comparison),
            "sentences": comparison_sentences(comparison),
        }
    return render(
        "run.html.j2",
        html=True,
        title=words.title(report),
        matrix=summary.matrix,
        run_id=summary.run_id,
        started_at=moment(report.started_at),
        verdict=words.verdict_line(summary),
        tone=tone(report),
        rest=words.headline(summary)[1:],
        lab_note=words.lab_note(summary),
        tables=[anchored(t, f"table-{i}") for i, t in enumerate(_result_tables(report))],
        ratio_caption=words.ratio_table(summary).caption,
        ratio_groups=[
            list(group) for _, group in groupby(words.ratio_rows(summary), key=lambda r: r.test)
        ],
        verdict_class=verdict_class,
        reasons=[*words.baseline_sentences(summary), *words.cell_reasons(summary)],
        notes=summary.notes,
        applied=report.applied,
        plots=[_plot(report, column, i) for i, column in enumerate(report.figures.columns)],
        samples=_sample_tables(report),
        published=published,
        sections=report.sections,
        specification=report.specification,
        hosts=report.hosts,
        fact_rows=fact_rows(report),
        commands=report.commands,
        proofs=report.proofs,
        listed=listed,
        raw_groups=raw_groups(report),
        folder=report.folder,
        split_mark=split_mark,
        split_note=split_note,
        split_unit=split_unit,
        link=lambda path: link(base, path),
    )


def moment(time: str | None) -> str | None:
    """``2026-01-01T10:00:00Z`` as ``2026-01-01 10:00 UTC``; None stays None."""
    if time is None or not time.endswith("Z") or len(time) < 17:
        return time
    return f"{time[:10]} {time[11:16]} UTC"


def tone(report: Report) -> str:
    """``doubt`` if there is no verdict or a cell is invalid, else ``plain``."""
    cells = [c for c in report.summary.cells if c.arm == ""]
    doubtful = any(c.verdict in (Verdict.INVALID, Verdict.NOT_ENOUGH_DATA) for c in cells)
    return "doubt" if doubtful else "plain"


def verdict_class(verdict: str) -> str:
    """The class name of a verdict's full word."""
    return {
        Verdict.FASTER.value: "faster",
        Verdict.SLOWER.value: "slower",
        Verdict.INVALID.value: "invalid",
    }.get(verdict, "neutral")


MOST_LINKS = 2000  # of one kind on a page; a long campaign has more and is linked by folder
_MARK_BEHIND = re.compile(r"^(.*?) ?\[(\d+)\]$")
_MARK_BEFORE = re.compile(r"^\[(\d+)\] (.*)$")


def split_mark(text: str) -> tuple[str, str]:
    """A cell's text and the number of its footnote: ``9.8[2]`` gives ``("9.8", "2")``."""
    found = _MARK_BEHIND.match(text)
    return (found[1], found[2]) if found else (text, "")


def split_note(text: str) -> tuple[str, str]:
    """A footnote's text and its number."""
    found = _MARK_BEFORE.match(text)
    return (found[2], found[1]) if found else (text, "")


def split_unit(text: str) -> tuple[str, str]:
    """A heading and its unit: ``"tcp_rr (rate / sec)"`` gives ``("tcp_rr", "rate / sec")``."""
    word, opening, unit = text.partition(" (")
    return (word, unit.removesuffix(")")) if opening and text.endswith(")") else (text, "")


def anchored(table: Table, identity: str) -> dict[str, object]:
    """A table with an id for its caption."""
    return {"id": identity, "table": table}


def link(base: str, path: str) -> str:
    """A relative address of a file of the run folder, percent-encoded."""
    return quote(posixpath.join(base, path) if base else path)


def fact_rows(report: Report) -> list[tuple[str, list[str], bool]]:
    """(key, text by host, whether they differ) for every fact of any host."""
    tables = [dict(host.facts) for host in report.hosts]
    differing = {difference.key for difference in report.differences}
    keys = dict.fromkeys(key for host in report.hosts for key, _ in host.facts)
    return [
        (key, [table.get(key, "not recorded") for table in tables], key in differing)
        for key in keys
    ]


def raw_groups(report: Report) -> list[tuple[str, list[tuple[str, str]]]]:
    """Raw files by cell: (cell in words, [(path in the run folder, path below the cell)])."""
    cells = {
        cell.cell_id: f"{cell.configuration} {cell.test}{' (A/A)' if cell.arm else ''}"
        for cell in report.summary.cells
    }
    groups: dict[str, list[tuple[str, str]]] = {}
    for path in listed(report.raw_files):
        parts = path.split("/")
        groups.setdefault(parts[1], []).append((path, "/".join(parts[2:]) or parts[1]))
    return [(cells.get(name, name), files) for name, files in groups.items()]


def listed(paths: Sequence[str]) -> tuple[str, ...]:
    """The paths, or the folders they lie in (with a final slash) if there are too many to list."""
    if len(paths) <= MOST_LINKS:
        return tuple(paths)
    return tuple(dict.fromkeys(f"{path.rpartition('/')[0]}/" for path in paths))


def _result_tables(report: Report) -> tuple[Table, ...]:
    return shape_of_matrix(report.summary.matrix).tables(report.figures)


def _plot(report: Report, column: Column, index: int) -> dict[str, object]:
    summary = report.summary
    quantity = column.headline
    strips = []
    for row in report.figures.rows:
        cell = summary.cell(row.name, column.name)
        if cell is None or cell.verdict is Verdict.SKIPPED:
            continue
        shown = has_number(cell)
        strips.append(
            Strip(
                label=row.name,
                values=tuple(
                    None if value is None or not shown else value / quantity.scale
                    for value in cell.values
                ),
                result=_result(cell, report.figures.entry(row.name, column)),
                baseline=row.name == summary.baseline,
            )
        )
    svg, axis = strip_plot(
        identity=f"plot-{index}",
        title=f"{column.name}: every sample by configuration",
        unit=quantity.printed_unit,
        strips=strips,
        resamples=summary.resamples,
        seed=summary.seed,
    )
    remarks = [
        f"{cell.configuration}: {remark}"
        for cell in summary.cells
        if cell.test == column.name and cell.arm == "" and has_number(cell)
        for remark in cell_remarks(cell)
    ]
    return {"name": column.name, "svg": svg, "axis": axis, "remarks": remarks}


def _result(cell: CellSummary, entry: Entry | None) -> str:
    if entry is None or entry.value is None:
        return cell.verdict.value if entry is None else entry.text
    ratio = "" if cell.ratio is None else f" · × {cell.ratio:.3f}"
    return f"{entry.text}{ratio}"


def _sample_tables(report: Report) -> list[Table]:
    """Per test the value of every configuration in every block, A/A member included."""
    tables = []
    for column in report.figures.columns:
        rows = []
        for cell in report.summary.cells:
            if cell.test != column.name or cell.verdict is Verdict.SKIPPED:
                continue
            name = f"{cell.configuration} (A/A)" if cell.arm else cell.configuration
            values = [
                "-" if value is None else printed_number(value, column.headline)
                for value in cell.values
            ]
            rows.append((name, *values))
        tables.append(
            Table(
                caption=f"{column.name}: samples by block, {column.headline.printed_unit}",
                head=("Configuration", *(str(b) for b in range(report.summary.blocks))),
                rows=tuple(rows),
            )
        )
    return tables
