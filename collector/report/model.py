"""All that a report of a run says, gathered once; every format is written from it."""

from __future__ import annotations

from dataclasses import dataclass

from collector.published import Published
from collector.report.against_published import PublishedComparison
from collector.report.figures import FigureSet
from collector.report.layout import Table
from collector.report.specification import SpecificationLine
from collector.stats.model import MatrixSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A measured host: facts as (key, text) in the order they are shown."""

    name: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A fact in which the hosts differ: (host, text) for each, ``None`` if not recorded."""

    key: str
    values: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandGroup:
    """The distinct command lines of a test, exactly as executed; a text in the place of an
    argument list is a line for a shell."""

    title: str
    argvs: tuple[tuple[str, ...] | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What shows that a configuration was live: (what, finding) pairs and the files behind them
    (paths relative to the run folder)."""

    configuration: str
    findings: tuple[tuple[str, str], ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Something that only some matrices have to say: tables, then sentences."""

    title: str
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A judged run with everything around it. Paths are relative to the run folder."""

    summary: MatrixSummary
    figures: FigureSet
    hosts: tuple[Host, ...]
    specification: tuple[SpecificationLine, ...]
    differences: tuple[Difference, ...]
    commands: tuple[CommandGroup, ...]
    proofs: tuple[Proof, ...]
    applied: Table | None  # how long the hosts took to apply configurations, where that is told
    raw_files: tuple[str, ...]
    started_at: str | None  # UTC, ISO 8601, of the first sample
    folder: str  # as the user named it
    published: Published | None
    comparison: PublishedComparison | None
    sections: tuple[Section, ...] = ()
