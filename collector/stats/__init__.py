"""Statistics of a matrix: samples in, judged cells out. Pure functions; numpy and scipy count.

``summarise(samples, baseline, …) -> MatrixSummary`` is the entry point (:mod:`.summary`).
"""

from collector.stats.model import CellSummary, MatrixSummary, NoiseFloor

__all__ = ["CellSummary", "MatrixSummary", "NoiseFloor"]
