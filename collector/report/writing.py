"""Reports into files: the formats by name, whole files or none, the tarball of raw output."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.errors import CrossoverError, UsageError
from collector.published import Published
from collector.report.csv_json import published_csv, published_json, run_csv, run_json
from collector.report.html import html_page
from collector.report.markdown import published_markdown, run_markdown
from collector.report.model import Report
from collector.report.run_junit import run_junit
from collector.report.text import published_text, run_text
from collector.runfolder.runfolder import load_run

RUN_FORMATS: dict[str, Callable[[Report], str]] = {
    "text": run_text,
    "markdown": run_markdown,
    "csv": run_csv,
    "json": run_json,
    "junit": run_junit,
    "html": html_page,
}
PUBLISHED_FORMATS: dict[str, Callable[[Published], str]] = {
    "text": published_text,
    "markdown": published_markdown,
    "csv": published_csv,
    "json": published_json,
}

# What a tarball holds: the tools' output, and what is needed to make sense of it.
_PACKED = (
    "plan.json",
    "journal.jsonl",
    "samples.parquet",
    "provenance",
    "evidence",
    "raw",
)


def render_run(report: Report, form: str, out: Path | None) -> str:
    """The report in a format of RUN_FORMATS; an HTML page's links lead from ``out`` to the run."""
    if form == "html" and out is not None:
        base = os.path.relpath(Path(report.folder).resolve(), out.resolve().parent)
        return html_page(report, base="" if base == "." else Path(base).as_posix())
    return RUN_FORMATS[form](report)


def render_published(published: Published, form: str) -> str:
    """A published experiment in a format of PUBLISHED_FORMATS; UsageError for another."""
    if form not in PUBLISHED_FORMATS:
        wanted = ", ".join(PUBLISHED_FORMATS)
        raise UsageError(f"report --published: found --format {form}; wanted one of {wanted}")
    return PUBLISHED_FORMATS[form](published)


def write_file(path: Path, text: str) -> None:
    """Write the file whole or not at all; raises CrossoverError if it cannot be written."""
    with _in_place_of(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_tarball(folder: str | Path, out: Path | None) -> Path:
    """Pack a run's raw output, evidence, provenance, plan, journal and samples; returns the path.

    Names inside begin with the run's id; owners are not recorded. ``out`` defaults to
    ``<matrix>-<run id>.tar.gz`` in the run folder. Raises InputError for what is no run folder,
    CrossoverError if there is no raw output or the archive cannot be written.
    """
    run = load_run(folder)
    files = [
        path
        for name in _PACKED
        for path in ([run.path / name] if name.count(".") else sorted((run.path / name).rglob("*")))
        if path.is_file() and not path.is_symlink()
    ]
    if not any(path.is_relative_to(run.path / "raw") for path in files):
        raise CrossoverError(f"{run.path}/raw: found no files; wanted the tools' raw output")
    target = out or run.path / f"{run.plan.matrix}-{run.plan.run_id}.tar.gz"
    with _in_place_of(target) as partial, tarfile.open(partial, "w:gz") as archive:
        for path in files:
            inside = f"{run.plan.run_id}/{path.relative_to(run.path).as_posix()}"
            archive.add(path, arcname=inside, recursive=False, filter=_without_owner)
    return target


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


@contextmanager
def _in_place_of(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when everything went well."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CrossoverError(f"{path}: {reason}; wanted a file that can be written") from error
    finally:
        partial.unlink(missing_ok=True)
