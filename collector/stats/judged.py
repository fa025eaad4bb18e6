"""A run, judged by its own plan."""

from __future__ import annotations

from collections.abc import Iterable

from collector.runfolder.runfolder import Run, complete
from collector.runfolder.samples import Sample
from collector.stats import MatrixSummary, summarise


def judge(run: Run, samples: Iterable[Sample]) -> MatrixSummary:
    """The run's samples, completed by its plan, judged by the plan's baseline, margin, fewest
    blocks and seed, in the plan's order of cells. Raises UsageError as ``summarise`` does."""
    plan = run.plan
    return summarise(
        complete(plan, samples),
        plan.baseline,
        plan.delta,
        baselines=plan.baselines,
        min_blocks=plan.min_blocks,
        seed=plan.seed,
        cell_order=[cell.cell_id for cell in plan.cells],
    )
