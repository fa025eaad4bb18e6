"""``crossover parse``: tool output in, records as JSON out.

Prints one JSON array with all records of all files, in the order of the files and of the lines
in each. With ``--tool super_netperf`` and several files these are the outputs of the instances of
one run: their sum follows the records of the instances.

Problems go to stderr, one a line: ``file:line: found …; wanted …``. The exit code is 0 if
everything could be read, 1 if anything could not (good records are printed all the same), 2 for
wrong use.
"""

from __future__ import annotations

import argparse
import json
import sys

from collector.errors import InputError, UsageError
from collector.parsers import TOOLS, netperf, read, super_netperf
from collector.parsers.base import Record, as_json
from collector.parsers.document import load
from collector.parsers.super_netperf_sum import combine_instances


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
    if args.tool is not None and args.tool not in TOOLS:
        raise UsageError(f"--tool: found {args.tool!r}; wanted one of: {', '.join(TOOLS)}")
    records: list[Record] = []
    complaints: list[str] = []
    instances = args.tool == super_netperf.TOOL and len(args.files) > 1
    for path in args.files:
        try:
            reading = read(load(path), netperf.TOOL if instances else args.tool)
        except InputError as error:
            complaints.append(str(error))
            continue
        records.extend(reading.records)
        complaints.extend(str(problem) for problem in reading.problems)
    if instances:
        records.append(combine_instances(records, expected=len(args.files)))
    json.dump(as_json(records), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0
