"""Whether the repeats of one cell fall into two bands instead of around one value.

Two bands mean that something switches between repeats (a timer, a CPU, an offload) and that
neither median nor interval describes either state. The flag asks for a look at the samples; it
never changes a verdict.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 6  # values below which nothing is flagged
_SIMULATED = 20_000
_QUANTILE = 0.995
_SEED = 20_061_130


def separation(values: Floats) -> tuple[Floats, Floats]:
    """Best split of each row into a low and a high band: (gap in within-band deviations, step).

    ``values`` has shape (samples, n). The split is the widest gap between neighbouring sorted
    values that leaves a quarter of the values, and at least two, on either side, so that
    outliers are not a band. The first result is that gap divided by the pooled standard deviation
    within the bands; the second is the distance between the band means divided by the mean.
    """
    rows = np.sort(values, axis=1)
    count, n = rows.shape
    fewest = max(2, math.ceil(n / 4))
    gaps = np.diff(rows, axis=1)[:, fewest - 1 : n - fewest]
    cut = np.argmax(gaps, axis=1) + fewest  # values in the low band
    gap = gaps[np.arange(count), cut - fewest]
    low = np.arange(n) < cut[:, None]
    low_mean = np.where(low, rows, 0).sum(axis=1) / cut
    high_mean = np.where(low, 0, rows).sum(axis=1) / (n - cut)
    centred = rows - np.where(low, low_mean[:, None], high_mean[:, None])
    within = np.sqrt((centred**2).sum(axis=1) / (n - 2))
    tiny = np.finfo(float).tiny
    return gap / np.maximum(within, tiny), (high_mean - low_mean) / rows.mean(axis=1)


@lru_cache(maxsize=256)
def critical_gap(n: int) -> float:
    """The gap that one in 200 samples of ``n`` normal values exceeds, by simulation."""
    rng = np.random.default_rng(_SEED)
    gaps, _ = separation(rng.normal(1e3, 1.0, size=(_SIMULATED, n)))
    return float(np.quantile(gaps, _QUANTILE))


def is_bimodal(values: Floats, smallest_step: float) -> bool:
    """Whether ``values``, shape (repeats,), fall into two bands.

    ``smallest_step`` is the distance between bands that matters, a fraction of the mean: bands
    closer than that are left alone. Fewer than six values are never flagged.
    """
    if len(values) < FEWEST:
        return False
    gap, step = separation(values[None, :])
    return bool(step[0] > smallest_step and gap[0] > critical_gap(len(values)))
