"""``crossover run``: measure a matrix and show the table."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from collector.commands.kernel import build_entry
from collector.duration import duration
from collector.errors import CrossoverError, UsageError
from collector.kernels.artifact import Artifact
from collector.kernels.entry import Entry
from collector.lab import state
from collector.matrix.choice import read_choice
from collector.matrix.forwarding import topologies_of
from collector.matrix.kernels import NONE, kernels_of, why_skipped
from collector.matrix.matrix import FORMS, Matrix, load_matrix
from collector.matrix.tunnels import types_of
from collector.run.campaign import find_matrix, finish, give_up_group, unfinished
from collector.run.campaign_kernels import chosen, over
from collector.run.kernel_ready import not_built, ready
from collector.run.lab_kind import GUESTS, NETNS, for_kernels, for_kind, kind_of
from collector.run.plan import check_blocks
from collector.run.progress import Progress
from collector.runfolder.runfolder import load_run

# Groups that may fail before a run is given up: then the trouble is not one group's.
MOST_FAILURES = 3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="measure a matrix, prove every cell, print the table",
        description="Measures on the hosts of the inventory (CROSSOVER_INVENTORY, by default the"
        " embedded lab; a lab is started).",
    )
    parser.add_argument("matrix", help="a name of playbooks/matrices, or a .yml file")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", dest="form", action="store_const", const="short")
    form.add_argument("--full", dest="form", action="store_const", const="full")
    parser.add_argument("--blocks", type=int, help="number of blocks (default: the form's)")
    add_choice(parser)
    parser.add_argument("--seed", type=int, help="seed of the order (default: a new one)")
    parser.add_argument(
        "--kernels",
        metavar="BASE,NEW",
        help="measure every configuration on these kernels (LABEL=NAME,LABEL=NAME, the base first);"
        " none: boot no kernel",
    )
    parser.add_argument(
        "--build", action="store_true", help="compile kernels that are not there, however long"
    )
    parser.add_argument(
        "--topology",
        metavar="NAME",
        help="measure in this topology of the lab, such as chain for forwarding (default: the"
        " matrix's)",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the newest unfinished run of the matrix, if there is one",
    )
    parser.set_defaults(run=run, form=FORMS[0])


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The options that choose part of a matrix."""
    parser.add_argument(
        "--configurations",
        metavar="NAME,…",
        help="only these, or patterns of them (vxlan*), and their baselines",
    )
    parser.add_argument(
        "--tests", metavar="NAME,…", help="only these tests, or patterns of them (tcp_rr_*)"
    )


def runs_dir() -> Path:
    """Where run folders are: ``CROSSOVER_RUNS`` or ``runs`` in the project."""
    from collector.run.runner import ROOT

    return Path(os.environ.get("CROSSOVER_RUNS") or ROOT / "runs")


def run(args: argparse.Namespace) -> int:
    """Measure, then print the report; raises CrossoverError."""
    from collector.run.runner import inventory

    # A bad matrix, one that the lab cannot have, and a choice of nothing are told before anything
    # starts, and kernels are made where it can be watched.
    kind = kind_of(inventory())
    for_kernels(kind, args.kernels)
    spec = for_kind(load_matrix(find_matrix(args.matrix)), kind)
    choice = read_choice(args.configurations, args.tests)
    choice.check(spec)
    if args.topology is not None:
        check_topology(args.topology, spec, kind)
    prepare_kernels(chosen(spec, choice), args.kernels, kind, args.build)
    variables: dict[str, Any] = {"matrix": args.matrix, "form": args.form}
    if args.matrix.endswith((".yml", ".yaml")):
        variables["matrix"] = os.path.abspath(args.matrix)
    for key in ("blocks", "seed", "configurations", "tests"):
        if getattr(args, key) is not None:
            variables[key] = getattr(args, key)
    if args.kernels:
        variables["kernels"] = args.kernels
    if args.build:
        variables["build"] = True
    folder, code = measure(variables, resume=args.resume, topology=args.topology)
    show(folder)
    return code


def check_topology(topology: str, matrix: Matrix, kind: str) -> None:
    """Raises UsageError for a topology that the matrix cannot be measured in, or where the hosts
    are not a lab's."""
    if kind not in (GUESTS, NETNS):
        raise UsageError(
            f"--topology {topology}: the hosts are those of the inventory, and so is what joins"
            " them; leave it out"
        )
    known = topologies_of(matrix)
    if topology not in known:
        raise UsageError(
            f"--topology {topology}: {matrix.name} is measured in another; wanted"
            f" {' or '.join(known)}"
        )


def prepare_kernels(matrix: Matrix, kernels: str | None, kind: str, compile_: bool) -> None:
    """Fetch the kernels that the run wants, and compile them if asked to, with a progress line.

    Raises CrossoverError, also if one that was asked for by name is not to be had; rows of the
    matrix that need one are skipped instead.
    """
    if kernels == NONE:
        return
    names = kernels_of(over(matrix, kernels))
    found = ready(names, kind, compile_, _make, implied=not kernels)
    if kernels and found.missing:
        raise UsageError(why_skipped(list(found.missing), found.missing))


