"""Forwarding rates that the generator bounded: the device forwards at least as much.

Such a rate compares generators. No difference between two devices can be read from it, and
neither can the absence of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from collector.runfolder.samples import Sample
from collector.stats.model import CellSummary
from collector.verdict import Verdict

GENERATOR = "generator"
REASON = (
    "the generator was the bottleneck, or cannot be excluded: the device forwards at least this,"
    " how much is unknown"
)
_VERDICTS = (Verdict.FASTER, Verdict.SLOWER, Verdict.NO_DIFFERENCE)


def is_bounded(sample: Sample) -> bool:
    """Whether the generator, not the device, bounded the rate."""
    return sample.bounded_by == GENERATOR


def mostly_bounded(samples: Iterable[Sample]) -> bool:
    """Whether that is so of at least half of the samples, so that their median is no device's."""
    rows = list(samples)
    return bool(rows) and 2 * sum(map(is_bounded, rows)) >= len(rows)


def cell_bounded(cell: CellSummary) -> bool:
    """The same for a cell's valid samples."""
    return cell.n > 0 and 2 * cell.generator_bound >= cell.n


def without_bounded(cells: Sequence[CellSummary]) -> tuple[CellSummary, ...]:
    """The cells, without a verdict where the generator bounded the cell or its baseline."""
    bases = {(cell.configuration, cell.test): cell for cell in cells if cell.arm == ""}
    return tuple(_without(cell, bases.get((cell.baseline, cell.test))) for cell in cells)


def _without(cell: CellSummary, base: CellSummary | None) -> CellSummary:
    bounded = cell_bounded(cell) or (base is not None and cell_bounded(base))
    if not bounded or cell.verdict not in _VERDICTS:
        return cell
    return replace(cell, verdict=Verdict.INCONCLUSIVE, reason=REASON)
