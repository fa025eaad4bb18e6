"""``crossover lab``: the lab of the inventory up, down, its status, and a shell on a node."""

from __future__ import annotations

import argparse
import os
import sys

from collector.commands.kernel import build_entry
from collector.errors import CrossoverError, UsageError
from collector.lab import paths, saved, state
from collector.lab.errors import LabError
from collector.run.kernel_entries import find_entry
from collector.run.lab_kind import NETNS, kind_of

DEFAULT_LAB = "default"
OWN_KERNEL = "the image's own"


def lab_name() -> str:
    """The lab's name: ``CROSSOVER_LAB`` or ``default``. Raises UsageError for one that is none."""
    name = os.environ.get("CROSSOVER_LAB") or DEFAULT_LAB
    try:
        return paths.check_name(name)
    except LabError as error:
        raise UsageError(str(error)) from error


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("lab", help="start, stop, look at and log in to the lab")
    parser.add_argument("--name", help="name of the lab (default: CROSSOVER_LAB or 'default')")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    up = verbs.add_parser("up", help="start it (boots once, restores its saved state later)")
    up.add_argument("--suite", choices=["bookworm", "trixie"], help="Debian release of the guests")
    up.add_argument("--topology", help="pair, dut, chain (default: CROSSOVER_TOPOLOGY or pair)")
    up.add_argument("--kernel", metavar="NAME", help="boot this kernel (see crossover kernel list)")
    up.add_argument("--cloud-image", metavar="FILE", help="boot this qcow2 instead of the bake")
    down = verbs.add_parser("down", help="stop it; the saved state stays")
    down.add_argument("--forget", action="store_true", help="delete saved state, disks and keys")
    verbs.add_parser("status", help="what runs, and under which accelerator and why")
    ssh = verbs.add_parser("ssh", help="log in to a node, or run a command there")
    ssh.add_argument("node")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do it; raises CrossoverError."""
    from collector.commands import lab_netns
    from collector.run.runner import inventory

    if args.name:
        os.environ["CROSSOVER_LAB"] = args.name
    name = lab_name()
    if kind_of(inventory()) == NETNS:
        return lab_netns.run(args, name)
    if args.verb == "status":
        print(status_text(name))
        return 0
    if args.verb == "ssh":
        return _ssh(name, args.node, args.command)
    if args.verb == "up":
        return _up(args)
    from collector.run.runner import must, run_playbook

    wish = "absent" if args.forget else "down"
    must(run_playbook("lab_down", {"lab_qemu_state": wish}), "lab down")
    print(f"lab {name}: stopped" + (" and forgotten" if args.forget else ""))
    return 0


def _up(args: argparse.Namespace) -> int:
    variables = {}
    if args.suite:
        variables["lab_qemu_suite"] = args.suite
    if args.cloud_image:
        variables["lab_qemu_cloud_image"] = os.path.abspath(args.cloud_image)
    if args.kernel is not None:
        if args.kernel:
            build_entry(find_entry(args.kernel))  # with a progress line, which a task has not
        variables["lab_qemu_kernel"] = args.kernel
    if args.topology:
        os.environ["CROSSOVER_TOPOLOGY"] = args.topology
    start_lab(variables)
    print(status_text(lab_name()))
    return 0


def start_lab(variables: dict[str, str] | None = None) -> state.LabState:
    """Ensure the lab is up; returns its state. Raises CrossoverError."""
    from collector.run.progress import say_step
    from collector.run.runner import must, run_playbook

    must(run_playbook("lab_up", variables, say_step), "lab up")
    found = state.load(lab_name())
    if found is None:
        raise CrossoverError(f"lab {lab_name()}: it started but left no state file")
    return found


def _ssh(name: str, node: str, command: list[str]) -> int:
    found = state.load(name)
    if found is None or not found.running():
        raise CrossoverError(f"lab {name} does not run; start it with: crossover lab up")
    if node not in found.nodes:
        raise UsageError(f"lab {name}: found node {node!r}; wanted one of {', '.join(found.nodes)}")
    sys.stdout.flush()
    os.execvp("ssh", ["ssh", "-F", str(paths.ssh_config(name)), node, *command])


def kernel_text(name: str | None, release: str) -> str:
    """A lab's kernel in words."""
    return f"{name or OWN_KERNEL}{f' ({release})' if release else ''}"


def status_text(name: str) -> str:
    """The lab in words."""
    found = state.load(name)
    if found is None:
        return f"lab {name}: never started"
    lines = [f"lab {name}: {'running' if found.running() else 'stopped'}"]
    lines.append(f"accelerator: {found.accelerator} ({found.accelerator_reason})")
    lines.append(f"image: {found.image}, SELinux {found.selinux}")
    lines.append(
        f"kernel: {kernel_text(found.kernel, found.kernel_release)}, boot {found.boot + 1}"
    )
    for node, item in found.nodes.items():
        alive = f"pid {item.pid}" if item.process.alive() else "dead"
        lines.append(f"{node}: {alive}, SSH on 127.0.0.1 port {item.ssh_port}")
    if found.how and found.running():
        lines.append(f"last start: {found.how}, {found.start_s:.1f} s to the first SSH commands")
    lines.append(f"saved state: {'yes' if found.saved else 'no'}")
    kept = saved.everything(name)
    if kept:
        size = sum(item[1] for item in kept) / 2**20
        names = ", ".join(f"{item.kernel or OWN_KERNEL} (boot {item.boot + 1})" for item, _ in kept)
        lines.append(f"saved states, at most {saved.KEPT}: {names}; {size:.0f} MiB")
    if found.given_up:
        lines.append(f"the saved state before was given up: {found.given_up}")
    return "\n".join(lines)
