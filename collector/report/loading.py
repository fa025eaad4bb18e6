"""From a run folder to a :class:`collector.report.model.Report`."""

from __future__ import annotations

from pathlib import Path

from collector import published
from collector.compare.neighbours import compare_neighbours
from collector.report import evidence
from collector.report.against_published import compare_published
from collector.report.applied import applied_table
from collector.report.booted import booted_section
from collector.report.figures import from_summary
from collector.report.kernels import published_section, run_section
from collector.report.loss_curves import curves_section
from collector.report.model import Report, Section
from collector.report.setup_commands import setup_of
from collector.report.shapes import units_of_matrix
from collector.report.specification import specification
from collector.runfolder import store
from collector.runfolder.runfolder import Run, load_run
from collector.runfolder.samples import Sample
from collector.stats.judged import judge
from collector.stats.model import MatrixSummary


def load_report(path: str | Path) -> Report:
    """Read a run folder, judge it and gather what a report needs. Raises InputError."""
    run = load_run(path)
    samples = store.read_samples(run.path)
    return build_report(run, samples, folder=str(path))


def build_report(run: Run, samples: list[Sample], folder: str) -> Report:
    """Gather everything a report says; ``folder`` is the run folder as the user named it."""
    summary = judge(run, samples)
    commands = evidence.commands_by_test(run.path, run.plan)
    hosts = evidence.hosts_of(run.provenance)
    experiment = published.load(summary.matrix) if summary.matrix in published.names() else None
    started = sorted(sample.started_at for sample in samples if sample.started_at is not None)
    return Report(
        summary=summary,
        figures=from_summary(summary, units=units_of_matrix(summary.matrix), commands=commands),
        hosts=hosts,
        specification=specification(run.provenance),
        differences=evidence.differences(hosts),
        commands=(*evidence.commands_of(run.path, run.plan), *setup_of(run.path, run.plan)),
        proofs=evidence.proofs_of(run.path, run.plan),
        applied=applied_table(run),
        raw_files=evidence.raw_files_of(run.path),
        started_at=started[0] if started else run.plan.created_at,
        folder=folder.rstrip("/"),
        published=experiment,
        comparison=None if experiment is None else compare_published(summary, experiment),
        sections=_sections(run, samples, summary, experiment),
    )


def _sections(
    run: Run, samples: list[Sample], summary: MatrixSummary, experiment: published.Published | None
) -> tuple[Section, ...]:
    """What this matrix has to say beside its tables."""
    found = [
        booted_section(run),
        run_section(compare_neighbours(run, samples, summary)),
        curves_section(run),
    ]
    if experiment is not None:
        found.append(published_section(experiment))
    return tuple(section for section in found if section is not None)
