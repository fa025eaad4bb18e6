"""The commands that build a configuration by hand, as the run folder's evidence has them."""

from __future__ import annotations

from pathlib import Path

from collector.errors import InputError
from collector.report.model import CommandGroup
from collector.runfolder.runfolder import Plan
from collector.shape import read_json

SETUP_FILE = "setup.json"


def setup_of(folder: Path, plan: Plan) -> tuple[CommandGroup, ...]:
    """One group a configuration and host, in the plan's order; none where nothing was recorded.

    Raises InputError for a file of another shape.
    """
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for cell in plan.cells:
        for file in sorted((folder / "evidence" / cell.cell_id).glob(f"*/{SETUP_FILE}"))[:1]:
            for host, lines in _hosts(file).items():
                found.setdefault((cell.configuration, host), lines)
    return tuple(
        CommandGroup(title=f"{configuration}, built by hand on the {host}", argvs=lines)
        for (configuration, host), lines in found.items()
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
