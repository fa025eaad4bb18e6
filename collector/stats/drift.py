"""Whether the machine's speed wandered during a run, and by how much.

Within-block ratios do not mind. Comparing the values of two runs does: what wandered inside a
run may as well have wandered between the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

# A run is said to drift when blocks as different as these come up once in a hundred steady runs.
_LEVEL = 0.01
_FEWEST = 3  # blocks, and cells, below which nothing can be said


def drift(logs: Floats) -> float | None:
    """How far the blocks of a run lie apart (largest / smallest - 1), None if it was steady.

    ``logs`` has shape (cells, blocks): logarithms of the values, nan where one is lacking. Cells
    that lack a block are left out. The test is Friedman's, with the cells as judges of the
    blocks; the size is the range of the blocks' effects, each the median over cells of the
    cell's deviation from its own median. Source: M. Friedman, Journal of the American
    Statistical Association 32 (1937) 675–701.
    """
    whole = logs[~np.isnan(logs).any(axis=1)]
    if whole.shape[0] < _FEWEST or whole.shape[1] < _FEWEST:
        return None
    deviations = whole - np.median(whole, axis=1, keepdims=True)
    if not deviations.any():
        return None
    p = float(stats.friedmanchisquare(*deviations.T).pvalue)
    if not p < _LEVEL:
        return None
    effects = np.median(deviations, axis=0)
    return float(np.expm1(effects.max() - effects.min()))
