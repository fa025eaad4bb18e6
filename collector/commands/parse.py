"""``crossover parse``: tool output in, records as JSON out.

Prints one JSON array with all records of all files, in the order of the files and of the lines
in each. Problems go to stderr, one a line: ``file:line: found …; wanted …``. The exit code is 0
if everything could be read, 1 if anything could not (good records are printed all the same),
2 for wrong use.
"""

from __future__ import annotations

import argparse
import json
import sys

from collector.errors import InputError
from collector.parsers import TOOLS, read
from collector.parsers.base import Record, as_json
from collector.parsers.document import load


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "parse",
        help="read what tools printed and print it as JSON records",
        description="Prints a JSON array, one object per result found, in the order found. What"
        " cannot be read is named on stderr, and the exit code is then 1.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="tool output; - is stdin")
    parser.add_argument(
        "--tool",
        metavar="TOOL",
        help=f"do not guess whose output it is; one of: {', '.join(TOOLS)}",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the records of all files; raises UsageError for an unknown tool."""
    records: list[Record] = []
    complaints: list[str] = []
    for path in args.files:
        try:
            reading = read(load(path), args.tool)
        except InputError as error:
            complaints.append(str(error))
            continue
        records.extend(reading.records)
        complaints.extend(str(problem) for problem in reading.problems)
    json.dump(as_json(records), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0