def _make(entry: Entry) -> Artifact:
    if entry.kind == "source":
        seconds = not_built(entry, "").build_s or 0.0
        print(f"compiling {entry.name}, up to about {duration(seconds)}", file=sys.stderr)
    return build_entry(entry)[1]


def measure(
    variables: dict[str, Any], resume: bool, topology: str | None = None
) -> tuple[Path, int]:
    """Run ``benchmark.yml`` with a live line; returns the run folder and the exit code.
    ``topology`` is that of the lab where it is not the matrix's.

    An interrupt restores the hosts, keeps what was measured and raises CrossoverError that says
    how to go on. LockedError while another run has the same hosts.
    """
    from collector.run.exclusive import only_run_on
    from collector.run.lab_choice import choose_lab
    from collector.run.runner import inventory

    if (Path(inventory()) / "lab.yml").is_file():
        matrix = load_matrix(find_matrix(variables["matrix"]))
        others = topologies_of(matrix) if topology is None else ()
        choose_lab(topology or matrix.topology, "stt" in types_of(matrix), others)
    with only_run_on(inventory()):
        return _measure(variables, resume)


def _measure(variables: dict[str, Any], resume: bool) -> tuple[Path, int]:
    from collector.run.runner import inventory, must, run_playbook

    if variables.get("blocks") is not None:
        check_blocks(variables["blocks"])
    runs = runs_dir()
    runs.mkdir(parents=True, exist_ok=True)
    if resume:
        left = unfinished(runs, load_matrix(find_matrix(variables["matrix"])).name)
        if left is not None:
            print(f"going on with {left.name}", file=sys.stderr)
            variables = {**variables, "resume": left.name}
    variables["bench_run_runs"] = str(runs)
    if "lab_accelerator" not in variables:
        variables.update(lab_variables(inventory()))
    progress = Progress()
    home = lab_kernel(inventory())
    failures = 0
    while True:
        try:
            outcome = run_playbook("benchmark", variables, progress.on_event)
        finally:
            progress.close()
        folder = progress.folder
        if outcome.interrupted:
            print("interrupted: putting the hosts back", file=sys.stderr)
            run_playbook("restore")
            take_home(home)
            told = "nothing was measured" if folder is None else f"kept in {folder}"
            raise CrossoverError(
                f"run {variables['matrix']}: interrupted; {told}; --resume goes on"
            )
        if folder is None:
            must(outcome, f"run {variables['matrix']}")
            raise CrossoverError(f"run {variables['matrix']}: no run folder was made")
        if not outcome.code:
            break
        reason = outcome.failures[0] if outcome.failures else "the playbook failed"
        print(reason, file=sys.stderr)
        failures += 1
        if not give_up_group(folder, reason) or failures == MOST_FAILURES:
            break
        take_home(home)
        variables = {**variables, "resume": folder.name}
    take_home(home)
    finish(folder)
    return folder, 1 if failures else 0


def lab_variables(inventory: str) -> dict[str, str]:
    """Start the lab if the inventory is one's; what the plan must know of it."""
    kind = kind_of(inventory)
    if kind == NETNS:
        from collector.commands.lab_netns import start

        start()
    if kind != GUESTS:
        return {}
    from collector.commands.lab import lab_name, start_lab

    # A lab that was started with another kernel keeps it: that is what runs.
    before = state.load(lab_name())
    kernel = before.kernel if before is not None and before.running() else None
    variables = {} if kernel is None else {"lab_qemu_kernel": kernel}
    return {"lab_accelerator": start_lab(variables).accelerator}


def lab_kernel(inventory: str) -> tuple[str | None, int] | None:
    """The kernel and the boot that the embedded lab's guests run; None for other hosts."""
    if kind_of(inventory) != GUESTS:
        return None
    from collector.commands.lab import lab_name

    found = state.load(lab_name())
    return None if found is None else (found.kernel, found.boot)


def take_home(home: tuple[str | None, int] | None) -> None:
    """Take the guests of the embedded lab back to the kernel that they ran before the run, where a
    playbook that was cut off could not. Raises CrossoverError."""
    from collector.commands.lab import lab_name, start_lab

    found = None if home is None else state.load(lab_name())
    if home is None or found is None or (found.kernel, found.boot) == home:
        return
    start_lab({"lab_qemu_kernel": home[0] or "", "lab_qemu_boot": str(home[1])})


def show(folder: Path) -> None:
    """Print the report and write the page; says where both are."""
    from collector.report import writing
    from collector.report.loading import load_report

    report = load_report(folder)
    sys.stdout.write(writing.render_run(report, "text", None))
    page = folder / "report.html"
    writing.write_file(page, writing.render_run(report, "html", page))
    plan = load_run(folder).plan
    print(f"\nReport: {page}\nRun folder: {folder} ({plan.run_id})")
