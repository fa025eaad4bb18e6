"""``crossover doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from collector.commands.lab import lab_name
from collector.commands.setup import missing_programs
from collector.lab import paths, state
from collector.lab.errors import LabError
from collector.lab_kind import NETNS, kind_of

LAB_BYTES = 5_000_000_000


@dataclass(frozen=True)
class Check:
    """One line of the report. ``remedy`` is None where nothing is to be done."""

    what: str
    found: str
    ok: bool
    remedy: str | None = None


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("doctor", help="check this machine, the lab and its hosts")
    parser.set_defaults(run=run)


def run(_args: argparse.Namespace) -> int:
    """Print the checks; 0 if all are well, 1 otherwise."""
    bad = 0
    for check in (*controller_checks(), *lab_checks()):
        print(f"{'ok  ' if check.ok else 'BAD '} {check.what}: {check.found}")
        if not check.ok:
            bad += 1
            print(f"     {check.remedy}")
    return 1 if bad else 0


def controller_checks() -> Iterator[Check]:
    """This machine: Python, programs, disk, a Debian archive for the bake."""
    yield Check("Python", platform.python_version(), sys.version_info >= (3, 11), "Python 3.11")
    missing = missing_programs()
    yield Check(
        "programs",
        f"missing: {', '.join(missing)}" if missing else "all there",
        not missing,
        "crossover setup installs them",
    )
    root = paths.cache_root()
    root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(root).free
    yield Check(
        "disk",
        f"{free // 10**9} GB free at {root}",
        free >= LAB_BYTES,
        f"free {LAB_BYTES // 10**9} GB, or set XDG_CACHE_HOME to a larger file system",
    )
    if not missing:
        from collector.lab.image import host_mirror

        try:
            host_mirror()
            yield Check("Debian archive", "this host's apt has one", True)
        except LabError as error:
            yield Check("Debian archive", str(error), False, "apt-get update, or lab_qemu_mirror")
    kvm = "there" if os.path.exists("/dev/kvm") else "absent"
    yield Check("/dev/kvm", f"{kvm} (tried with a real boot when the lab starts)", True)


def lab_checks() -> Iterator[Check]:
    """The embedded lab, and each of its nodes from inside."""
    from collector.runner import inventory

    name = lab_name()
    if kind_of(inventory()) == NETNS:
        yield from netns_checks(name)
        return
    found = state.load(name)
    if found is None or not found.running():
        yield Check("lab", f"{name} does not run", True)
        return
    yield Check("lab", f"{name} runs under {found.accelerator}", True)
    from collector.lab import ssh

    config = paths.ssh_config(name)
    for node in found.nodes:
        try:
            done = ssh.run(config, node, "getenforce; command -v netperf netlabelctl", 15)
        except OSError as error:
            yield Check(node, str(error), False, "crossover lab down, then up")
            continue
        lines = done.stdout.split()
        yield Check(
            f"{node}: login",
            "works" if done.returncode == 0 else done.stderr.strip() or "tools are missing",
            done.returncode == 0,
            "crossover lab down, then up",
        )
        if lines:
            mode = lines[0]
            yield Check(f"{node}: SELinux", mode, mode == "Enforcing", "setenforce 1 on the node")


def netns_checks(name: str) -> Iterator[Check]:
    """The lab of network namespaces: whether this machine can hold one, and how it stands."""
    from collector.commands.lab_netns import status_text
    from collector.lab.netns import instance

    try:
        instance.require_machine()
    except LabError as error:
        yield Check(
            "netns lab", str(error), False, "run it as root, with what is missing installed"
        )
        return
    for line in status_text(name).splitlines():
        what, _, found = line.partition(": ")
        yield Check(what, found, found != "dead", "crossover lab down, then up")
