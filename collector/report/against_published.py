"""A run beside a published experiment: ratios to the baseline, cell by cell, and the order.

Absolute numbers are never put side by side: other machines, other kernels, perhaps an emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

from collector.published import Published, PublishedConfiguration, PublishedTest
from collector.report.figures import has_number
from collector.report.layout import Table, bullet, columns, paragraph
from collector.report.published_order import (
    Member,
    OrderFinding,
    Ratio,
    find_orders,
    interval_text,
    ratio_of,
)
from collector.report.shapes.ipsec import is_labelled
from collector.stats.model import CellSummary, MatrixSummary
from collector.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """One cell of both. ``ours`` is None where the run has no number for it or its baseline."""

    configuration: str  # name in the run
    published_configuration: str
    test: str  # name in the run
    published_ratio: float
    ours: Ratio | None
    baseline: str  # name in the run
    remark: str | None  # why there is no ratio of ours
    published_remark: str | None  # what the post says against its own figures


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedComparison:
    """All of it. ``skipped`` has the reason of each matched configuration that was skipped as a
    whole; ``missing`` names published configurations the run has no cell for."""

    published: str
    baseline: str
    delta: float
    enough_blocks: bool
    min_blocks: int
    cells: tuple[PublishedCell, ...]
    orders: tuple[OrderFinding, ...]
    skipped: dict[str, str]
    missing: tuple[str, ...]


def compare_published(summary: MatrixSummary, published: Published) -> PublishedComparison:
    """Put a judged run beside a published experiment.

    A cell of the run belongs to a published one if the names are equal (case aside), or if it has
    every factor the published one declares, ``label`` counting as on or off only. Where the run
    has several such cells (IPv4 and IPv6, say), each is compared, with the baseline that shares
    the most factors with it. Pure; raises nothing for a run that has nothing in common, whose
    ``cells`` are then empty.
    """
    matched = [
        (cell, configuration, test)
        for cell in summary.cells
        if cell.arm == ""
        for configuration in published.configurations
        if _is_configuration(cell, configuration)
        for test in published.tests
        if _is_test(cell, test)
    ]
    baselines = [
        cell for cell, configuration, _ in matched if configuration.name == published.baseline
    ]
    cells: list[PublishedCell] = []
    groups: dict[tuple[str, str], list[Member]] = {}
    for cell, configuration, test in matched:
        base = _baseline_of(cell, baselines)
        published_ratio = published.ratio(configuration.name, test.name)
        if base is None or published_ratio is None:
            continue
        groups.setdefault((cell.test, base.cell_id), []).append((cell, configuration.name, test))
        if cell is base:
            continue
        cells.append(
            PublishedCell(
                configuration=cell.configuration,
                published_configuration=configuration.name,
                test=cell.test,
                published_ratio=published_ratio,
                ours=ratio_of(cell, base, summary),
                baseline=base.configuration,
                remark=_why_no_ratio(cell, base),
                published_remark=_published_remark(published, configuration.name, test.name),
            )
        )
    return PublishedComparison(
        published=published.name,
        baseline=published.baseline,
        delta=summary.delta,
        enough_blocks=summary.blocks >= summary.min_blocks,
        min_blocks=summary.min_blocks,
        cells=tuple(cells),
        orders=tuple(find_orders(groups, summary, published)),
        skipped=_skipped([cell for cell, _, _ in matched]),
        missing=tuple(
            c.name
            for c in published.configurations
            if all(configuration.name != c.name for _, configuration, _ in matched)
        ),
    )


def _is_configuration(cell: CellSummary, configuration: PublishedConfiguration) -> bool:
    if cell.configuration.lower() == configuration.name.lower():
        return True
    wanted = dict(configuration.factors)
    label = wanted.pop("label", None)
    if label is None and not wanted:
        return False
    if label is not None and (
        "label" not in cell.factors
        or is_labelled(cell.factors) != is_labelled({"label": label})
        or wanted  # a published label with further factors stands for that very row only
    ):
        return False
    return all(cell.factors.get(key) == value for key, value in wanted.items())


def _is_test(cell: CellSummary, test: PublishedTest) -> bool:
    if test.headline.unit != cell.unit:
        return False
    if test.name.lower() == cell.test.lower():
        return True
    return (
        bool(test.factors)
        and test.name.lower().startswith(f"{cell.test.lower()}_")
        and all(cell.factors.get(key) == value for key, value in test.factors.items())
    )


def _baseline_of(cell: CellSummary, baselines: list[CellSummary]) -> CellSummary | None:
    """The baseline cell of the same test that shares the most factors with the cell."""
    same_test = [base for base in baselines if base.test == cell.test]
    own = set(cell.factors.items())
    return max(same_test, key=lambda base: len(own & set(base.factors.items())), default=None)


def _published_remark(published: Published, configuration: str, test: str) -> str | None:
    unmet = [
        f"{figure.configuration}, width {figure.unmet_width_printed} %"
        for name in (configuration, published.baseline)
        if (figure := published.figure(name, test)) is not None
        and figure.unmet_width_printed is not None
    ]
    return f"published without its confidence: {'; '.join(unmet)}" if unmet else None


def _skipped(cells: list[CellSummary]) -> dict[str, str]:
    names = dict.fromkeys(cell.configuration for cell in cells)
    return {
        name: own[0].reason or "no reason recorded"
        for name in names
        if (own := [cell for cell in cells if cell.configuration == name])
        and all(cell.verdict is Verdict.SKIPPED for cell in own)
    }


def _why_no_ratio(cell: CellSummary, base: CellSummary) -> str | None:
    for one in (cell, base):
        if not has_number(one):
            return f"{one.configuration}: {one.reason or one.verdict.value}"
    return None


def order_sentences(finding: OrderFinding, comparison: PublishedComparison) -> tuple[str, ...]:
    """What there is to say about one test's order, in whole sentences."""
    where = f"{finding.test} ({finding.group})" if finding.group else finding.test
    if finding.pairs == 0:
        margin = f"{100 * comparison.delta:g} %"
        return (f"{where}: no two published figures differ by more than {margin} and their noise.",)
    published = " > ".join(finding.published_order)
    ours = " > ".join(finding.our_order)
    if not comparison.enough_blocks:
        if finding.leaning:
            return (f"{where}: by medians {ours}; published {published}.",)
        return (f"{where}: by medians as published, {ours}.",)
    sentences = [
        f"{where}: order DIFFERS: {reversal.first} was published above {reversal.second} "
        f"(ratio {reversal.published_ratio:.3f}); here their ratio is "
        f"{reversal.ours.value:.3f} ({interval_text(reversal.ours)})."
        for reversal in finding.reversals
    ]
    if finding.reversals:
        sentences.append(f"{where}: by medians {ours}; published {published}.")
    elif finding.same == finding.pairs:
        sentences.append(f"{where}: order as published, {ours}.")
    else:
        sentences.append(
            f"{where}: no order differs beyond noise; {finding.same} of {finding.pairs} pairs are "
            "as published."
        )
    if finding.unresolved:
        names = ", ".join(
            f"{first}/{second}{' (medians reversed)' if (first, second) in finding.leaning else ''}"
            for first, second in finding.unresolved
        )
        sentences.append(f"{where}: not to be told apart in this run: {names}.")
    return tuple(sentences)


