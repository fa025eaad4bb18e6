"""``crossover plan``: what a matrix would measure, in which order and for how long."""

from __future__ import annotations

import argparse
import json
from typing import Any

from collector.commands.run import add_choice
from collector.kernels import build
from collector.matrix.choice import Choice, read_choice
from collector.matrix.kernels import kernels_of
from collector.matrix.matrix import FORMS, Matrix, load_matrix
from collector.run import campaign_kernels
from collector.run.campaign import find_matrix
from collector.run.kernel_entries import find_entry
from collector.run.kernel_ready import not_built
from collector.run.lab_kind import GUESTS, for_kernels, for_kind, kind_of
from collector.run.plan import estimate_block_s, groups_of, make_plan
from collector.run.progress import planned_text
from collector.runfolder import journal
from collector.runfolder.runfolder import parse_plan

# What a plan knows of a kernel.
PLANNED = ("identity", "release", "version", "config_sha256")


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
    parser.add_argument(
        "--kernels", metavar="BASE,NEW", help="every configuration on these (LABEL=NAME)"
    )
    parser.add_argument("--json", action="store_true", help="print the plan.json it would write")
    parser.set_defaults(run=run, form=FORMS[0])


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises InputError and UsageError, as a run on this inventory would."""
    from collector.run.runner import inventory

    kind = kind_of(inventory())
    for_kernels(kind, args.kernels)
    choice = read_choice(args.configurations, args.tests)
    spec = for_kind(load_matrix(find_matrix(args.matrix)), kind)
    matrix, kernels = decided(spec, args.kernels, choice)
    form = matrix.forms[args.form]
    document = make_plan(
        matrix,
        form,
        run_id="plan",
        created_at=journal.now(),
        lab={"kind": kind, "accelerator": "tcg" if kind == GUESTS else "none", "name": "none"},
        seed=args.seed,
        blocks=args.blocks,
        choice=choice,
        kernels=kernels,
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
        kernel = f" on {group.kernel}, boot {group.boot + 1}" if group.kernel else ""
        print(f"  block {group.block + 1}: {group.configuration}{arm}{kernel}: {tests}")
    return 0


def decided(matrix: Matrix, kernels: str | None, choice: Choice) -> tuple[Matrix, dict[str, Any]]:
    """The matrix with its kernels decided as a run would now, and those kernels as a plan has
    them; nothing is fetched, so of one that a run would fetch only the name is known. InputError if
    the baseline's is not to be had."""
    matrix = campaign_kernels.chosen(campaign_kernels.over(matrix, kernels), choice)
    known, missing = {}, {}
    for name in kernels_of(matrix):
        entry = find_entry(name)
        found = build.status(entry)
        if found.artifact is not None:
            known.update(campaign_kernels.document({name: found.artifact}))
        elif entry.kind == "source":
            missing[name] = not_built(entry, found.reason)
        else:
            known[name] = dict.fromkeys(PLANNED, "fetched when it is run")
    return campaign_kernels.settled(matrix, missing), known
