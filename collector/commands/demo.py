"""``crossover demo``: from nothing to a measured table."""

from __future__ import annotations

import argparse
import sys
import time

from collector.commands import run as run_command
from collector.commands.setup import ensure_controller

MATRIX = "netlabel_cipso"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo", help="set everything up and measure the cost of CIPSO labels, in minutes"
    )
    parser.add_argument("--blocks", type=int, help="number of blocks (default: what time allows)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Set up, start the lab, measure, print the table. An interrupted demo goes on."""
    began = time.monotonic()
    ensure_controller()
    variables: dict[str, object] = {"matrix": MATRIX, "form": "short"}
    if args.blocks is not None:
        variables["blocks"] = args.blocks
    folder, code = run_command.measure(variables, resume=True)
    run_command.show(folder)
    print(f"Done in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return code
