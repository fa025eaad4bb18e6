"""Statistics of a matrix: samples in, judged cells out. Pure functions; numpy and scipy count.

``summarise(samples, baseline, …) -> MatrixSummary`` is the entry point (:mod:`.summary`).
"""

from collector.stats.model import CellSummary, MatrixSummary, NoiseFloor
from collector.stats.summary import default_delta, summarise

__all__ = ["CellSummary", "MatrixSummary", "NoiseFloor", "default_delta", "summarise"]
