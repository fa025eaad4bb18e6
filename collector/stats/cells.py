"""Samples gathered by cell, and what one cell shows before it is judged beside the others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.errors import UsageError
from collector.runfolder.samples import Sample, SampleStatus
from collector.stats import paired
from collector.stats.bimodal import is_bimodal
from collector.stats.bounded import is_bounded
from collector.stats.model import CellSummary
from collector.verdict import Verdict

Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # configuration, test, arm

AA_ARM = "aa"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a judgement depends on besides the samples; fields as in MatrixSummary."""

    baseline: str
    baselines: Mapping[str, str]
    delta: float
    level: float
    min_blocks: int
    seed: int
    resamples: int

    def baseline_of(self, configuration: str) -> str:
        """The configuration that ``configuration`` is compared with."""
        return self.baselines.get(configuration, self.baseline)


@dataclass(slots=True)
class Cell:
    """The samples of one cell; ``values`` holds the valid ones by block."""

    first: Sample
    samples: list[Sample] = field(default_factory=list)
    values: dict[int, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What the cell is, apart from its factors."""
        return (self.first.configuration, self.first.test, self.first.arm)


def usable(sample: Sample) -> bool:
    """Whether the sample may be judged: proven, and a number that has a logarithm."""
    return (
        sample.status is SampleStatus.OK
        and sample.value is not None
        and math.isfinite(sample.value)
        and sample.value > 0
    )


def gather(samples: Iterable[Sample], cell_order: Sequence[str] = ()) -> list[Cell]:
    """Samples by cell id: those in ``cell_order`` first, the others as they appear.

    Raises UsageError for two samples of one cell in one block, and for two cells that differ in
    nothing but their factors: their ratios would have no single baseline.
    """
    cells: dict[str, Cell] = {}
    blocks_seen: set[tuple[str, int]] = set()
    for sample in samples:
        cell = cells.setdefault(sample.cell_id, Cell(sample))
        if (sample.cell_id, sample.block) in blocks_seen:
            raise UsageError(
                f"run {sample.run_id}, cell {sample.cell_id}, block {sample.block}:"
                " found two samples; wanted one (a block runs every cell once)"
            )
        blocks_seen.add((sample.cell_id, sample.block))
        cell.samples.append(sample)
        if usable(sample):
            assert sample.value is not None
            cell.values[sample.block] = sample.value
    keys = Counter(cell.key for cell in cells.values())
    for (configuration, test, arm), count in keys.items():
        if count > 1:
            raise UsageError(
                f"configuration {configuration!r}, test {test!r}, arm {arm!r}: found {count} cell"
                " ids; wanted one (factors that differ need configurations of their own)"
            )
    ordered = dict.fromkeys([*(wanted for wanted in cell_order if wanted in cells), *cells])
    return [cells[cell_id] for cell_id in ordered]


def log_ratios(cell: Cell, cells: Mapping[Key, Cell], blocks: int, settings: Settings) -> Floats:
    """``log(cell / baseline)`` by block, nan where either is lacking; shape (blocks,).

    The first member of the baseline refers to nothing: all nan.
    """
    ratios = np.full(blocks, np.nan)
    configuration, test, arm = cell.key
    baseline = settings.baseline_of(configuration)
    if configuration == baseline and arm != AA_ARM:
        return ratios
    reference = cells.get((baseline, test, ""))
    if reference is not None:
        for block, value in cell.values.items():
            if block in reference.values:
                ratios[block] = math.log(value / reference.values[block])
    return ratios


def why_no_value(cell: Cell) -> str:
    """The reasons of the samples without a value, the most frequent first."""
    reasons = Counter(
        f"{sample.status.value}: {sample.reason}" if sample.reason else sample.status.value
        for sample in cell.samples
        if not usable(sample)
    )
    return "; ".join(f"{count} × {reason}" for reason, count in reasons.most_common(3))


def describe(cell: Cell, ratios: Floats, blocks: int, settings: Settings) -> CellSummary:
    """Everything about the cell that needs no look at other cells' p-values; no verdict yet."""
    first = cell.first
    values = np.array([cell.values[block] for block in sorted(cell.values)])
    shared = ratios[~np.isnan(ratios)]
    ratio = low = high = p = smallest = None
    if len(shared):
        ratio = math.exp(float(np.median(shared)))
        log_low, log_high = paired.bootstrap_median(
            shared, resamples=settings.resamples, seed=settings.seed
        )
        low, high = math.exp(log_low), math.exp(log_high)
        p = paired.wilcoxon_p(shared)
        smallest = paired.smallest_wilcoxon_p(len(shared))
    skipped = sum(sample.status is SampleStatus.SKIPPED for sample in cell.samples)
    valid = [sample for sample in cell.samples if usable(sample)]
    return CellSummary(
        cell_id=first.cell_id,
        configuration=first.configuration,
        test=first.test,
        arm=first.arm,
        factors=dict(first.factors),
        baseline=settings.baseline_of(first.configuration),
        kernels=tuple(sorted({s.kernel for s in valid})),
        unit=first.unit,
        higher_is_better=first.higher_is_better,
        n=len(values),
        n_invalid=len(cell.samples) - len(values) - skipped,
        n_pairs=len(shared),
        values=tuple(cell.values.get(block) for block in range(blocks)),
        median=float(np.median(values)) if len(values) else None,
        mean=float(np.mean(values)) if len(values) else None,
        cv=float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else None,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        p_wilcoxon=p,
        p_holm=None,
        p_maxt=None,
        p_smallest=smallest,
        verdict=Verdict.NOT_ENOUGH_DATA,
        reason=None,
        bimodal=is_bimodal(values, settings.delta),
        confidence_unmet=sum(s.confidence_met is False for s in cell.samples),
        confidence_worst_pct=max(_known(s.confidence_got_pct for s in cell.samples), default=None),
        confidence_wanted_pct=min(
            _known(s.confidence_wanted_pct for s in cell.samples), default=None
        ),
        generator_bound=sum(is_bounded(s) for s in valid),
        cpu_local_pct=_median(s.cpu_local_pct for s in valid),
        cpu_remote_pct=_median(s.cpu_remote_pct for s in valid),
        cpu_local_kinds=_medians([s.cpu_local_kinds for s in valid]),
        cpu_remote_kinds=_medians([s.cpu_remote_kinds for s in valid]),
        sd_local_us=_median(s.sd_local_us for s in valid),
        sd_remote_us=_median(s.sd_remote_us for s in valid),
        latency_mean_us=_median(s.latency_mean_us for s in valid),
        # Percentiles have no mean and no median over repeats either: their range.
        latency_p99_low_us=min(_known(s.latency_p99_low_us for s in valid), default=None),
        latency_p99_high_us=max(_known(s.latency_p99_high_us for s in valid), default=None),
    )


def _medians(shares: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """The median of each kind over the repeats that have it; None if none has any."""
    known = [one for one in shares if one is not None]
    kinds = dict.fromkeys(kind for one in known for kind in one)
    return {
        kind: float(np.median([one[kind] for one in known if kind in one])) for kind in kinds
    } or None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return float(np.median(known)) if known else None
