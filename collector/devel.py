"""``./crossover test`` and ``./crossover lint``: what a change must pass."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from collector.commands.setup import ensure_controller
from collector.errors import CrossoverError
from collector.run.runner import ROOT, environment

SHELL_SCRIPTS = ("crossover", ".ci/run")


def lint_commands() -> dict[str, list[str]]:
    """Name and argv of each check, in the order run."""
    return {
        "ruff": ["ruff", "check", "."],
        "ruff format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy"],
        "yamllint": ["yamllint", "--strict", "."],
        "ansible-lint": ["ansible-lint", "--offline", "--strict"],
        "shellcheck": ["shellcheck", *SHELL_SCRIPTS],
    }


def lint() -> int:
    """Run every check, all of them even if one fails; 0 if none complained."""
    env = {**os.environ, **environment()}
    failed = []
    for name, argv in lint_commands().items():
        print(f"== {name}", flush=True)
        if subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode:
            failed.append(name)
    print(f"lint: {', '.join(failed)} complained" if failed else "lint: all checks passed")
    return 1 if failed else 0


def test(arguments: Sequence[str]) -> int:
    """Run pytest; ``--slow`` takes the long tests in, everything else is pytest's."""
    words = list(arguments)
    slow = "--slow" in words
    if slow:
        words.remove("--slow")
    selection = [] if slow else ["-m", "not slow"]
    argv = [sys.executable, "-m", "pytest", *selection, *words]
    env = {**os.environ, **environment(), "PYTHONPATH": str(ROOT)}
    os.chdir(ROOT)
    sys.stdout.flush()
    os.execve(argv[0], argv, env)


def main(argv: Sequence[str]) -> int:
    """Entry point: ``test`` or ``lint``, then its arguments."""
    parser = argparse.ArgumentParser(prog="crossover", add_help=False)
    parser.add_argument("what", choices=["test", "lint"])
    args, rest = parser.parse_known_args(list(argv))
    if not (Path(ROOT) / "tests").is_dir():
        print(f"crossover: {ROOT} has no tests: not a checkout", file=sys.stderr)
        return 2
    try:
        ensure_controller(tests=True)
    except CrossoverError as error:
        print(f"crossover: {error}", file=sys.stderr)
        return error.exit_code
    return lint() if args.what == "lint" else test(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
