"""What a comparison of two sides is made of, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.compare.acks import Ack
from collector.verdict import Outcome

Floats = NDArray[np.float64]

PAIRED = "within the blocks of one run"
UNPAIRED = "between runs that share no block"
RATIOS = "ratios to each run's own baseline"
PRINTED = "printed figures, one value each"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCell:
    """One cell on both sides. ``ratio`` is new / base with its 95 % bootstrap interval; ``p`` is
    adjusted over the comparison, ``p_smallest`` the smallest unadjusted p that the sample sizes
    allow. ``ack`` is the acknowledgement that covers a regression."""

    configuration: str
    new_configuration: str
    test: str
    factors: dict[str, str]
    unit: str
    higher_is_better: bool
    n_base: int
    n_new: int
    base: float | None  # medians, in `unit`
    new: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p: float | None
    p_smallest: float | None
    outcome: Outcome
    reason: str | None
    ack: Ack | None = None

    @property
    def change_pct(self) -> float | None:
        """The change of the value in %, None without a ratio."""
        return None if self.ratio is None else (self.ratio - 1) * 100

    @property
    def loss_pct(self) -> float:
        """How much worse it became, in % of the base (negative: better; 0 without a ratio)."""
        change = self.change_pct or 0.0
        return -change if self.higher_is_better else change


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A whole comparison. ``outcome`` counts an acknowledged regression as ok."""

    base: str
    new: str
    method: str  # PAIRED, UNPAIRED, RATIOS or PRINTED
    procedure: str
    level: float | None  # None: nothing was tested
    min_effect_pct: float
    lab: str
    cells: tuple[ComparedCell, ...]
    outcome: Outcome
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides besides the numbers. ``needed`` is the fewest shared blocks for a verdict,
    ``minimum_pct`` the smallest change that counts, in %."""

    method: str
    needed: int
    level: float
    minimum_pct: float
    seed: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell with the numbers to be tested: logarithms of each side, or of their ratio. ``noise``
    is the change, a fraction, that nothing but noise or drift shows as well."""

    cell: ComparedCell
    base: Floats
    new: Floats
    within: Floats | None  # log(new / base) by block, nan where one is lacking
    noise: float
