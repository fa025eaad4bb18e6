"""Comparing figures that somebody printed: one value each, and nothing known of their noise.

No test can be made of two single values. What can be said is whether they differ by more than the
rounding of the print allows and by more than a margin; the words are those of every comparison.
"""

from __future__ import annotations

from decimal import Decimal

from collector.compare.model import PRINTED, ComparedCell, Comparison
from collector.errors import UsageError
from collector.published import Figure, Published, PublishedConfiguration, PublishedTest
from collector.verdict import Outcome, Verdict, difference, overall

# A margin for values without repeats: above what repeated RFC 2544 runs of one system differ by.
MARGIN_PCT = 5.0
PROCEDURE = "a margin beyond the rounding of the print"
NOTE = (
    "the figures are single values without repeats: a difference beyond rounding and margin is"
    " called by its size alone, without a test of significance"
)


def compare_printed(
    published: Published, base: str, new: str, margin_pct: float = MARGIN_PCT
) -> Comparison:
    """Compare two configurations of a published experiment, test by test, by their headline
    figures. Configurations that differ in more than the kernel are compared as *invalid*. Raises
    UsageError for a configuration that the experiment has not, or without a test in common."""
    known = {item.name: item for item in published.configurations}
    for name in (base, new):
        if name not in known:
            wanted = ", ".join(known)
            raise UsageError(f"{published.name}: found no {name!r}; wanted one of {wanted}")
    other = _other_differences(known[base], known[new])
    cells = []
    for test in published.tests:
        first, last = published.figure(base, test.name), published.figure(new, test.name)
        if first is not None and last is not None:
            cells.append(_cell(test, first, last, margin_pct, other))
    if not cells:
        raise UsageError(f"{published.name}: {base} and {new}: found no test that both have")
    return Comparison(
        base=base,
        new=new,
        method=PRINTED,
        procedure=PROCEDURE,
        level=None,
        min_effect_pct=margin_pct,
        lab="published",
        cells=tuple(cells),
        outcome=overall(cell.outcome for cell in cells),
        notes=(NOTE,),
    )


def _other_differences(base: PublishedConfiguration, new: PublishedConfiguration) -> str | None:
    """What differs beside the kernel, in words; None if nothing does."""
    names = [key for key in {**base.factors, **new.factors} if key != "kernel"]
    parts = [
        f"{key} {base.factors.get(key, 'unknown')} against {new.factors.get(key, 'unknown')}"
        for key in names
        if base.factors.get(key) != new.factors.get(key)
    ]
    return ", ".join(parts) or None


def _cell(
    test: PublishedTest, first: Figure, last: Figure, margin_pct: float, other: str | None
) -> ComparedCell:
    (base_low, base_high), (new_low, new_high) = _range(first), _range(last)
    higher = test.headline.higher_is_better
    ratio = last.value / first.value
    low, high = new_low / base_high, new_high / base_low
    outcome, reason = Outcome.OK, None
    if other is not None:
        outcome, reason = Outcome.INVALID, f"not the same machine: {other}"
    elif high < 1 / (1 + margin_pct / 100) or low > 1 + margin_pct / 100:
        worse = difference(ratio - 1, higher) is Verdict.SLOWER
        outcome = Outcome.REGRESSION if worse else Outcome.IMPROVEMENT
    elif ratio != 1:
        reason = f"within {margin_pct:g} %, or what the rounding of the print hides"
    return ComparedCell(
        configuration=first.configuration,
        new_configuration=last.configuration,
        test=test.name,
        factors=dict(test.factors),
        unit=first.unit,
        higher_is_better=higher,
        n_base=1,
        n_new=1,
        base=first.value,
        new=last.value,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        p=None,
        p_smallest=None,
        outcome=outcome,
        reason=reason,
    )


def _range(figure: Figure) -> tuple[float, float]:
    """What was rounded to the printed digits: half a unit of the last one on either side."""
    printed = Decimal(figure.printed)
    exponent = printed.as_tuple().exponent
    half = Decimal(1).scaleb(int(exponent)) / 2
    scale = figure.value / float(printed) if printed else 1.0
    return float(printed - half) * scale, float(printed + half) * scale
