"""``crossover demo``: from nothing to a measured table."""

from __future__ import annotations

import argparse
import sys
import time

from collector.commands import run as run_command
from collector.commands.lab import lab_name
from collector.commands.setup import ensure_controller
from collector.lab import state
from collector.matrix.kernels import NONE
from collector.matrix.matrix import load_matrix
from collector.run.campaign import find_matrix
from collector.run.campaign_kernels import decide
from collector.run.plan import blocks_within

MATRIX = "netlabel_cipso"
FORM = "short"
# How long a demo may take, seconds: where the lab had to be baked and booted, and later.
FIRST_S = 300.0
LATER_S = 90.0
# What it needs beside the blocks once the lab runs: playbook, provenance, restore, report.
REST_S = 25.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "demo", help="set everything up and measure the cost of CIPSO labels, in minutes"
    )
    parser.add_argument("--blocks", type=int, help="number of blocks (default: what time allows)")
    parser.set_defaults(run=run)


def blocks_for(booted: bool, spent_s: float) -> int:
    """Blocks that the time leaves room for, at least one. ``booted``: whether the lab had to be
    booted for this demo; ``spent_s``: seconds since the demo began."""
    matrix, _none = decide(load_matrix(find_matrix(MATRIX)), NONE, "guests", compile_=False)
    whole = FIRST_S if booted else LATER_S
    return blocks_within(matrix, matrix.forms[FORM], whole - spent_s - REST_S)


def _start_lab(variables: dict[str, object], where: str) -> bool:
    """Start the lab; whether that meant booting it. What the plan must know of it goes into
    ``variables``. ``where`` is the inventory."""
    before = state.load(lab_name())
    variables.update(run_command.lab_variables(where))
    after = state.load(lab_name())
    ran = before is not None and before.running()
    return after is not None and after.how == "booted" and not ran


def run(args: argparse.Namespace) -> int:
    """Set up, start the lab, measure, print the table. An interrupted demo goes on."""
    from collector.run.runner import inventory

    began = time.monotonic()
    ensure_controller()
    # A demo is short: booting a kernel that somebody built would take most of it.
    variables: dict[str, object] = {"matrix": MATRIX, "form": FORM, "kernels": NONE}
    booted = _start_lab(variables, inventory())
    spent = time.monotonic() - began
    variables["blocks"] = blocks_for(booted, spent) if args.blocks is None else args.blocks
    folder, code = run_command.measure(variables, resume=True)
    run_command.show(folder)
    print(f"Done in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return code
