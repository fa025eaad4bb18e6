"""What changed between neighbouring kernels: of a run, and in the published figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from collector.compare.model import ComparedCell, Comparison
from collector.compare.neighbours import Neighbours
from collector.compare.printed import compare_printed
from collector.published import Published
from collector.report.figures import from_published
from collector.report.layout import Table
from collector.report.model import Section
from collector.report.shapes import shape_named
from collector.verdict import Outcome

# With fewer of each kernel, chance alone makes all of one better than all of the other too often.
ENOUGH_BOOTS = 6
CALLED = {Outcome.REGRESSION, Outcome.IMPROVEMENT}
_HEAD = ("Test", "Before", "After", "Change", "Range", "Outcome")


def run_section(found: Sequence[Neighbours]) -> Section | None:
    """The verdict between the kernels of a run, each with the one before; None without any."""
    if not found:
        return None
    sentences = []
    for one in found:
        others = ", ".join(f"{name} {value}" for name, value in one.others.items())
        title = f"{one.new} after {one.base}" + (f" ({others})" if others else "")
        sentences.append(f"{title}: {summary_of(one.comparison)}.")
        sentences += reasons_of(one.comparison, title)
        called = {cell.outcome for cell in one.comparison.cells} & CALLED
        if called and one.boots < ENOUGH_BOOTS:
            sentences.append(
                f"{title}: seen in {one.boots} boot{'' if one.boots == 1 else 's'} of each kernel."
                " What is due to the luck of so few may pass for the kernel's (boots of the"
                " matrix's form; docs/methodology.md)."
            )
    return Section(
        title="Between neighbouring kernels",
        tables=tuple(_table(one.base, one.new, one.others, one.comparison) for one in found),
        sentences=tuple(dict.fromkeys(sentences)),
    )


def published_section(published: Published) -> Section | None:
    """The published table and its changes from kernel to kernel; None for an experiment in which
    kernels are not what varies."""
    comparisons = _published_comparisons(published)
    if not comparisons:
        return None
    return Section(
        title="The published figures",
        tables=(
            *shape_named(published.shape).tables(from_published(published)),
            *(_table(one.base, one.new, {}, one) for one in comparisons),
        ),
        sentences=published_changes(published),
    )


def published_changes(published: Published) -> tuple[str, ...]:
    """What became of the published figures from kernel to kernel, in sentences; none for an
    experiment in which kernels are not what varies."""
    sentences: list[str] = []
    notes: list[str] = []
    for one in _published_comparisons(published):
        title = f"{one.new} after {one.base}"
        sentences.append(f"{title}: {summary_of(one)}.")
        sentences += reasons_of(one, title)
        notes += [f"{note[0].upper()}{note[1:]}." for note in one.notes]
    return tuple(dict.fromkeys([*sentences, *notes]))


def _published_comparisons(published: Published) -> list[Comparison]:
    if published.shape != "forwarding":
        return []
    names = [item.name for item in published.configurations]
    return [compare_printed(published, base, new) for base, new in pairwise(names)]


def summary_of(comparison: Comparison) -> str:
    """``regression (size_64, size_128); the other 5 ok``: the outcome and where it was found."""
    groups: dict[Outcome, list[str]] = {}
    for cell in comparison.cells:
        groups.setdefault(cell.outcome, []).append(cell.test)
    first = groups.pop(comparison.outcome)
    text = comparison.outcome.value
    if groups or len(first) == 1:
        text += f" ({', '.join(first)})"
    rest = [f"{outcome.value} ({', '.join(tests)})" for outcome, tests in groups.items()]
    return "; ".join([text, *rest])


def reasons_of(comparison: Comparison, title: str) -> list[str]:
    """Why cells have no other outcome, equal reasons together; ``title`` names the comparison."""
    by_reason: dict[str, list[str]] = {}
    for cell in comparison.cells:
        if cell.reason:
            by_reason.setdefault(cell.reason, []).append(cell.test)
    found = []
    for reason, tests in by_reason.items():
        where = "all tests" if len(tests) == len(comparison.cells) else ", ".join(tests)
        found.append(f"{title}, {where}: {reason}.")
    return found


def _table(base: str, new: str, others: dict[str, str], comparison: Comparison) -> Table:
    label = ", ".join(f"{name} {value}" for name, value in others.items())
    return Table(
        caption=f"{new} after {base}{f', {label}' if label else ''}: {comparison.method}",
        head=_HEAD,
        rows=tuple(_row(cell) for cell in comparison.cells),
    )


def _row(cell: ComparedCell) -> tuple[str, ...]:
    low, high = cell.ratio_low, cell.ratio_high
    return (
        cell.test,
        "-" if cell.base is None else f"{cell.base:.4g}",
        "-" if cell.new is None else f"{cell.new:.4g}",
        "-" if cell.ratio is None else f"{_change(cell.ratio)} %",
        "-" if low is None or high is None else f"{_change(low)} to {_change(high)}",
        cell.outcome.value,
    )


def _change(ratio: float) -> str:
    """A ratio as a signed change in %, without a negative zero."""
    text = f"{(ratio - 1) * 100:+.1f}"
    return "+0.0" if text == "-0.0" else text
