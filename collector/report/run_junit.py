"""A run's verdicts as a JUnit document: one test case a cell.

A run has no "before" to be worse than, so a slower cell is a passed case with its verdict in the
output; what fails a pipeline is a comparison (``crossover compare --junit``). An invalid cell is an
error, a skipped cell or one without enough data is skipped.
"""

from __future__ import annotations

from collector.junit import Case, Outcome, junit_xml
from collector.report import words
from collector.report.figures import cell_remarks, printed_number, quantities_of
from collector.report.model import Report
from collector.stats.model import CellSummary
from collector.verdict import Verdict

_OUTCOMES = {
    Verdict.INVALID: Outcome.ERROR,
    Verdict.SKIPPED: Outcome.SKIPPED,
    Verdict.NOT_ENOUGH_DATA: Outcome.SKIPPED,
}


def run_junit(report: Report) -> str:
    """The JUnit document of a run, A/A members included."""
    summary = report.summary
    cases = [_case(cell, summary.matrix) for cell in summary.cells]
    return junit_xml(f"{summary.matrix} {summary.run_id}", cases)


def _case(cell: CellSummary, matrix: str) -> Case:
    outcome = _OUTCOMES.get(cell.verdict, Outcome.PASSED)
    arm = " (A/A)" if cell.arm else ""
    return Case(
        classname=f"{matrix}.{cell.configuration}",
        name=f"{cell.test}{arm}",
        outcome=outcome,
        kind=cell.verdict.value,
        message=cell.reason or cell.verdict.value,
        output=None if outcome is Outcome.ERROR else _output(cell),
    )


def _output(cell: CellSummary) -> str:
    lines = [f"verdict: {cell.verdict.value}"]
    if cell.median is not None:
        quantity = quantities_of(cell)[-1]
        lines.append(f"median: {printed_number(cell.median, quantity)} {quantity.printed_unit}")
    if cell.ratio is not None:
        limits = words.interval(cell.ratio_low, cell.ratio_high)
        lines.append(f"ratio to {cell.baseline}: {cell.ratio:.3f} (95 % interval {limits})")
    lines.append(f"blocks: {cell.n_pairs}")
    lines += cell_remarks(cell)
    return "\n".join(lines)
