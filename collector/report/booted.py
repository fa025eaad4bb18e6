"""Which kernels a run booted, and for which configurations."""

from __future__ import annotations

from collector.report.layout import Table
from collector.report.model import Section
from collector.runfolder import Run

_HEAD = ("Kernel", "uname -r", "Configuration", "Boots", "Measured on it")


def booted_section(run: Run) -> Section | None:
    """The kernels of a run; None for one that measured what ran."""
    plan = run.plan
    if not plan.kernels:
        return None
    rows = []
    for name, kernel in plan.kernels.items():
        measured = [item.name for item in plan.configurations if item.kernel == name]
        running = {cell.configuration for cell in plan.cells if cell.skip is None}
        rows.append(
            (
                name,
                kernel.release,
                kernel.config_sha256[:12],
                str(min(plan.boots, plan.blocks)),
                ", ".join(item for item in measured if item in running),
            )
        )
    return Section(
        title="Kernels",
        tables=(
            Table(
                caption="Kernels that the hosts were booted into for this run; configuration is the"
                " begin of its SHA-256",
                head=_HEAD,
                rows=tuple(rows),
                texts=len(_HEAD),
            ),
        ),
        sentences=(
            "No number counts unless both ends of the measured path said release, build and"
            " configuration of exactly this kernel.",
        ),
    )
