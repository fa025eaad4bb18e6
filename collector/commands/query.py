"""``crossover query``: SQL over any number of runs, JMESPath over one run's documents."""

from __future__ import annotations

import argparse
from typing import Any

from collector.errors import UsageError
from collector.history.query import Answer, ask, ask_documents
from collector.tables import cell_text, csv_table, json_text, text_table

FORMATS = ("text", "csv", "json")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "query",
        help="ask runs with SQL, or one run's documents with JMESPath",
        description="SQL reads the views `samples` (every sample, with its run folder in column"
        " run) and `cells` (numbers and verdict of every cell). docs/data-format.md has the"
        " columns.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, then the SQL")
    parser.add_argument(
        "--jmespath",
        metavar="EXPR",
        help="evaluate EXPR over {plan, journal, provenance} of one run instead; prints JSON",
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer; raises UsageError and InputError."""
    if args.jmespath is not None:
        if len(args.runs) != 1:
            raise UsageError(f"query --jmespath: found {len(args.runs)} runs; wanted one")
        print(json_text(ask_documents(args.runs[0], args.jmespath)))
        return 0
    *runs, sql = args.runs
    if not runs:
        raise UsageError("query: found one argument; wanted RUN… and then the SQL")
    print(_render(ask(runs, sql), args.format))
    return 0


def _render(answer: Answer, form: str) -> str:
    if form == "json":
        return json_text([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    if form == "csv":
        rows = [[_csv_cell(value) for value in row] for row in answer.rows]
        return csv_table(answer.columns, rows)
    texts = [[cell_text(value) for value in row] for row in answer.rows]
    numeric = [
        name
        for index, name in enumerate(answer.columns)
        if all(isinstance(row[index], (int, float, type(None))) for row in answer.rows)
    ]
    count = f"({len(answer.rows)} row{'' if len(answer.rows) == 1 else 's'})"
    return f"{text_table(answer.columns, texts, numeric)}\n{count}"


def _csv_cell(value: Any) -> Any:
    return cell_text(value) if isinstance(value, (dict, list, tuple)) else value
