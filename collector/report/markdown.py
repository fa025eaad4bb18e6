"""Markdown (GitHub's dialect: tables, fenced code), for issue trackers and merge requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from collector.published import Published
from collector.report import words
from collector.report.against_published import (
    comparison_sentences,
    comparison_table,
    preamble,
)
from collector.report.evidence import shared_and_own
from collector.report.figures import from_published
from collector.report.kernels import published_changes
from collector.report.layout import Table
from collector.report.model import Report
from collector.report.shapes import shape_named, shape_of_matrix
from collector.report.templating import render
from collector.report.text import difference_text

# What would start markup in running text (https://github.github.com/gfm/, backslash escapes).
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


def escape(text: str) -> str:
    """Text with Markdown's special characters escaped, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def table(content: Table) -> str:
    """A pipe table; figures are right-aligned, footnotes follow as a list."""
    align = [":--" if i < content.texts else "--:" for i in range(len(content.head))]
    lines = [_row(content.head), _row(align, raw=True), *(_row(row) for row in content.rows)]
    parts = ["\n".join(lines)]
    if content.notes:
        parts.append("\n".join(f"- {escape(note)}" for note in content.notes))
    return "\n\n".join(parts)


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return "| " + " | ".join(cell if raw else escape(cell) for cell in cells) + " |"


def fence(content: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}\n{content}\n{mark}"


def run_markdown(report: Report) -> str:
    """The report of a run as Markdown."""
    summary = report.summary
    published = None
    if report.comparison is not None and report.published is not None:
        published = {
            "preamble": preamble(report.comparison, words.citation(report.published.source)),
            "table": comparison_table(report.comparison),
            "sentences": comparison_sentences(report.comparison),
        }
    return render(
        "run.md.j2",
        title=words.title(report),
        headline=words.headline(summary),
        lab_note=words.lab_note(summary),
        tables=shape_of_matrix(summary.matrix).tables(report.figures),
        ratios=words.ratio_table(summary),
        reasons=[*words.baseline_sentences(summary), *words.cell_reasons(summary)],
        notes=summary.notes,
        applied=report.applied,
        published=published,
        sections=report.sections,
        specification=report.specification,
        hosts=shared_and_own(report.hosts),
        hosts_count=len(report.hosts),
        differences=[difference_text(difference) for difference in report.differences],
        commands=[
            (group.title, fence("\n".join(words.command_line(argv) for argv in group.argvs)))
            for group in report.commands
        ],
        proofs=report.proofs,
        files=words.files_sentence(report),
        escape=escape,
        table=table,
    )


def published_markdown(published: Published) -> str:
    """A published experiment as Markdown."""
    source = published.source
    stress = [
        f"{run.hours} hours, {', '.join(run.factors.values())}: {run.outcome}"
        for run in published.stress_runs
    ]
    changes = published_changes(published)
    return render(
        "published.md.j2",
        title=published.title,
        citation=f"Source: {words.citation(source)}.",
        citation_notes=[note for note in (source.date_note, source.subject_note) if note],
        tables=shape_named(published.shape).tables(from_published(published)),
        configurations=published.configurations,
        sections=[
            *([("From kernel to kernel", changes)] if changes else []),
            ("Machines", published.hardware),
            ("How it was measured", published.conditions),
            *([("Stress runs", stress)] if stress else []),
            ("Said about the figures", published.comments),
        ],
        escape=escape,
        table=table,
    )
