"""Asking runs: SQL over the samples of any number of runs, JMESPath over the documents of one.

The SQL sees two views. ``samples`` is every sample of every run, with the run folder in column
``run``; DuckDB reads the Parquet files as far as the query needs. ``cells`` has one row a run and
cell, with the numbers and the verdict of CellSummary. Queries can read nothing else: no other
file, no network, no extension, and they change nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import UsageError
from collector.runfolder.runfolder import load_run
from collector.runfolder.store import arrow_schema, read_samples, samples_files
from collector.stats import CellSummary
from collector.stats.judged import judge

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def ask(run_dirs: Sequence[str | Path], sql: str) -> Answer:
    """Run one SELECT over the runs.

    Raises InputError for unreadable runs, UsageError for SQL that is not a single reading
    statement, that DuckDB refuses, or that reaches for anything but the two views.
    """
    import duckdb

    if not run_dirs:
        raise UsageError("query: found no run; wanted at least one run folder")
    files = samples_files(run_dirs)
    with tempfile.TemporaryDirectory(prefix="crossover-query-") as spill:
        connection = duckdb.connect(":memory:")
        try:
            _only_statement(connection, sql)
            _views(connection, run_dirs, files, sql, Path(spill))
            result = connection.execute(sql)
            columns = [column[0] for column in result.description or []]
            return Answer(columns, [tuple(map(_plain, row)) for row in result.fetchall()])
        except duckdb.Error as error:
            message = str(error).strip()
            raise UsageError(f"query: DuckDB refused it: {message}") from error
        finally:
            connection.close()


def _only_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    allowed = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
    if len(statements) != 1 or statements[0].type not in allowed:
        kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
        raise UsageError(f"query: found {kinds}; wanted one SELECT (queries only read)")


def _views(
    connection: duckdb.DuckDBPyConnection,
    run_dirs: Sequence[str | Path],
    files: Sequence[Path],
    sql: str,
    spill: Path,
) -> None:
    paths = [str(file.resolve()) for file in files]
    listed = ", ".join(map(_quoted, paths))
    connection.execute(f"SET temp_directory = {_quoted(str(spill))}")
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute(f"SET allowed_directories = [{_quoted(str(spill))}]")
    # Judging takes time; a query that does not name the cells need not wait for it.
    connection.register("cells", cells_table(run_dirs if "cells" in sql.lower() else ()))
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    names = "".join(
        f" WHEN {_quoted(path)} THEN {_quoted(str(run))}"
        for path, run in zip(paths, run_dirs, strict=True)
    )
    lacking = arrow_schema().empty_table()
    connection.register("samples_of_this_version", lacking)
    connection.execute(
        f"CREATE VIEW samples AS SELECT CASE filename{names} END AS run, * EXCLUDE (filename)"
        f" FROM (SELECT *, '' AS filename FROM samples_of_this_version UNION ALL BY NAME"
        f" SELECT * FROM read_parquet([{listed}], union_by_name = true, filename = true))"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    """Values as JSON has them: tuples become lists (JMESPath indexes nothing else)."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def cells_table(run_dirs: Sequence[str | Path]) -> pa.Table:
    """The judged cells of the runs, one row each; an Arrow table."""
    import pyarrow as pa

    names = ["run", "run_id", "matrix", "lab_kind", "accelerator", "procedure"]
    types = [(name, pa.string()) for name in names]
    types += [(item.name, _arrow_type(str(item.type))) for item in fields(CellSummary)]
    rows: list[dict[str, Any]] = []
    for run_dir in run_dirs:
        run = load_run(run_dir)
        summary = judge(run, read_samples(run.path))
        for cell in summary.cells:
            row = asdict(cell)
            row["verdict"] = cell.verdict.value
            row["factors"] = sorted(cell.factors.items())
            for name in ("cpu_local_kinds", "cpu_remote_kinds"):
                shares = row[name]
                row[name] = None if shares is None else sorted(shares.items())
            row["kernels"], row["values"] = list(cell.kernels), list(cell.values)
            rows.append(
                {
                    "run": str(run_dir),
                    "run_id": summary.run_id,
                    "matrix": summary.matrix,
                    "lab_kind": summary.lab_kind,
                    "accelerator": summary.accelerator,
                    "procedure": summary.procedure,
                    **row,
                }
            )
    # VALUES is a word of SQL: the column needs another name.
    schema = pa.schema(types)
    columns = [pa.array([row[field.name] for row in rows], type=field.type) for field in schema]
    renamed = ["block_values" if name == "values" else name for name in schema.names]
    return pa.table(columns, names=renamed)


def _arrow_type(annotation: str) -> Any:
    """The Arrow type of a field of CellSummary, by its annotation."""
    import pyarrow as pa

    plain = annotation.removesuffix(" | None")
    return {
        "str": pa.string(),
        "Verdict": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "dict[str, str]": pa.map_(pa.string(), pa.string()),
        "dict[str, float]": pa.map_(pa.string(), pa.float64()),
        "tuple[str, ...]": pa.list_(pa.string()),
        "tuple[float | None, ...]": pa.list_(pa.float64()),
    }[plain]


def ask_documents(run_dir: str | Path, expression: str) -> Any:
    """Evaluate a JMESPath expression over ``{plan, journal, provenance}`` of a run.

    Raises UsageError for an expression that is none, InputError for an unreadable run.
    """
    import jmespath
    from jmespath.exceptions import JMESPathError

    run = load_run(run_dir)
    document = {
        "plan": _plain(asdict(run.plan)),
        "journal": [_plain(asdict(event)) for event in run.journal],
        "provenance": run.provenance,
    }
    try:
        return jmespath.search(expression, document)
    except JMESPathError as error:
        found = " ".join(str(error).split())
        raise UsageError(f"query --jmespath: found {expression!r} ({found})") from error
