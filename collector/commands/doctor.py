"""``crossover doctor``: what works here, what does not, and what to do about it."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from collector.commands.lab import lab_name
from collector.commands.setup import missing_programs
from collector.lab import paths, state
from collector.lab.errors import LabError
from collector.run.lab_kind import GUESTS, NETNS, kind_of

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
    parser.add_argument(
        "--level",
        help="SELinux level of the processes whose IPsec traffic does not pass, such as s0:c5"
        " (default: the one that the connections were declared for)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the checks; 0 if all are well, 1 otherwise."""
    bad = 0
    for check in (*controller_checks(), *lab_checks(), *ipsec_checks(args.level)):
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
    from collector.run.runner import inventory

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


def _hosts_run() -> bool:
    """Whether there are hosts to ask: a lab that runs, or somebody's own."""
    from collector.commands.lab_netns import find
    from collector.run.runner import inventory

    kind = kind_of(inventory())
    if kind == GUESTS:
        guests = state.load(lab_name())
        return guests is not None and guests.running()
    if kind == NETNS:
        hosts = find(lab_name()) if os.geteuid() == 0 else None
        return hosts is not None and hosts.running()
    return True


def ipsec_checks(level: str | None) -> Iterator[Check]:
    """What each measured host knows of IPsec traffic that did not pass since its connections were
    put in force, or of why they were refused; hosts without either are left out."""
    from collector.run.runner import run_playbook

    if not _hosts_run():
        return
    answers: dict[str, Mapping[str, Any]] = {}

    def note(kind: str, data: Mapping[str, Any]) -> None:
        if kind == "runner_on_ok" and data.get("task_action") == "crossover.lab.ipsec_evidence":
            answers[str(data.get("host"))] = data["res"]

    outcome = run_playbook("doctor", {"ipsec_level": level} if level else {}, note)
    for failure in outcome.failures:
        yield Check("IPsec", failure, False, "see the error")
    for host, answer in sorted(answers.items()):
        yield from explained(host, answer)


def explained(host: str, answer: Mapping[str, Any]) -> Iterator[Check]:
    """The lines for one host from what ``ipsec_evidence`` answered with ``since_applied``."""
    last = answer.get("last")
    if not last:
        return
    what = f"{host}: IPsec ({last['keying']})"
    if "refused" in last:
        yield Check(
            what, f"refused: {last['refused']}", False, "apply it again once that is mended"
        )
        reasons = last["explain"]
    else:
        reasons = answer.get("explain") or []
    for reason in reasons:
        yield Check(f"{what}: {reason['cause']}", reason["text"], False, reason["hint"])
    for address, size in sorted((answer.get("fits") or {}).items()):
        yield Check(what, f"with ESP, {size} bytes fit one datagram to {address}", True)
    if not reasons and "refused" not in last:
        lacking = answer.get("missing") or []
        found = f"SAs are gone: {', '.join(lacking)}" if lacking else "nothing was dropped so far"
        yield Check(what, found, not lacking, "apply the connections again")
