"""Statistics of two runs that share no block: Mann–Whitney and the shift of medians."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

# Up to this many values on the larger side the null distribution is counted exactly.
_EXACT_LIMIT = 50


def smallest_mann_whitney_p(n_base: int, n_new: int) -> float:
    """The smallest two-sided p that these sample sizes can give: 2 / C(n_base+n_new, n_base).

    3 against 3 gives 0.10, 4 against 4 gives 0.029, 5 against 5 gives 0.008: complete separation
    of the two samples is one of that many equally likely arrangements on either side.
    """
    if n_base < 1 or n_new < 1:
        return 1.0
    return min(1.0, 2.0 / math.comb(n_base + n_new, n_base))


def mann_whitney_p(base: Floats, new: Floats) -> float:
    """Two-sided p of the Mann–Whitney U test; both of shape (repeats,), not empty.

    Exact where there are no ties and neither side exceeds 50 values, else the normal
    approximation with tie and continuity correction. All values equal gives 1.
    """
    pooled = np.concatenate([base, new])
    distinct = len(np.unique(pooled))
    if distinct == 1:
        return 1.0
    exact = distinct == len(pooled) and max(len(base), len(new)) <= _EXACT_LIMIT
    method = "exact" if exact else "asymptotic"
    return float(stats.mannwhitneyu(new, base, method=method).pvalue)


def shift_of_medians(
    base: Floats, new: Floats, *, resamples: int, seed: int, confidence: float = 0.95
) -> tuple[float, float, float]:
    """``median(new) - median(base)`` of logarithms, with a percentile bootstrap interval.

    Both of shape (repeats,), not empty. The two sides are resampled independently. The
    exponentials of the three results are the ratio of medians and its interval.
    """
    rng = np.random.default_rng(seed)
    new_medians = np.median(rng.choice(new, size=(resamples, len(new))), axis=1)
    base_medians = np.median(rng.choice(base, size=(resamples, len(base))), axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(new_medians - base_medians, [tail, 1 - tail])
    return float(np.median(new) - np.median(base)), float(low), float(high)
