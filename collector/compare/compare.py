"""Comparing two sides cell by cell: what became slower, what faster, what cannot be told.

The rules are in docs/methodology.md. Everything here is pure: sides.py loads,
statistics.py has the statistics, views.py prints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from collector.compare.acks import Ack, applies, check_acks
from collector.compare.model import (
    PAIRED,
    RATIOS,
    UNPAIRED,
    ComparedCell,
    Comparison,
    Floats,
    Pair,
    Rules,
)
from collector.compare.sides import Key, LabMismatchError, Side
from collector.compare.statistics import decide_all
from collector.errors import UsageError
from collector.runfolder.samples import Sample, SampleStatus
from collector.stats.bounded import REASON, mostly_bounded
from collector.stats.cells import usable
from collector.verdict import Outcome, overall


def compare(
    base: Side,
    new: Side,
    *,
    min_effect_pct: float | None = None,
    level: float = 0.05,
    across_labs: bool = False,
    acks: Sequence[Ack] = (),
    today: str = "",
    seed: int = 1,
) -> Comparison:
    """Compare two sides cell by cell.

    ``min_effect_pct`` is the smallest change that counts, in % (None: the base's own delta);
    ``today`` (ISO 8601 date) decides which acknowledgements have run out. Raises
    LabMismatchError for sides of different labs without ``across_labs``, UsageError when nothing
    is left to compare or units differ.
    """
    method = _method(base, new, across_labs)
    minimum = base.summary.delta * 100 if min_effect_pct is None else min_effect_pct
    keys = list(dict.fromkeys([*base.cells, *new.cells]))
    if _lab(base) != _lab(new):
        keys = [key for key in keys if not _is_reference(key, base, new)]
    notes: list[str] = []
    pairs: list[Pair] = []
    for key in keys:
        if _skipped(base.cells.get(key)) and _skipped(new.cells.get(key)):
            notes.append(f"skipped on both sides: {key[0]} {key[1]}".replace("  ", " "))
            continue
        pairs.append(_pair(key, base, new, method))
    if not pairs:
        raise UsageError(
            f"{base.selector.text} and {new.selector.text}: found no cell to compare;"
            " wanted at least one that was measured"
        )
    rules = Rules(
        method=method,
        needed=min(base.summary.min_blocks, new.summary.min_blocks),
        level=level,
        minimum_pct=minimum,
        seed=seed,
    )
    cells, procedure = decide_all(pairs, rules)
    cells = [_acknowledge(cell, acks, minimum, today) for cell in cells]
    notes += check_acks(acks, cells, today)
    return Comparison(
        base=base.selector.text,
        new=new.selector.text,
        method=method,
        procedure=procedure,
        level=level,
        min_effect_pct=minimum,
        lab=_lab(base) if _lab(base) == _lab(new) else f"{_lab(base)} against {_lab(new)}",
        cells=tuple(cells),
        outcome=overall(Outcome.OK if cell.ack else cell.outcome for cell in cells),
        notes=tuple(_method_notes(method, base, new) + notes),
    )


def _lab(side: Side) -> str:
    return f"{side.summary.lab_kind}/{side.summary.accelerator}"


def _method(base: Side, new: Side, across_labs: bool) -> str:
    if base.run.path.resolve() == new.run.path.resolve():
        return PAIRED
    if _lab(base) == _lab(new):
        return UNPAIRED if _drift(base, new) is None else RATIOS
    if not across_labs:
        raise LabMismatchError(
            f"{base.selector.text} was measured in {_lab(base)}, {new.selector.text} in"
            f" {_lab(new)}: found different labs; wanted the same kind and accelerator"
            " (--across-labs compares their ratios to the baseline)"
        )
    return RATIOS


def _drift(base: Side, new: Side) -> float | None:
    """How far apart drift alone may have put the two runs, None if both were steady.

    Two runs that started at the same speed end up at most the sum of their own ranges apart.
    """
    drifts = [side.summary.drift for side in (base, new) if side.summary.drift is not None]
    return math.prod(1 + drift for drift in drifts) - 1 if drifts else None


def _method_notes(method: str, base: Side, new: Side) -> list[str]:
    if method == PAIRED:
        return []
    if _lab(base) != _lab(new):
        return ["different labs: only ratios to the baseline are compared, no absolute number"]
    notes = []
    drift = _drift(base, new)
    if drift is not None:
        notes.append(
            f"the machines drifted during the runs (by up to {drift:.1%} together):"
            " configurations are compared by their ratios to the run's own baseline, and a change"
            " of the baseline itself counts only beyond that drift"
        )
    else:
        notes.append("the runs share no block: whatever differed between them counts as change")
    for side in (base, new):
        if not side.noise:
            notes.append(f"no A/A pair in {side.selector.text}: noise floor unknown")
    return notes


def _is_reference(key: Key, base: Side, new: Side) -> bool:
    return all(
        side.run.plan.baselines.get(rows[0].configuration, side.run.plan.baseline)
        == rows[0].configuration
        for side in (base, new)
        if (rows := side.cells.get(key))
    )


def _skipped(rows: Sequence[Sample] | None) -> bool:
    return bool(rows) and all(row.status is SampleStatus.SKIPPED for row in rows or ())


def _pair(key: Key, base: Side, new: Side, method: str) -> Pair:
    base_rows, new_rows = base.cells.get(key, ()), new.cells.get(key, ())
    first, last = (base_rows or new_rows)[0], (new_rows or base_rows)[0]
    if (first.unit, first.higher_is_better) != (last.unit, last.higher_is_better):
        raise UsageError(
            f"test {first.test}: found unit {first.unit} in {base.selector.text} and {last.unit}"
            f" in {new.selector.text}; wanted the same unit and direction"
        )
    base_values, new_values = _values(base_rows), _values(new_rows)
    cell = ComparedCell(
        configuration=first.configuration,
        new_configuration=last.configuration,
        test=first.test,
        factors=dict(first.factors),
        unit=first.unit,
        higher_is_better=first.higher_is_better,
        n_base=len(base_values),
        n_new=len(new_values),
        base=float(np.median(list(base_values.values()))) if base_values else None,
        new=float(np.median(list(new_values.values()))) if new_values else None,
        ratio=None,
        ratio_low=None,
        ratio_high=None,
        p=None,
        p_smallest=None,
        outcome=Outcome.OK,
        reason=None,
    )
    noise = max(side.noise.get(first.test, 0.0) for side in (base, new))
    if method == RATIOS and not _is_reference(key, base, new):
        base_logs, new_logs = _to_baseline(base, base_rows), _to_baseline(new, new_rows)
    else:
        if method != PAIRED:
            noise = max(noise, _drift(base, new) or 0.0)
        base_logs, new_logs = (_logs(values) for values in (base_values, new_values))
    within = None
    if method == PAIRED:
        blocks = 1 + max((*base_values, *new_values), default=0)
        within = np.full(blocks, np.nan)
        for block in base_values.keys() & new_values.keys():
            within[block] = math.log(new_values[block] / base_values[block])
    unsound = _unsound(cell, base_rows, new_rows, base, new)
    if unsound is not None:
        cell = replace(cell, outcome=unsound[0], reason=unsound[1])
    return Pair(cell, base_logs, new_logs, within, noise)


def _values(rows: Sequence[Sample]) -> dict[int, float]:
    return {row.block: row.value for row in rows if usable(row) and row.value is not None}


def _logs(values: dict[int, float]) -> Floats:
    logs: Floats = np.log(np.array([values[block] for block in sorted(values)], dtype=float))
    return logs


def _to_baseline(side: Side, rows: Sequence[Sample]) -> Floats:
    """Log-ratios to the side's own baseline, for the blocks that have both."""
    if not rows:
        return np.array([])
    cell = side.summary.cell(rows[0].configuration, rows[0].test)
    reference = side.summary.cell(cell.baseline, rows[0].test) if cell is not None else None
    if cell is None or reference is None:
        return np.array([])
    return np.array(
        [
            math.log(value / against)
            for value, against in zip(cell.values, reference.values, strict=True)
            if value is not None and against is not None
        ]
    )


def _unsound(
    cell: ComparedCell,
    base_rows: Sequence[Sample],
    new_rows: Sequence[Sample],
    base: Side,
    new: Side,
) -> tuple[Outcome, str] | None:
    """The outcomes that come before any statistics: lost repeats of which too few are left."""
    if not new_rows:
        return Outcome.INFRASTRUCTURE, f"missing: {new.selector.text} has no such cell"
    if not base_rows:
        return Outcome.NOT_ENOUGH_DATA, f"new: {base.selector.text} has no such cell"
    for side, rows, n in ((new, new_rows, cell.n_new), (base, base_rows, cell.n_base)):
        if n >= side.summary.min_blocks:
            continue
        statuses = {row.status for row in rows if not usable(row)}
        reason = next((f"{row.status.value}: {row.reason}" for row in rows if not usable(row)), "")
        where = f"{n} valid of {len(rows)} in {side.selector.text}; {reason}"
        if SampleStatus.INVALID in statuses:
            return Outcome.INVALID, where
        if statuses:
            return Outcome.INFRASTRUCTURE, where
    for side, rows in ((base, base_rows), (new, new_rows)):
        if mostly_bounded(row for row in rows if usable(row)):
            return Outcome.NOT_ENOUGH_DATA, f"{side.selector.text}: {REASON}"
    return None


def _acknowledge(
    cell: ComparedCell, acks: Sequence[Ack], minimum_pct: float, today: str
) -> ComparedCell:
    if cell.outcome is not Outcome.REGRESSION:
        return cell
    for ack in acks:
        if ack.matches(cell.new_configuration, cell.test, cell.factors) and applies(ack, today):
            if cell.loss_pct <= ack.loss_pct + minimum_pct:
                return replace(cell, ack=ack)
            return replace(
                cell,
                reason=f"worse than acknowledged: {cell.loss_pct:.1f} % lost, known are"
                f" {ack.loss_pct:g} %",
            )
    return cell
