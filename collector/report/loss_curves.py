"""Frame loss by offered load (RFC 2544, section 26.3), as the searches of a run measured it."""

from __future__ import annotations

from collector.forwarding.raw import SEARCH_FILE, points_of
from collector.forwarding.setting import Point
from collector.report.layout import Table
from collector.report.model import Section
from collector.runfolder.runfolder import PlannedCell, Run

MEASURE = "loss_curve"
HEAD = ("offered, % of line rate", "offered, frames/s", "forwarded, frames/s", "lost, %")


def curves_section(run: Run) -> Section | None:
    """A table for each cell that has a curve, of its first repeat; None without any. Raises
    InputError."""
    tests = {test.name for test in run.plan.tests if test.settings.get("forwarding") == MEASURE}
    cells = [cell for cell in run.plan.cells if cell.test in tests and not cell.arm]
    tables = [table for cell in cells if (table := _table(run, cell)) is not None]
    if not tables:
        return None
    return Section(
        title="Frame loss by offered load",
        tables=tuple(tables),
        sentences=(
            "Loads go down from the highest in tenths, until two in a row are without loss; rates"
            f" are of one direction. Other repeats are in raw/…/{SEARCH_FILE}.",
        ),
    )


def _table(run: Run, cell: PlannedCell) -> Table | None:
    for block in range(run.plan.blocks):
        points = points_of(run.path / "raw" / cell.cell_id / str(block))
        if points:
            return Table(
                caption=f"{cell.configuration}, {cell.test}, block {block + 1}",
                head=HEAD,
                rows=tuple(_row(point) for point in points),
            )
    return None


def _row(point: Point) -> tuple[str, ...]:
    # A loss too small to be shown is not printed as none.
    lost = 100 * point.loss_ratio
    return (
        f"{point.offered_pct:.3g}",
        f"{point.offered_fps:.0f}",
        f"{point.forwarded_fps:.0f}",
        "<0.001" if 0 < lost < 0.0005 else f"{lost:.3f}",
    )
