"""``crossover plan``: what a matrix would measure, in which order and for how long."""

from __future__ import annotations

import argparse
import json

from collector import journal
from collector.campaign import find_matrix
from collector.choice import read_choice
from collector.commands.run import add_choice
from collector.matrix import FORMS, load_matrix
from collector.plan import estimate_block_s, groups_of, make_plan
from collector.progress import planned_text
from collector.runfolder import parse_plan


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("plan", help="show what a matrix would measure; touches no host")
    parser.add_argument("matrix", help="a name of playbooks/matrices, or a .yml file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", dest="form", action="store_const", const="short")
    form.add_argument("--full", dest="form", action="store_const", const="full")
    parser.add_argument("--blocks", type=int, help="number of blocks (default: the form's)")
    add_choice(parser)
    parser.add_argument("--seed", type=int, default=1, help="seed of the order shown (default 1)")
    parser.add_argument("--json", action="store_true", help="print the plan.json it would write")
    parser.set_defaults(run=run, form=FORMS[0])


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises InputError and UsageError."""
    matrix = load_matrix(find_matrix(args.matrix))
    form = matrix.forms[args.form]
    choice = read_choice(args.configurations, args.tests)
    document = make_plan(
        matrix,
        form,
        run_id="plan",
        created_at=journal.now(),
        lab={"kind": "guests", "accelerator": "tcg", "name": "none"},
        seed=args.seed,
        blocks=args.blocks,
        choice=choice,
    )
    if args.json:
        print(json.dumps(document, indent=2))
        return 0
    plan = parse_plan(document, matrix.file)
    print(planned_text(plan, estimate_block_s(matrix, form, choice) * plan.blocks))
    cells = {cell.cell_id: cell for cell in plan.cells}
    for group in groups_of(plan):
        tests = ", ".join(cells[cell].test for cell in group.cells)
        arm = " (A/A)" if group.arm else ""
        print(f"  block {group.block + 1}: {group.configuration}{arm}: {tests}")
    return 0
