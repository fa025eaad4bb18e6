"""From samples to judged cells: the rules of docs/methodology.md, applied to one run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from collector.errors import UsageError
from collector.runfolder.samples import Sample, SampleStatus
from collector.stats import paired
from collector.stats.bounded import without_bounded
from collector.stats.cells import (
    AA_ARM,
    Cell,
    Floats,
    Settings,
    describe,
    gather,
    log_ratios,
    why_no_value,
)
from collector.stats.drift import drift
from collector.stats.model import CellSummary, MatrixSummary, NoiseFloor
from collector.stats.notes import notes
from collector.verdict import Verdict, difference

RESAMPLES = 10_000
LEVEL = 0.05
MIN_BLOCKS = 6


def default_delta(lab_kind: str) -> float:
    """The equivalence margin for a kind of lab, a fraction: 0.5 % in the exact lab, else 2 %."""
    return 0.005 if lab_kind == "exact" else 0.02


def summarise(
    samples: Iterable[Sample],
    baseline: str,
    delta: float | None = None,
    *,
    baselines: Mapping[str, str] | None = None,
    level: float = LEVEL,
    min_blocks: int = MIN_BLOCKS,
    seed: int = 1,
    resamples: int = RESAMPLES,
    cell_order: Sequence[str] = (),
) -> MatrixSummary:
    """Judge every cell of one run against the baseline within blocks.

    ``delta`` is the equivalence margin as a fraction (None: by lab kind), ``baselines`` names
    another baseline for single configurations, ``cell_order`` lists cell ids in the order wanted
    (others follow as they appear). Cells that were planned but have no sample must be present as
    ``missing`` samples: ``runfolder.complete`` adds them.

    Raises UsageError without samples, with samples of several runs, for two samples of the same
    cell and block, or when a baseline is not among the configurations.
    """
    rows = list(samples)
    _check(rows, [baseline, *(baselines or {}).values()])
    if delta is None:
        delta = default_delta(rows[0].lab_kind)
    settings = Settings(
        baseline=baseline,
        baselines=dict(baselines or {}),
        delta=delta,
        level=level,
        min_blocks=max(min_blocks, 2),
        seed=seed,
        resamples=resamples,
    )
    blocks = 1 + max(row.block for row in rows)
    cells = gather(rows, cell_order)
    by_key = {cell.key: cell for cell in cells}
    ratios = {cell.first.cell_id: log_ratios(cell, by_key, blocks, settings) for cell in cells}
    described = [describe(cell, ratios[cell.first.cell_id], blocks, settings) for cell in cells]
    adjusted, procedure, comparisons = _adjust(described, ratios, settings)
    noise = _noise_floors(adjusted)
    judged = tuple(
        _judge(summary, cell, procedure, noise, settings)
        for summary, cell in zip(adjusted, cells, strict=True)
    )
    judged = without_bounded(judged)
    summary = MatrixSummary(
        run_id=rows[0].run_id,
        matrix=rows[0].matrix,
        lab_kind=rows[0].lab_kind,
        accelerator=rows[0].accelerator,
        kernels=tuple(sorted({kernel for cell in judged for kernel in cell.kernels})),
        baseline=baseline,
        delta=delta,
        level=level,
        min_blocks=settings.min_blocks,
        blocks=blocks,
        seed=seed,
        resamples=resamples,
        procedure=procedure,
        comparisons=comparisons,
        cells=judged,
        noise=noise,
        drift=drift(_logs(cells, blocks)),
        notes=(),
    )
    return replace(summary, notes=notes(summary))


def _check(rows: list[Sample], baselines: list[str]) -> None:
    if not rows:
        raise UsageError("no samples to judge: found none; wanted at least one")
    runs = sorted({row.run_id for row in rows})
    if len(runs) > 1:
        raise UsageError(
            f"samples of several runs: found {', '.join(runs)}; wanted one run"
            " (blocks of different runs cannot be paired)"
        )
    configurations = sorted({row.configuration for row in rows})
    for baseline in baselines:
        if baseline not in configurations:
            names = ", ".join(map(repr, configurations))
            raise UsageError(f"baseline: found {baseline!r}; wanted one of {names}")


def _logs(cells: list[Cell], blocks: int) -> Floats:
    """Logarithms of the valid values, shape (cells, blocks), nan where there is none."""
    logs = np.full((len(cells), blocks), np.nan)
    for row, cell in enumerate(cells):
        for block, value in cell.values.items():
            logs[row, block] = math.log(value)
    return logs


def _adjust(
    cells: list[CellSummary], ratios: Mapping[str, Floats], settings: Settings
) -> tuple[list[CellSummary], str, int]:
    """Fill in the adjusted p-values; also which procedure decides, and the size of the family.

    A/A cells are no hypotheses of the matrix: they are adjusted among themselves.
    """
    procedure, comparisons = paired.WILCOXON_HOLM, 0
    changed = {cell.cell_id: cell for cell in cells}
    for is_aa in (False, True):
        family = [
            cell
            for cell in cells
            if (cell.arm == AA_ARM) is is_aa and cell.n_pairs >= settings.min_blocks
        ]
        if not family:
            continue
        rows = np.array([ratios[cell.cell_id] for cell in family])
        rows = rows[:, ~np.all(np.isnan(rows), axis=0)]
        single = [cell.p_wilcoxon for cell in family if cell.p_wilcoxon is not None]
        outcome = paired.adjust(rows, single, level=settings.level, seed=settings.seed)
        if not is_aa:
            procedure, comparisons = outcome.procedure, len(family)
        for cell, p_holm, p_maxt in zip(family, outcome.p_holm, outcome.p_maxt, strict=True):
            changed[cell.cell_id] = replace(cell, p_holm=p_holm, p_maxt=p_maxt)
    return list(changed.values()), procedure, comparisons


def _noise_floors(cells: list[CellSummary]) -> dict[str, NoiseFloor]:
    floors = {}
    for cell in cells:
        known = cell.ratio is not None and cell.ratio_low is not None
        if cell.arm == AA_ARM and known and cell.ratio_high is not None:
            assert cell.ratio is not None
            assert cell.ratio_low is not None
            floors[cell.test] = NoiseFloor(
                test=cell.test,
                ratio=cell.ratio,
                ratio_low=cell.ratio_low,
                ratio_high=cell.ratio_high,
                floor=math.exp(abs(math.log(cell.ratio))) - 1,
                n_pairs=cell.n_pairs,
            )
    return floors


def _judge(
    summary: CellSummary,
    cell: Cell,
    procedure: str,
    noise: Mapping[str, NoiseFloor],
    settings: Settings,
) -> CellSummary:
    verdict, reason = _before_statistics(summary, cell, settings)
    if verdict is None:
        verdict, reason = _by_statistics(summary, procedure, noise, settings)
    return replace(summary, verdict=verdict, reason=reason)


def _before_statistics(
    summary: CellSummary, cell: Cell, settings: Settings
) -> tuple[Verdict | None, str | None]:
    """The verdicts that come before any p-value is looked at."""
    if summary.n == 0:
        return _without_value(cell)
    if summary.configuration == summary.baseline and summary.arm != AA_ARM:
        return Verdict.BASELINE, why_no_value(cell) or None
    if summary.n_pairs >= settings.min_blocks:
        return None, None
    few = f"too few blocks for a verdict: {summary.n_pairs} of at least {settings.min_blocks}"
    lost = [s for s in cell.samples if s.status in {SampleStatus.INVALID, SampleStatus.FAILED}]
    if lost and summary.n + len(lost) >= settings.min_blocks:
        return Verdict.INVALID, f"{few}; {why_no_value(cell)}"
    if summary.n > summary.n_pairs:
        few += f" shared with {summary.baseline} ({summary.n} measured)"
    return Verdict.NOT_ENOUGH_DATA, few


def _without_value(cell: Cell) -> tuple[Verdict, str]:
    statuses = {sample.status for sample in cell.samples}
    if statuses == {SampleStatus.SKIPPED}:
        return Verdict.SKIPPED, cell.first.reason or "no reason given"
    if statuses <= {SampleStatus.MISSING, SampleStatus.SKIPPED}:
        return Verdict.NOT_ENOUGH_DATA, why_no_value(cell)
    return Verdict.INVALID, why_no_value(cell)


def _by_statistics(
    summary: CellSummary,
    procedure: str,
    noise: Mapping[str, NoiseFloor],
    settings: Settings,
) -> tuple[Verdict, str | None]:
    """The four-way verdict.

    Equivalence by interval inclusion: the whole 95 % interval within ±delta (as log-ratios, so
    that swapping the two sides changes nothing). It is stricter than two one-sided tests at 5 %,
    which ask that of the 90 % interval, and the reader can check it against the printed interval.
    Source: D. J. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657–680.
    """
    ratio, low, high = summary.ratio, summary.ratio_low, summary.ratio_high
    assert ratio is not None
    assert low is not None
    assert high is not None
    margin = math.log1p(settings.delta)
    if -margin <= math.log(low) and math.log(high) <= margin:
        return Verdict.NO_DIFFERENCE, None
    p = summary.p_maxt if procedure == paired.MAX_T else summary.p_holm
    if p is None or p > settings.level:
        return Verdict.INCONCLUSIVE, None
    if low <= 1 <= high:
        return Verdict.INCONCLUSIVE, "significant, but the interval includes no difference"
    effect = math.log(ratio)
    floor = noise.get(summary.test)
    if floor is not None and summary.arm != AA_ARM and abs(effect) <= math.log1p(floor.floor):
        return (
            Verdict.INCONCLUSIVE,
            f"significant, but not beyond the A/A noise floor of {floor.floor:.1%}",
        )
    return difference(effect, summary.higher_is_better), None
