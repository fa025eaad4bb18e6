"""Which kernels a run booted, and for which configurations."""

from __future__ import annotations

from collector.report.layout import Table
from collector.report.model import Section
from collector.runfolder.runfolder import Run

_HEAD = ("Kernel", "uname -r", "Config", "Boots")


def booted_section(run: Run) -> Section | None:
    """The kernels of a run; None for one that measured what ran."""
    plan = run.plan
    if not plan.kernels:
        return None
    running = {cell.configuration for cell in plan.cells if cell.skip is None}
    rows, sentences = [], []
    for name, kernel in plan.kernels.items():
        own = [item.name for item in plan.configurations if item.kernel == name]
        measured = ", ".join(item for item in own if item in running)
        sentences.append(f"On {name}: {measured}.")
        rows.append(
            (
                name,
                kernel.release,
                kernel.config_sha256[:8],
                str(min(plan.boots, plan.blocks)),
            )
        )
    return Section(
        title="Kernels",
        tables=(
            Table(
                caption="Kernels that the hosts were booted into for this run; Config is the begin"
                " of the SHA-256 of the configuration",
                head=_HEAD,
                rows=tuple(rows),
                texts=len(_HEAD),
            ),
        ),
        sentences=(
            *sentences,
            "No number counts unless both ends of the measured path said release, build and"
            " configuration of exactly this kernel.",
        ),
    )