def comparison_table(comparison: PublishedComparison) -> Table:
    """The ratios cell by cell, tests together; cells of skipped configurations are left out."""
    tests = dict.fromkeys(cell.test for cell in comparison.cells)
    rows = tuple(
        (
            cell.test,
            cell.configuration,
            f"{cell.published_ratio:.3f}",
            "-" if cell.ours is None else f"{cell.ours.value:.3f}",
            "-" if cell.ours is None else interval_text(cell.ours),
            "-" if cell.ours is None else str(cell.ours.blocks),
        )
        for test in tests
        for cell in comparison.cells
        if cell.test == test and cell.configuration not in comparison.skipped
    )
    return Table(
        caption=f"Ratios to {comparison.baseline}, published beside ours",
        head=("Test", "Configuration", "Published", "Ours", "95 % interval", "Blocks"),
        rows=rows,
        texts=2,
    )


def comparison_sentences(comparison: PublishedComparison) -> tuple[str, ...]:
    """Everything to say below the table: order, cells without a ratio, configurations not run."""
    sentences = [
        text for finding in comparison.orders for text in order_sentences(finding, comparison)
    ]
    if not comparison.enough_blocks:
        sentences.append(
            f"Fewer than {comparison.min_blocks} blocks: no order can be called the same or "
            "another beyond noise."
        )
    sentences += [
        f"{cell.test}: no ratio for {cell.configuration} ({cell.remark})."
        for cell in comparison.cells
        if cell.remark is not None and cell.configuration not in comparison.skipped
    ]
    sentences += dict.fromkeys(
        f"{cell.test}: {cell.published_remark}."
        for cell in comparison.cells
        if cell.published_remark is not None
    )
    by_reason: dict[str, list[str]] = {}
    for name, reason in comparison.skipped.items():
        by_reason.setdefault(reason, []).append(name)
    sentences += [
        f"Published, but skipped here: {', '.join(names)} ({reason})."
        for reason, names in by_reason.items()
    ]
    if comparison.missing:
        sentences.append(f"Published, but not in this run: {', '.join(comparison.missing)}.")
    return tuple(sentences)


def preamble(comparison: PublishedComparison, source: str) -> str:
    """What is compared, and what is not; ``source`` cites the published figures."""
    if not comparison.cells:
        return (
            f"The run has no cell in common with the published experiment {comparison.published}."
        )
    return (
        f"Ratios to {comparison.baseline}, published beside ours. Only ratios are compared: "
        f"the published figures are from other machines and kernels ({source})."
    )


def comparison_text(comparison: PublishedComparison, source: str) -> str:
    """The comparison as plain text of a mail's width; ``source`` cites the published figures."""
    parts = [paragraph(preamble(comparison, source))]
    table = comparison_table(comparison)
    if table.rows:
        parts.append(columns([table.head, *table.rows], align="ll"))
    sentences = comparison_sentences(comparison)
    if sentences:
        parts.append("\n".join(bullet(text) for text in sentences))
    return "\n\n".join(parts)
