"""How long the hosts took to apply configurations: with many SAs that is a figure of its own."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from collector.report.layout import Table
from collector.runfolder.runfolder import Run

# Fewer operations say more of starting a program than of the kernel's tables.
LEAST = 100


def applied_table(run: Run) -> Table | None:
    """Per configuration the medians over the blocks, of the slower host. None where no change had
    at least ``LEAST`` operations. Changes go from the configuration before, in the run's order."""
    found: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for event in run.journal:
        if event.event == "applied":
            hosts = event.details["hosts"].values()
            slower = max(hosts, key=lambda host: float(host["seconds"]))
            found[event.details["configuration"]].append(
                (float(slower["seconds"]), int(slower["operations"]), int(slower["sas"]))
            )
    if not any(row[1] >= LEAST for rows in found.values() for row in rows):
        return None
    return Table(
        caption="Time to apply a configuration, the slower host, median over the blocks: SAs and"
        " policies added, replaced or removed against the configuration before, in one step and"
        " read back.",
        head=("configuration", "SAs", "operations", "seconds", "ms each"),
        rows=tuple(
            _row(item.name, found[item.name])
            for item in run.plan.configurations
            if item.name in found
        ),
    )


def _row(name: str, changes: list[tuple[float, int, int]]) -> tuple[str, ...]:
    seconds = median(row[0] for row in changes)
    operations = median(row[1] for row in changes)
    each = median(1000 * row[0] / row[1] for row in changes) if all(r[1] for r in changes) else None
    return (
        name,
        f"{changes[-1][2]}",
        f"{operations:.0f}",
        f"{seconds:.2f}",
        "-" if each is None else f"{each:.2f}",
    )
