"""``crossover compare``: the gate. Its exit code is the outcome over all cells."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from collector.compare.acks import load_acks
from collector.compare.compare import compare
from collector.compare.sides import load_sides
from collector.compare.views import junit_text, render
from collector.errors import CrossoverError, UsageError
from collector.tables import FORMATS

_EPILOG = """\
exit codes: 0 ok or improvement, 10 regression, 20 not enough data, 30 invalid (also: labs that
must not be compared), 40 infrastructure (a cell is missing or failed). Over all cells the worst
counts: regression, infrastructure, invalid, not enough data, improvement, ok.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="judge NEW against BASE, cell by cell, with an exit code for a gate",
        description="BASE and NEW are run folders, RUN:CONFIGURATION, RUN@KERNEL, or both\n"
        "(RUN:CONFIGURATION@KERNEL). With --published NAME: one run folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sides", nargs="*", metavar="BASE NEW")
    parser.add_argument(
        "--published",
        metavar="NAME",
        help="compare the ratios of one RUN with a published experiment (exit code 0)",
    )
    parser.add_argument(
        "--min-effect",
        type=_percent,
        metavar="PCT",
        help="smallest change that counts, in %% (default: the delta of BASE)",
    )
    parser.add_argument(
        "--level", type=_level, default=0.05, help="significance over all cells (default 0.05)"
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write a JUnit file")
    parser.add_argument("--ack", type=Path, metavar="FILE", help="YAML of known regressions")
    parser.add_argument(
        "--across-labs",
        action="store_true",
        help="allow different labs: compares ratios to the baseline, never absolute numbers",
    )
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the comparison and return its exit code; raises UsageError and InputError."""
    if args.published is not None:
        return _published(args)
    if len(args.sides) != 2:
        raise UsageError(f"compare: found {len(args.sides)} sides; wanted BASE and NEW")
    acks = load_acks(args.ack) if args.ack is not None else []
    base, new = load_sides(*args.sides)
    comparison = compare(
        base,
        new,
        min_effect_pct=args.min_effect,
        level=args.level,
        across_labs=args.across_labs,
        acks=acks,
        today=datetime.datetime.now(datetime.UTC).date().isoformat(),
        seed=base.run.plan.seed,
    )
    print(render(comparison, args.format))
    if args.junit is not None:
        try:
            args.junit.write_text(junit_text(comparison), encoding="utf-8")
        except OSError as error:
            raise CrossoverError(
                f"{args.junit}: {error.strerror}; wanted a file that can be written"
            ) from error
    return comparison.outcome.exit_code


def _published(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from collector import published
    from collector.report.against_published import compare_published, comparison_text
    from collector.report.words import citation
    from collector.runfolder.runfolder import load_run
    from collector.runfolder.store import read_samples
    from collector.stats.judged import judge
    from collector.tables import json_text

    if len(args.sides) != 1:
        raise UsageError(f"compare --published: found {len(args.sides)} runs; wanted one")
    if args.format not in {"text", "json"}:
        raise UsageError(f"compare --published: found --format {args.format}; wanted text or json")
    experiment = published.load(args.published)
    run_read = load_run(args.sides[0])
    comparison = compare_published(judge(run_read, read_samples(run_read.path)), experiment)
    if args.format == "json":
        print(json_text(asdict(comparison)))
    else:
        print(comparison_text(comparison, citation(experiment.source)))
    return 0


def _percent(text: str) -> float:
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"found {text!r}; wanted 0 or more, in %")
    return value


def _level(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; wanted a level between 0 and 1")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"found {text!r}; wanted a number") from error
