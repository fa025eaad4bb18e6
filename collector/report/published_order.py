"""The order of configurations in a run and in a published experiment, test by test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from collector.published import Published, PublishedTest
from collector.report.figures import has_number
from collector.stats.model import CellSummary, MatrixSummary
from collector.stats.paired import bootstrap_median

# A cell of the run, the name of the published configuration it belongs to, and the test.
Member = tuple[CellSummary, str, PublishedTest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Median within-block ratio of two cells with its 95 % block-bootstrap interval.

    ``low`` and ``high`` are None below two shared blocks.
    """

    value: float
    low: float | None
    high: float | None
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """Two configurations whose order is the opposite of the published one, beyond noise.

    ``ours`` is the ratio first / second in the run; published, first is the larger.
    """

    first: str
    second: str
    published_ratio: float
    ours: Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFinding:
    """The order of configurations in one test.

    ``pairs`` counts those whose published figures differ by more than the run's delta and more
    than their own missed confidence. Of them ``same`` are ordered alike beyond noise,
    ``unresolved`` cannot be told apart by this run, the rest are ``reversals``. ``leaning`` are
    the unresolved pairs whose medians stand the other way round than published.
    """

    test: str
    group: str  # what sets several orders of one test apart, "" if there is one
    published_order: tuple[str, ...]
    our_order: tuple[str, ...]
    pairs: int
    same: int
    unresolved: tuple[tuple[str, str], ...]
    leaning: tuple[tuple[str, str], ...]
    reversals: tuple[Reversal, ...]


def ratio_of(cell: CellSummary, base: CellSummary, summary: MatrixSummary) -> Ratio | None:
    """Median of the within-block ratios cell/base, None if no block holds both."""
    if not has_number(cell) or not has_number(base):
        return None
    logs = [
        math.log(ours / theirs)
        for ours, theirs in zip(cell.values, base.values, strict=False)
        if ours is not None and theirs is not None and ours > 0 and theirs > 0
    ]
    if not logs:
        return None
    low = high = None
    if len(logs) >= 2:
        limits = bootstrap_median(
            np.asarray(logs, dtype=float), resamples=summary.resamples, seed=summary.seed
        )
        low, high = (math.exp(limit) for limit in limits)
    return Ratio(value=math.exp(float(np.median(logs))), low=low, high=high, blocks=len(logs))


def interval_text(ratio: Ratio) -> str:
    """``0.861 – 0.899``, or ``-`` below two shared blocks."""
    if ratio.low is None or ratio.high is None:
        return "-"
    return f"{ratio.low:.3f} – {ratio.high:.3f}"


def _published_doubt(published: Published, configuration: str, test: str) -> float:
    """Half the width of a published figure that missed its confidence, a fraction; else 0."""
    figure = published.figure(configuration, test)
    if figure is None or figure.unmet_width_pct is None:
        return 0.0
    return figure.unmet_width_pct / 200


def find_orders(
    groups: Mapping[tuple[str, str], Sequence[Member]],
    summary: MatrixSummary,
    published: Published,
) -> Iterator[OrderFinding]:
    """The finding of every group that has at least two numbers.

    ``groups`` is keyed by test and the baseline's cell id; its members share that baseline.
    """
    several = {test for test, _ in groups if sum(other == test for other, _ in groups) > 1}
    for (test, base_id), members in groups.items():
        present = [member for member in members if has_number(member[0])]
        if len(present) < 2:
            continue
        base = next((cell for cell, _, _ in members if cell.cell_id == base_id), None)
        theirs = {
            cell.cell_id: (
                published.ratio(name, published_test.name) or 0.0,
                _published_doubt(published, name, published_test.name),
            )
            for cell, name, published_test in present
        }
        yield _order(
            test,
            base.configuration if base is not None and test in several else "",
            [cell for cell, _, _ in present],
            theirs,
            summary,
        )


def _order(
    test: str,
    group: str,
    cells: list[CellSummary],
    theirs: dict[str, tuple[float, float]],  # by cell: published ratio, its doubt
    summary: MatrixSummary,
) -> OrderFinding:
    same = pairs = 0
    unresolved: list[tuple[str, str]] = []
    leaning: list[tuple[str, str]] = []
    reversals: list[Reversal] = []
    by_published = sorted(cells, key=lambda cell: -theirs[cell.cell_id][0])
    for first, second in combinations(by_published, 2):
        published_ratio = theirs[first.cell_id][0] / theirs[second.cell_id][0]
        doubt = theirs[first.cell_id][1] + theirs[second.cell_id][1]
        if published_ratio <= 1 + max(summary.delta, doubt):
            continue  # published as equal, as far as delta and the figures' own doubt go
        pairs += 1
        ours = ratio_of(first, second, summary)
        floor = summary.noise[test].floor if test in summary.noise else 0.0
        if (
            ours is None
            or ours.low is None
            or ours.high is None
            or ours.blocks < summary.min_blocks
            or abs(ours.value - 1) <= floor
            or ours.low <= 1 <= ours.high
        ):
            pair = (first.configuration, second.configuration)
            unresolved.append(pair)
            if ours is not None and ours.value < 1:
                leaning.append(pair)
        elif ours.low > 1:
            same += 1
        else:
            reversals.append(
                Reversal(
                    first=first.configuration,
                    second=second.configuration,
                    published_ratio=published_ratio,
                    ours=ours,
                )
            )
    by_ours = sorted(cells, key=lambda cell: -(cell.median or 0.0))
    return OrderFinding(
        test=test,
        group=group,
        published_order=tuple(cell.configuration for cell in by_published),
        our_order=tuple(cell.configuration for cell in by_ours),
        pairs=pairs,
        same=same,
        unresolved=tuple(unresolved),
        leaning=tuple(leaning),
        reversals=tuple(reversals),
    )
