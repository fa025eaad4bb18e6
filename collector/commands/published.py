"""``crossover published``: the published experiments whose figures are kept as data."""

from __future__ import annotations

import argparse

from collector import published
from collector.published import Published
from collector.report.layout import paragraph
from collector.report.words import citation
from collector.tables import json_text


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "published",
        help="list the published experiments kept as data",
        description="`crossover report --published NAME` shows one in the table of its post,"
        " `crossover compare --published NAME RUN` puts a run beside it.",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    experiments = published.load_all()
    if args.format == "json":
        print(json_text([_entry(experiment) for experiment in experiments]))
    else:
        print("\n\n".join(_text(experiment) for experiment in experiments))
    return 0


def _text(experiment: Published) -> str:
    lines = [
        experiment.name,
        paragraph(experiment.title, indent="  "),
        paragraph(citation(experiment.source), indent="  "),
        paragraph(
            f"{len(experiment.figures)} figures, {len(experiment.configurations)} configurations, "
            f"{len(experiment.tests)} tests, baseline {experiment.baseline}",
            indent="  ",
        ),
    ]
    return "\n".join(lines)


def _entry(experiment: Published) -> dict[str, object]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "source": citation(experiment.source),
        "baseline": experiment.baseline,
        "configurations": [configuration.name for configuration in experiment.configurations],
        "tests": [test.name for test in experiment.tests],
        "figures": len(experiment.figures),
    }
