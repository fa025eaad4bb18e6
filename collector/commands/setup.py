"""``crossover setup``: the controller's own packages, by ``playbooks/controller.yml``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys

import yaml

from collector.errors import CrossoverError

PROGRAMS = "roles/controller/vars/main.yml"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("setup", help="install the packages that this machine lacks")
    parser.add_argument("--tests", action="store_true", help="also what the test suite needs")
    parser.add_argument(
        "--netns", action="store_true", help="also what a lab of network namespaces needs"
    )
    parser.add_argument("--kernels", action="store_true", help="also what compiling kernels needs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Install what is missing; raises CrossoverError."""
    ensure_controller(tests=args.tests, netns=args.netns, kernels=args.kernels)
    print("this machine has what Crossover needs")
    return 0


def missing_programs(tests: bool = False, netns: bool = False, kernels: bool = False) -> list[str]:
    """Packages whose program (or file) this machine lacks, by the role's own table; each once."""
    from collector.run.runner import ROOT

    table = yaml.safe_load((ROOT / PROGRAMS).read_text(encoding="utf-8"))
    wanted = dict(table["__controller_programs"])
    if tests:
        wanted.update(table["__controller_test_programs"])
    if netns:
        wanted.update(table["__controller_netns_programs"])
    if kernels:
        wanted.update(table["__controller_kernel_programs"])
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = (
        package
        for program, package in wanted.items()
        if not (os.path.exists(program) if program[0] == "/" else shutil.which(program, path=path))
    )
    return list(dict.fromkeys(missing))


def ensure_controller(tests: bool = False, netns: bool = False, kernels: bool = False) -> None:
    """Run ``controller.yml`` if a program is missing; asks first where there is a terminal.

    Raises CrossoverError if the user declines or there is no way to become root.
    """
    missing = missing_programs(tests, netns, kernels)
    if not missing:
        return
    text = ", ".join(missing)
    print(f"missing on this machine: {text}", file=sys.stderr)
    command = f"apt-get install {' '.join(missing)}"
    if sys.stdin.isatty():
        answer = input("Install with apt-get now? [Y/n] ").strip().lower()
        if answer not in ("", "y", "yes"):
            raise CrossoverError(f"setup: not installed; to do it by hand: {command}")
    if os.getuid() != 0:
        if not shutil.which("sudo"):
            raise CrossoverError(f"setup: neither root nor sudo; as root: {command}")
        # Asks for the password here, once, where the user can answer.
        interactive = [] if sys.stdin.isatty() else ["-n"]
        if subprocess.run(["sudo", *interactive, "-v"], check=False).returncode:
            raise CrossoverError(f"setup: sudo refused; as root: {command}")
    from collector.run.progress import say_step
    from collector.run.runner import must, run_playbook

    variables = {
        "controller_tests": tests,
        "controller_netns": netns,
        "controller_kernels": kernels,
    }
    must(run_playbook("controller", variables, say_step), "setup")
    still = missing_programs(tests, netns, kernels)
    if still:
        raise CrossoverError(f"setup: still missing after installation: {', '.join(still)}")
