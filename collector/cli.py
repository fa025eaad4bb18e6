"""The command line ``crossover``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from collector import __version__
from collector.errors import CrossoverError

COMMANDS = (
    "demo",
    "setup",
    "lab",
    "kernel",
    "plan",
    "run",
    "stress",
    "report",
    "compare",
    "history",
    "query",
    "parse",
    "collect",
    "published",
    "doctor",
)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line: each module of ``collector.commands`` adds its own part."""
    parser = argparse.ArgumentParser(
        prog="crossover",
        description="Measures what kernels, labels, IPsec and tunnels cost on Linux hosts,"
        " proves what was measured, and judges it.",
    )
    parser.add_argument("--version", action="version", version=f"crossover {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"collector.commands.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; problems that a person can act on end in one line, not in a traceback."""
    args = build_parser().parse_args(argv)
    try:
        return int(args.run(args))
    except CrossoverError as error:
        print(f"crossover: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("crossover: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): no message, the usual code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    sys.exit(main())
