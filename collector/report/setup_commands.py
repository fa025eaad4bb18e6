"""The commands that build a configuration by hand, as the run folder's evidence has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from collector.errors import InputError
from collector.report.model import CommandGroup
from collector.runfolder.runfolder import Plan
from collector.shape import read_json

SETUP_FILE = "setup.json"


def setup_of(folder: Path, plan: Plan) -> tuple[CommandGroup, ...]:
    """One group a configuration and host, in the plan's order, or one for all hosts that type the
    same; none where nothing was recorded.

    Raises InputError for a file of another shape.
    """
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for cell in plan.cells:
        for file in sorted((folder / "evidence" / cell.cell_id).glob(f"*/{SETUP_FILE}"))[:1]:
            found.setdefault(cell.configuration, _hosts(file))
    return tuple(
        group for configuration, hosts in found.items() for group in _groups(configuration, hosts)
    )


def setup_of_stress(folder: Path, configuration: str) -> tuple[CommandGroup, ...]:
    """The same of a stress run's folder."""
    file = folder / "evidence" / SETUP_FILE
    return _groups(configuration, _hosts(file)) if file.exists() else ()


def _groups(configuration: str, hosts: Mapping[str, tuple[str, ...]]) -> tuple[CommandGroup, ...]:
    by_lines: dict[tuple[str, ...], list[str]] = {}
    for host, lines in hosts.items():
        by_lines.setdefault(lines, []).append(host)
    return tuple(
        CommandGroup(
            title=f"{configuration}, built by hand on the {' and the '.join(names)}", argvs=lines
        )
        for lines, names in by_lines.items()
        if lines
    )


def _hosts(file: Path) -> dict[str, tuple[str, ...]]:
    document = read_json(file)
    hosts = document.get("hosts") if isinstance(document, dict) else None
    if not isinstance(hosts, dict) or not all(
        isinstance(lines, list) and all(isinstance(line, str) for line in lines)
        for lines in hosts.values()
    ):
        raise InputError(str(file), "another shape", '{"hosts": {HOST: [COMMAND, …]}}')
    return {str(host): tuple(lines) for host, lines in hosts.items()}
