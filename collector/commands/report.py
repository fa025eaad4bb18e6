"""``crossover report``: a run, or a published experiment, in a format for people or programs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from collector.errors import UsageError

_FORMATS = ("text", "markdown", "csv", "json", "junit", "html")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="show what a run says, or a published experiment",
        description="Judge a run and show it: verdict, table, ratios with intervals, the published"
        " ratios beside ours, hosts, commands, proofs and files.",
    )
    parser.add_argument("folder", nargs="?", metavar="RUN", help="a run folder")
    parser.add_argument(
        "--published",
        metavar="NAME",
        help="show a published experiment (see `crossover published`)",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write to FILE instead of standard output"
    )
    parser.add_argument(
        "--tarball",
        action="store_true",
        help="pack all raw output into one archive (FILE of --out, else in the run folder)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print or write the report; raises UsageError, InputError and CrossoverError."""
    from collector import published
    from collector.report import writing
    from collector.report.loading import load_report

    if (args.folder is None) == (args.published is None):
        found = "neither" if args.folder is None else "both"
        raise UsageError(f"report: found {found}; wanted either RUN or --published NAME")
    if args.tarball:
        if args.folder is None:
            raise UsageError("report --tarball: found --published; wanted RUN")
        print(writing.write_tarball(args.folder, args.out))
        return 0
    if args.folder is None:
        text = writing.render_published(published.load(args.published), args.format)
    else:
        text = writing.render_run(load_report(args.folder), args.format, args.out)
    if args.out is None:
        sys.stdout.write(text)
    else:
        writing.write_file(args.out, text)
        print(args.out)
    return 0
