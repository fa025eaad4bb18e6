"""``crossover collect``: many raw netperf outputs to one aggregated table."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, fields

from collector.tables import FORMATS, cell_text, csv_table, json_text, markdown_table, text_table

COLLECT_SCHEMA = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "collect",
        help="aggregate many raw netperf outputs into one table",
        description="A line a cell (the first folder below PATH) and test. Of a run folder its"
        " raw part is read. Exits 1 if anything could not be read; the table is printed all the"
        " same.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders or run folders")
    parser.add_argument(
        "--name", default="*.out", metavar="PATTERN", help="names of files in folders (*.out)"
    )
    parser.add_argument("--workers", type=_workers, metavar="N", help="processes (one a core)")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table; raises InputError for a path that does not exist or holds no file."""
    from collector.errors import InputError
    from collector.results.collect import Row, collect, find, table

    tally = collect(find(args.paths, args.name), args.workers)
    if not tally.files:
        raise InputError(", ".join(args.paths), f"no file named {args.name}", "at least one")
    rows = [asdict(row) for row in table(tally)]
    head = [column.name for column in fields(Row)]
    if args.format == "json":
        print(json_text({"schema": COLLECT_SCHEMA, "files": tally.files, "rows": rows}))
    elif args.format == "csv":
        print(csv_table(head, [list(row.values()) for row in rows]))
    else:
        texts = [[cell_text(value) for value in row.values()] for row in rows]
        right = [name for name in head if name not in {"cell", "test", "unit"}]
        print((markdown_table if args.format == "markdown" else text_table)(head, texts, right))
    for text in tally.problems:
        print(text, file=sys.stderr)
    more = tally.problem_count - len(tally.problems)
    if more:
        print(f"and {more} more problems like these", file=sys.stderr)
    return 1 if tally.problem_count else 0


def _workers(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; wanted a whole number from 1")
    return int(text)
