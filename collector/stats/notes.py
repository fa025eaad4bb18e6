"""The sentences that belong under every table of a matrix."""

from __future__ import annotations

from collector.stats import paired
from collector.stats.cells import AA_ARM
from collector.stats.model import MatrixSummary
from collector.verdict import Verdict


def notes(summary: MatrixSummary) -> tuple[str, ...]:
    """What a reader must know besides the table, one sentence a line, the gravest first."""
    return (*_power(summary), *_noise(summary), *_samples(summary))


def _power(summary: MatrixSummary) -> list[str]:
    lines = []
    few = [cell for cell in summary.cells if (cell.reason or "").startswith("too few blocks")]
    if few:
        pairs = sorted({cell.n_pairs for cell in few})
        shown = str(pairs[0]) if len(pairs) == 1 else f"{pairs[0]} to {pairs[-1]}"
        lines.append(
            f"too few blocks for a verdict: {shown} of at least {summary.min_blocks}"
            f" ({len(few)} of {len(summary.cells)} cells)"
        )
    if not summary.comparisons:
        return lines
    fewest = min(
        cell.n_pairs for cell in summary.cells if cell.p_holm is not None and cell.arm != AA_ARM
    )
    smallest = paired.smallest_wilcoxon_p(fewest)
    after_holm = min(1.0, smallest * summary.comparisons)
    if summary.procedure == paired.MAX_T:
        why = (
            f"cannot reach {summary.level:g}"
            if after_holm > summary.level
            else "needs every block to agree"
        )
        lines.append(
            f"Wilcoxon with Holm over {summary.comparisons} comparisons {why} at {fewest} blocks"
            f" (smallest p {smallest:.2g}, after Holm {after_holm:.2g}):"
            " the sign-flip max-t decides"
        )
        if smallest > summary.level:
            lines.append(
                f"no procedure can reach {summary.level:g} at {fewest} blocks:"
                f" the smallest p is {smallest:.2g}"
            )
    return lines


def _noise(summary: MatrixSummary) -> list[str]:
    lines = []
    if summary.drift is not None:
        lines.append(
            f"the machines drifted: blocks lie up to {summary.drift:.1%} apart"
            " (ratios within blocks do not mind, absolute values do)"
        )
    for floor in summary.noise.values():
        lines.append(
            f"noise floor of {floor.test}: the A/A pair differs by {floor.floor:.2%}"
            f" (interval {floor.ratio_low:.3f} to {floor.ratio_high:.3f}, {floor.n_pairs} blocks)"
        )
    lines += [
        f"the A/A pair of {cell.test} differs significantly: order or drift is not under"
        " control, do not trust this test's verdicts"
        for cell in summary.cells
        if cell.arm == AA_ARM and cell.verdict in {Verdict.FASTER, Verdict.SLOWER}
    ]
    tests = dict.fromkeys(cell.test for cell in summary.cells if cell.n)
    without = [test for test in tests if test not in summary.noise]
    if without:
        lines.append(f"no A/A pair, so no noise floor: {', '.join(without)}")
    return lines


def _samples(summary: MatrixSummary) -> list[str]:
    lines = []
    unmet = [cell for cell in summary.cells if cell.confidence_unmet]
    if unmet:
        worst = max(
            (cell.confidence_worst_pct for cell in unmet if cell.confidence_worst_pct is not None),
            default=None,
        )
        width = f", widest {worst:.3g} % of the mean" if worst is not None else ""
        count = sum(cell.confidence_unmet for cell in unmet)
        lines.append(
            f"netperf's own confidence was not reached in {count} repeats"
            f" of {len(unmet)} cells{width}"
        )
    bimodal = [cell for cell in summary.cells if cell.bimodal]
    if bimodal:
        names = ", ".join(_name(cell.configuration, cell.test, cell.arm) for cell in bimodal)
        lines.append(f"two bands of values, look at the samples: {names}")
    lost = sum(cell.n_invalid for cell in summary.cells)
    if lost:
        lines.append(f"{lost} samples are invalid, failed or missing and count in no number")
    return lines


def _name(configuration: str, test: str, arm: str) -> str:
    return f"{configuration}{' (A/A)' if arm else ''} {test}"
