"""Samples as Parquet: one row a sample, the schema's version in the file's own metadata.

docs/data-format.md describes every column. A file of an older version opens: columns that it
lacks read as null. A file of a newer version, or with a column that this version does not know,
is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import InputError
from collector.runfolder.runfolder import SAMPLES_FILE
from collector.runfolder.samples import SAMPLE_SCHEMA, Sample, SampleStatus

if TYPE_CHECKING:
    import pyarrow as pa

VERSION_KEY = b"crossover.sample_schema"
_COLUMNS = tuple(column.name for column in fields(Sample))
# What a row without them would mean is unknown; every other column may be null or absent.
_REQUIRED_TEXTS = (
    "run_id",
    "matrix",
    "lab_kind",
    "accelerator",
    "kernel",
    "cell_id",
    "configuration",
    "test",
    "arm",
    "status",
    "unit",
)
_REQUIRED = frozenset([*_REQUIRED_TEXTS, "factors", "block", "sequence", "higher_is_better"])
_NUMBERS = (
    "value",
    "elapsed_s",
    "confidence_level_pct",
    "confidence_wanted_pct",
    "confidence_got_pct",
    "cpu_local_pct",
    "cpu_remote_pct",
    "window_s",
    "start_skew_s",
    "session_low",
    "session_high",
    "sd_local_us",
    "sd_remote_us",
    *(name for name in _COLUMNS if name.startswith("latency_")),
)
_SHARES = ("cpu_local_kinds", "cpu_remote_kinds", "cpu_local_each", "cpu_remote_each")


def arrow_schema() -> pa.Schema:
    """The Arrow schema of ``samples.parquet``, with the version in its metadata."""
    import pyarrow as pa

    texts = (*_REQUIRED_TEXTS, "reason", "started_at", "bounded_by")
    types: dict[str, Any] = dict.fromkeys(texts, pa.string())
    types |= dict.fromkeys(_NUMBERS, pa.float64())
    types |= dict.fromkeys(("block", "sequence", "sessions"), pa.int64())
    types |= dict.fromkeys(("higher_is_better", "confidence_met"), pa.bool_())
    types |= dict.fromkeys(_SHARES, pa.map_(pa.string(), pa.float64()))
    types |= {"factors": pa.map_(pa.string(), pa.string()), "boot_ids": pa.list_(pa.string())}
    return pa.schema(
        [pa.field(name, types[name], nullable=name not in _REQUIRED) for name in _COLUMNS],
        metadata={VERSION_KEY: str(SAMPLE_SCHEMA).encode()},
    )


def write_samples(run_dir: str | Path, samples: Iterable[Sample]) -> Path:
    """Write ``samples.parquet`` of a run folder, whole or not at all; returns its path.

    The file is written beside its place, forced to the disk and renamed. A value without an
    ``ok`` status, or none with one, is refused with ValueError: it would be a wrong number later.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(samples)
    for sample in rows:
        if (sample.value is not None) != (sample.status is SampleStatus.OK):
            raise ValueError(
                f"cell {sample.cell_id}, block {sample.block}: found value {sample.value} with"
                f" status {sample.status.value}; wanted a value if and only if the status is ok"
            )
    columns: dict[str, list[Any]] = {
        name: [getattr(sample, name) for sample in rows] for name in _COLUMNS
    }
    columns["status"] = [sample.status.value for sample in rows]
    columns["factors"] = [sorted(sample.factors.items()) for sample in rows]
    for name in _SHARES:
        columns[name] = [
            None if shares is None else sorted(shares.items()) for shares in columns[name]
        ]
    columns["boot_ids"] = [list(sample.boot_ids) for sample in rows]
    table = pa.Table.from_pydict(columns, schema=arrow_schema())
    target = Path(run_dir) / SAMPLES_FILE
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            pq.write_table(table, stream, compression="zstd")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def check_samples_file(file: Path) -> int:
    """The schema version of a samples file; reads the footer only.

    Raises InputError for a missing file, one that is no Parquet, one without a version, one of a
    newer version, and for columns that are unknown or lacking.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.is_file():
        raise InputError(str(file), "no file of that name", "the samples of a run")
    try:
        schema = pq.read_schema(file)
    except pa.ArrowInvalid as error:
        raise InputError(str(file), f"no Parquet ({error})", "the samples of a run") from error
    written = (schema.metadata or {}).get(VERSION_KEY, b"").decode(errors="replace")
    if not written.isdigit():
        key = VERSION_KEY.decode()
        raise InputError(f"{file}: metadata {key}", repr(written), "the version of the schema")
    version = int(written)
    if version > SAMPLE_SCHEMA:
        raise InputError(
            f"{file}: metadata {VERSION_KEY.decode()}",
            f"{version}, written by a newer version of Crossover",
            f"at most {SAMPLE_SCHEMA} (update Crossover to read it)",
        )
    known = f"a column of version {version}"
    for name in schema.names:
        if name not in _COLUMNS:
            raise InputError(f"{file}: {name}", "an unknown column", known)
    for name in sorted(_REQUIRED - set(schema.names)):
        raise InputError(f"{file}: {name}", "no such column", known)
    return version


def read_samples(run_dir: str | Path) -> list[Sample]:
    """All samples of a run folder, in file order. Raises InputError (check_samples_file)."""
    import pyarrow.parquet as pq

    file = Path(run_dir) / SAMPLES_FILE
    check_samples_file(file)
    return [_sample(row, file) for row in pq.read_table(file).to_pylist()]


def _sample(row: dict[str, Any], file: Path) -> Sample:
    values: dict[str, Any] = {name: row.get(name) for name in _COLUMNS}
    for name in _REQUIRED:
        if values[name] is None:
            where = f"{file}: {name} of cell {row.get('cell_id')}, block {row.get('block')}"
            raise InputError(where, "null", "a value")
    try:
        values["status"] = SampleStatus(values["status"])
    except ValueError as error:
        wanted = ", ".join(status.value for status in SampleStatus)
        raise InputError(f"{file}: status", repr(values["status"]), f"one of {wanted}") from error
    values["factors"] = dict(values["factors"])
    for name in _SHARES:
        values[name] = None if values[name] is None else dict(values[name])
    values["boot_ids"] = tuple(values["boot_ids"] or ())
    return Sample(**values)


def samples_files(run_dirs: Sequence[str | Path]) -> list[Path]:
    """The samples files of several runs, each checked. Raises InputError."""
    files = [Path(run_dir) / SAMPLES_FILE for run_dir in run_dirs]
    for file in files:
        check_samples_file(file)
    return files
