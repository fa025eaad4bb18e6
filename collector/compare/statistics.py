"""The statistics of a comparison: pairs of cells in, decided cells out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from collector.compare.model import PAIRED, ComparedCell, Floats, Pair, Rules
from collector.stats import paired, unpaired
from collector.verdict import Outcome, Verdict, difference

RESAMPLES = 10_000
MANN_WHITNEY_HOLM = "mann-whitney-holm"


def decide_all(pairs: list[Pair], rules: Rules) -> tuple[list[ComparedCell], str]:
    """Estimate, test and decide every pair whose outcome is not settled yet (``ok``).

    Returns the cells in the order given, and which procedure decided. Only cells whose sample
    sizes can reach the level at all are part of the family that the p-values are adjusted for.
    """
    open_pairs = [pair for pair in pairs if pair.cell.outcome is Outcome.OK]
    estimated = [estimate(pair, rules) for pair in open_pairs]
    able = [
        number
        for number, cell in enumerate(estimated)
        if cell.p_smallest is not None
        and cell.p_smallest <= rules.level
        and (rules.method != PAIRED or len(_shared(open_pairs[number])) >= rules.needed)
    ]
    p_values, procedure = _p_values([open_pairs[number] for number in able], rules)
    p_by_number = dict(zip(able, p_values, strict=True))
    comparisons = 1 if procedure == paired.MAX_T else len(able)
    decided = {
        id(pair): decide(
            replace(cell, p=p_by_number.get(number)),
            rules,
            comparisons=comparisons,
            noise=pair.noise,
        )
        for number, (pair, cell) in enumerate(zip(open_pairs, estimated, strict=True))
    }
    return [decided.get(id(pair), pair.cell) for pair in pairs], procedure


def _p_values(pairs: list[Pair], rules: Rules) -> tuple[list[float], str]:
    if rules.method != PAIRED:
        single = [unpaired.mann_whitney_p(pair.base, pair.new) for pair in pairs]
        return paired.holm(single), MANN_WHITNEY_HOLM
    rows = [pair.within for pair in pairs if pair.within is not None]
    if not rows:
        return [], paired.WILCOXON_HOLM
    family = np.full((len(rows), max(map(len, rows))), np.nan)
    for number, row in enumerate(rows):
        family[number, : len(row)] = row
    outcome = paired.adjust(
        family[:, ~np.all(np.isnan(family), axis=0)],
        [paired.wilcoxon_p(_shared(pair)) for pair in pairs],
        level=rules.level,
        seed=rules.seed,
    )
    if outcome.procedure == paired.MAX_T:
        return outcome.p_maxt, outcome.procedure
    return outcome.p_holm, outcome.procedure


def _shared(pair: Pair) -> Floats:
    """The log-ratios of the blocks that have both sides."""
    if pair.within is None:
        return np.array([])
    shared: Floats = pair.within[~np.isnan(pair.within)]
    return shared


def estimate(pair: Pair, rules: Rules) -> ComparedCell:
    """The ratio with its interval, and the smallest p that the sample sizes allow."""
    if rules.method == PAIRED:
        shared = _shared(pair)
        if not len(shared):
            return pair.cell
        low, high = paired.bootstrap_median(shared, resamples=RESAMPLES, seed=rules.seed)
        middle = float(np.median(shared))
        smallest = paired.smallest_wilcoxon_p(len(shared))
    else:
        if not len(pair.base) or not len(pair.new):
            return pair.cell
        middle, low, high = unpaired.shift_of_medians(
            pair.base, pair.new, resamples=RESAMPLES, seed=rules.seed
        )
        smallest = unpaired.smallest_mann_whitney_p(len(pair.base), len(pair.new))
    return replace(
        pair.cell,
        ratio=math.exp(middle),
        ratio_low=math.exp(low),
        ratio_high=math.exp(high),
        p_smallest=smallest,
    )


def decide(cell: ComparedCell, rules: Rules, *, comparisons: int, noise: float) -> ComparedCell:
    """The outcome of an estimated cell; ``comparisons`` multiplies the smallest reachable p."""
    if cell.p is None or cell.p_smallest is None or cell.ratio is None:
        return replace(cell, outcome=Outcome.NOT_ENOUGH_DATA, reason=_too_few(cell, rules))
    sizes = f"{cell.n_base} against {cell.n_new} repeats"
    if cell.p_smallest * comparisons > rules.level:
        adjusted = min(1.0, cell.p_smallest * comparisons)
        return replace(
            cell,
            outcome=Outcome.NOT_ENOUGH_DATA,
            reason=f"{sizes} cannot reach {rules.level:g}: smallest p {cell.p_smallest:.2g},"
            f" {adjusted:.2g} after Holm over {comparisons} cells",
        )
    if cell.p > rules.level or cell.ratio_low is None or cell.ratio_high is None:
        return cell
    if cell.ratio_low <= 1 <= cell.ratio_high:
        return replace(cell, reason="significant, but the interval includes no difference")
    effect = math.log(cell.ratio)
    if abs(effect) <= math.log1p(rules.minimum_pct / 100):
        reason = f"significant, but within the minimum effect of {rules.minimum_pct:g} %"
        return replace(cell, reason=reason)
    if abs(effect) <= math.log1p(noise):
        return replace(
            cell, reason=f"significant, but within what noise or drift alone show, {noise:.1%}"
        )
    worse = difference(effect, cell.higher_is_better) is Verdict.SLOWER
    return replace(cell, outcome=Outcome.REGRESSION if worse else Outcome.IMPROVEMENT)


def _too_few(cell: ComparedCell, rules: Rules) -> str:
    sizes = f"{cell.n_base} against {cell.n_new} repeats"
    if rules.method == PAIRED:
        return f"{sizes}: too few shared blocks for a verdict, wanted at least {rules.needed}"
    if cell.p_smallest is None:
        return f"{sizes}: too few for a verdict"
    return (
        f"{sizes} cannot reach {rules.level:g}: the smallest p these sizes allow is"
        f" {cell.p_smallest:.2g}"
    )
