"""The words Crossover judges with: per cell of a matrix, and per cell of a comparison.

A *verdict* says what one cell of a matrix is against the baseline of the same run. An *outcome*
says what a cell became between two runs (or two configurations or kernels of one run); it is what
a gate reacts to, so each has an exit code and a JUnit form. docs/methodology.md gives the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """A cell against the baseline of its own run; the values are the words that are printed."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference beyond delta"
    INCONCLUSIVE = "inconclusive"
    BASELINE = "baseline"
    NOT_ENOUGH_DATA = "not enough data"
    INVALID = "invalid"
    SKIPPED = "skipped"


class Outcome(StrEnum):
    """A cell of a comparison; the values are the words that are printed."""

    OK = "ok"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NOT_ENOUGH_DATA = "not enough data"
    INVALID = "invalid"
    INFRASTRUCTURE = "infrastructure"

    @property
    def exit_code(self) -> int:
        """The exit code of ``crossover compare`` when this is the outcome over all cells."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Outcome.OK: 0,
    Outcome.REGRESSION: 10,
    Outcome.IMPROVEMENT: 0,
    Outcome.NOT_ENOUGH_DATA: 20,
    Outcome.INVALID: 30,
    Outcome.INFRASTRUCTURE: 40,
}

# Worst first. A regression leads although its exit code is the lowest of the failures: it is
# proven by valid samples, and what happened to other cells does not take that back.
OUTCOMES_WORST_FIRST = (
    Outcome.REGRESSION,
    Outcome.INFRASTRUCTURE,
    Outcome.INVALID,
    Outcome.NOT_ENOUGH_DATA,
    Outcome.IMPROVEMENT,
    Outcome.OK,
)


def overall(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of the outcomes by :data:`OUTCOMES_WORST_FIRST`.

    No outcome at all is ``infrastructure``: a comparison that compared nothing has not passed.
    """
    seen = set(outcomes)
    for outcome in OUTCOMES_WORST_FIRST:
        if outcome in seen:
            return outcome
    return Outcome.INFRASTRUCTURE


def difference(log_ratio: float, higher_is_better: bool) -> Verdict:
    """``faster`` or ``slower`` for a ratio to the baseline, given as its logarithm."""
    return Verdict.FASTER if (log_ratio > 0) == higher_is_better else Verdict.SLOWER
