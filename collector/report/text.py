"""Plain text of a mail's width: a run, or a published experiment in its post's own form."""

from __future__ import annotations

from collector.published import Published
from collector.report import words
from collector.report.against_published import comparison_text
from collector.report.evidence import shared_and_own
from collector.report.figures import from_published
from collector.report.kernels import published_changes
from collector.report.layout import MOST, Table, columns, note_lines, paragraph
from collector.report.model import Difference, Report
from collector.report.shapes import shape_named, shape_of_matrix
from collector.report.templating import render


def run_text(report: Report) -> str:
    """The report of a run as plain text, at most 76 columns but for commands and paths."""
    summary = report.summary
    ratios = words.ratio_table(summary)
    published = ""
    if report.comparison is not None and report.published is not None:
        published = comparison_text(report.comparison, words.citation(report.published.source))
    return render(
        "run.txt.j2",
        title=words.title(report),
        headline=words.headline(summary),
        lab_note=words.lab_note(summary),
        table=shape_of_matrix(summary.matrix).text(report.figures),
        ratios=ratios,
        ratios_text=ratios_text(ratios),
        reasons=[*words.baseline_sentences(summary), *words.cell_reasons(summary)],
        notes=summary.notes,
        applied=report.applied,
        applied_text=None
        if report.applied is None
        else columns([report.applied.head, *report.applied.rows]),
        published=published,
        sections=[
            (section.title, [section_table(table) for table in section.tables], section.sentences)
            for section in report.sections
        ],
        specification=report.specification,
        hosts=shared_and_own(report.hosts),
        hosts_count=len(report.hosts),
        differences=report.differences,
        difference_text=difference_text,
        commands=report.commands,
        proofs=report.proofs,
        files=words.files_sentence(report),
        key_value=key_value,
    )


def section_table(table: Table) -> str:
    """A table with its caption above and its notes below."""
    parts = [paragraph(table.caption), columns([table.head, *table.rows], align="l" * table.texts)]
    return "\n\n".join([*parts, *([note_lines(table.notes)] if table.notes else [])])


def ratios_text(table: Table) -> str:
    """The table of ratios; where it would be too wide, the tests become headings."""
    text = columns([table.head, *table.rows], align="llrrrrl")
    if max(len(line) for line in text.split("\n")) <= MOST:
        return text
    lines: list[tuple[str, ...]] = [table.head[1:]]
    test = ""
    for row in table.rows:
        if row[0] != test:
            test = row[0]
            lines.append((f"{test}:",))
        lines.append((f"  {row[1]}", *row[2:]))
    return columns(lines, align="lrrrrl")


def published_text(published: Published) -> str:
    """A published experiment: its table as posted, then machines, method and comments."""
    notes = [published.source.date_note, published.source.subject_note]
    return render(
        "published.txt.j2",
        title=published.title,
        citation=f"Source: {words.citation(published.source)}.",
        citation_notes=[note for note in notes if note is not None],
        table=shape_named(published.shape).text(from_published(published)),
        changes=published_changes(published),
        configurations=published.configurations,
        hardware=published.hardware,
        conditions=published.conditions,
        stress=[
            f"{run.hours} hours, {', '.join(run.factors.values())}: {run.outcome}"
            for run in published.stress_runs
        ],
        comments=published.comments,
        key_value=key_value,
    )


def key_value(key: str, value: str) -> str:
    """``  key: value``, wrapped below itself."""
    return paragraph(f"{key}: {value}", indent="  ", hanging="    ")


def difference_text(difference: Difference) -> str:
    """``key: client 1, server 2``; a host without the fact says so."""
    values = ", ".join(
        f"{host} {'not recorded' if value is None else value}" for host, value in difference.values
    )
    return f"{difference.key}: {values}"
