"""``crossover history``: a series per cell over many runs, with change points."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from collector.history.history import load_history
from collector.history.views import render, write_otava


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "history",
        help="a series per cell over many runs, with change points",
        description="One point a run (the median of its valid repeats), oldest run first. Series"
        " of different labs are kept apart.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, in any order")
    parser.add_argument("--format", choices=("text", "csv", "json"), default="text")
    parser.add_argument(
        "--otava",
        metavar="FOLDER",
        type=Path,
        help="also write one CSV a series and an otava.yaml for Apache Otava",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the history; raises UsageError and InputError."""
    history = load_history(args.runs)
    print(render(history, args.format))
    if args.otava is not None:
        written = write_otava(history, args.otava)
        print(f"wrote {len(written)} files, start with {written[-1]}", file=sys.stderr)
    return 0
