"""``crossover lab`` with the inventory of a lab of network namespaces."""

from __future__ import annotations

import argparse
import os
import sys

from collector.errors import CrossoverError, UsageError
from collector.lab.errors import LabError
from collector.lab.netns import instance, state, view


def run(args: argparse.Namespace, name: str) -> int:
    """Do what ``crossover lab`` was asked; raises CrossoverError."""
    if args.verb == "ssh":
        return _enter(name, args.node, args.command)
    if args.verb == "up":
        for option in ("suite", "cloud_image"):
            if getattr(args, option):
                raise UsageError(
                    f"lab up --{option.replace('_', '-')}: hosts of a netns lab run this machine's"
                    " own system; wanted it with the guests of inventories/qemu"
                )
        if args.topology:
            os.environ["CROSSOVER_TOPOLOGY"] = args.topology
        start()
    if args.verb == "down":
        from collector.run.runner import must, run_playbook

        must(run_playbook("lab_down"), "lab down")
        print(f"lab {name}: stopped")
        return 0
    print(status_text(name))
    return 0


def start() -> None:
    """Ensure the lab is up. Raises CrossoverError, with the reason where it cannot be."""
    from collector.run.progress import say_step
    from collector.run.runner import must, run_playbook

    try:
        instance.require_machine()
    except LabError as error:
        raise CrossoverError(f"lab up: {error}") from error
    must(run_playbook("lab_up", None, say_step), "lab up")


def find(name: str) -> state.NetnsState | None:
    """The lab's state; raises CrossoverError where it may not be looked at."""
    try:
        return state.load(name)
    except LabError as error:
        raise CrossoverError(str(error)) from error


def status_text(name: str) -> str:
    """The lab in words."""
    found = find(name)
    if found is None:
        return f"lab {name}: does not run"
    lines = [f"lab {name}: {'running' if found.running() else 'stopped'}"]
    lines.append(f"hosts: network namespaces of this machine, Linux {os.uname().release}")
    for node, process in found.nodes.items():
        lines.append(f"{node}: {f'first process {process.pid}' if process.alive() else 'dead'}")
    lines.append(f"last start: {found.start_s:.1f} s")
    if found.tools:
        lines.append(f"programs that this machine lacks: {found.tools}")
    return "\n".join(lines)


def _enter(name: str, node: str, command: list[str]) -> int:
    found = find(name)
    if found is None or not found.running():
        raise CrossoverError(f"lab {name} does not run; start it with: crossover lab up")
    if node not in found.nodes:
        raise UsageError(f"lab {name}: found node {node!r}; wanted one of {', '.join(found.nodes)}")
    sys.stdout.flush()
    # As over SSH, a command's words are joined and read by the host's shell.
    wanted = ["/bin/sh", "-c", " ".join(command)] if command else ["/bin/sh", "-l"]
    argv = view.entry(found.nodes[node].pid, wanted)
    terminal = {key: os.environ[key] for key in ("TERM",) if key in os.environ}
    os.execvpe(argv[0], argv, {**view.ENVIRONMENT, **terminal})
